// relu(batch_norm(a * w)): the gradients of a and w are products with grad_input.
#id = affine_map<(d0, d1) -> (d0, d1)>
#transposed = affine_map<(d0, d1) -> (d1, d0)>
#first = affine_map<(d0, d1) -> (d0)>
#second = affine_map<(d0, d1) -> (d1)>

func.func @main(%x: tensor<12x5xf32>, %scale: tensor<5xf32>, %mean: tensor<5xf32>, %variance: tensor<5xf32>, %y: tensor<12x5xf32>, %g: tensor<12x5xf32>, %a: tensor<12x3xf32>, %w: tensor<3x5xf32>)
    -> (tensor<12x3xf32>, tensor<3x5xf32>, tensor<5xf32>, tensor<5xf32>) {
  %empty = tensor.empty() : tensor<12x5xf32>
  %zero = arith.constant 0.0 : f32
  %dy = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y, %g : tensor<12x5xf32>, tensor<12x5xf32>) outs(%empty : tensor<12x5xf32>) {
  ^bb0(%b: f32, %c: f32, %out: f32):
    %is = arith.cmpf ogt, %b, %zero : f32
    %r = arith.select %is, %c, %zero : f32
    linalg.yield %r : f32
  } -> tensor<12x5xf32>
  %dx, %dscale, %doffset = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy)
      <{epsilon = 1.0e-5 : f32, feature_index = 1 : i64}>
      : (tensor<12x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<12x5xf32>) -> (tensor<12x5xf32>, tensor<5xf32>, tensor<5xf32>)
  %wempty = tensor.empty() : tensor<5x3xf32>
  %wt = linalg.transpose ins(%w : tensor<3x5xf32>) outs(%wempty : tensor<5x3xf32>) permutation = [1, 0]
  %aempty = tensor.empty() : tensor<3x12xf32>
  %at = linalg.transpose ins(%a : tensor<12x3xf32>) outs(%aempty : tensor<3x12xf32>) permutation = [1, 0]
  %zeroa = arith.constant dense<0.0> : tensor<12x3xf32>
  %da = linalg.matmul ins(%dx, %wt : tensor<12x5xf32>, tensor<5x3xf32>) outs(%zeroa : tensor<12x3xf32>) -> tensor<12x3xf32>
  %zerow = arith.constant dense<0.0> : tensor<3x5xf32>
  %dw = linalg.matmul ins(%at, %dx : tensor<3x12xf32>, tensor<12x5xf32>) outs(%zerow : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %da, %dw, %dscale, %doffset : tensor<12x3xf32>, tensor<3x5xf32>, tensor<5xf32>, tensor<5xf32>
}
