// The gradient of a softmax behind a batch norm: dy = p * (g - sum(g * p)).
#id = affine_map<(d0, d1) -> (d0, d1)>
#transposed = affine_map<(d0, d1) -> (d1, d0)>
#first = affine_map<(d0, d1) -> (d0)>
#second = affine_map<(d0, d1) -> (d1)>

func.func @main(%x: tensor<12x5xf32>, %scale: tensor<5xf32>, %mean: tensor<5xf32>, %variance: tensor<5xf32>, %p: tensor<12x5xf32>, %g: tensor<12x5xf32>) -> (tensor<12x5xf32>, tensor<5xf32>, tensor<5xf32>) {
  %empty = tensor.empty() : tensor<12x5xf32>
  %product = linalg.mul ins(%p, %g : tensor<12x5xf32>, tensor<12x5xf32>) outs(%empty : tensor<12x5xf32>) -> tensor<12x5xf32>
  %total_init = arith.constant dense<0.0> : tensor<12xf32>
  %total = linalg.generic {indexing_maps = [#id, #first], iterator_types = ["parallel", "reduction"]}
      ins(%product : tensor<12x5xf32>) outs(%total_init : tensor<12xf32>) {
  ^bb0(%e: f32, %sum: f32):
    %r = arith.addf %sum, %e : f32
    linalg.yield %r : f32
  } -> tensor<12xf32>
  %dy = linalg.generic {indexing_maps = [#id, #id, #first, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %g, %total : tensor<12x5xf32>, tensor<12x5xf32>, tensor<12xf32>) outs(%empty : tensor<12x5xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32, %out: f32):
    %d = arith.subf %b, %t : f32
    %r = arith.mulf %a, %d : f32
    linalg.yield %r : f32
  } -> tensor<12x5xf32>
  %dx, %dscale, %doffset = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy)
      <{epsilon = 1.0e-5 : f32, feature_index = 1 : i64}>
      : (tensor<12x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<12x5xf32>) -> (tensor<12x5xf32>, tensor<5xf32>, tensor<5xf32>)
  return %dx, %dscale, %doffset : tensor<12x5xf32>, tensor<5xf32>, tensor<5xf32>
}
