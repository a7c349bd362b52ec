// The gradient of a cross-entropy of log-softmax, behind a batch norm.
#id = affine_map<(d0, d1) -> (d0, d1)>
#transposed = affine_map<(d0, d1) -> (d1, d0)>
#first = affine_map<(d0, d1) -> (d0)>
#second = affine_map<(d0, d1) -> (d1)>

func.func @main(%x: tensor<12x5xf32>, %scale: tensor<5xf32>, %mean: tensor<5xf32>, %variance: tensor<5xf32>, %logits: tensor<12x5xf32>, %labels: tensor<12x5xf32>) -> (tensor<12x5xf32>, tensor<5xf32>, tensor<5xf32>) {
  %empty = tensor.empty() : tensor<12x5xf32>
  %largest_init = arith.constant dense<0xFF800000> : tensor<12xf32>
  %largest = linalg.generic {indexing_maps = [#id, #first], iterator_types = ["parallel", "reduction"]}
      ins(%logits : tensor<12x5xf32>) outs(%largest_init : tensor<12xf32>) {
  ^bb0(%e: f32, %sum: f32):
    %r = arith.maximumf %sum, %e : f32
    linalg.yield %r : f32
  } -> tensor<12xf32>
  %exp = linalg.generic {indexing_maps = [#id, #first, #id], iterator_types = ["parallel", "parallel"]}
      ins(%logits, %largest : tensor<12x5xf32>, tensor<12xf32>) outs(%empty : tensor<12x5xf32>) {
  ^bb0(%z: f32, %m: f32, %out: f32):
    %d = arith.subf %z, %m : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<12x5xf32>
  %total_init = arith.constant dense<0.0> : tensor<12xf32>
  %total = linalg.generic {indexing_maps = [#id, #first], iterator_types = ["parallel", "reduction"]}
      ins(%exp : tensor<12x5xf32>) outs(%total_init : tensor<12xf32>) {
  ^bb0(%e: f32, %sum: f32):
    %r = arith.addf %sum, %e : f32
    linalg.yield %r : f32
  } -> tensor<12xf32>
  %rows = tensor.expand_shape %total [[0, 1]] output_shape [12, 1] : tensor<12xf32> into tensor<12x1xf32>
  %count = arith.constant 12.0 : f32
  %dy = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1) -> (d0, 0)>, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %rows, %labels : tensor<12x5xf32>, tensor<12x1xf32>, tensor<12x5xf32>) outs(%empty : tensor<12x5xf32>) {
  ^bb0(%e: f32, %t: f32, %l: f32, %out: f32):
    %p = arith.divf %e, %t : f32
    %d = arith.subf %p, %l : f32
    %r = arith.divf %d, %count : f32
    linalg.yield %r : f32
  } -> tensor<12x5xf32>
  %dx, %dscale, %doffset = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy)
      <{epsilon = 1.0e-5 : f32, feature_index = 1 : i64}>
      : (tensor<12x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<12x5xf32>) -> (tensor<12x5xf32>, tensor<5xf32>, tensor<5xf32>)
  return %dx, %dscale, %doffset : tensor<12x5xf32>, tensor<5xf32>, tensor<5xf32>
}
