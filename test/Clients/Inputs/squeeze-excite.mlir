// The gradient of a squeeze-excite gate behind a batch norm: y = z * sigmoid(mean(z) * w).
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#image = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
#pair = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: tensor<4x5x6x7xf32>, %scale: tensor<5xf32>, %mean: tensor<5xf32>, %variance: tensor<5xf32>, %z: tensor<4x5x6x7xf32>, %w: tensor<5x5xf32>, %g: tensor<4x5x6x7xf32>)
    -> (tensor<4x5x6x7xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5x5xf32>) {
  %empty = tensor.empty() : tensor<4x5x6x7xf32>
  %pairs = tensor.empty() : tensor<4x5xf32>
  %zeros = arith.constant dense<0.0> : tensor<4x5xf32>
  %pixels = arith.constant 42.0 : f32
  %one = arith.constant 1.0 : f32
  %sum = linalg.generic {indexing_maps = [#id, #image], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%z : tensor<4x5x6x7xf32>) outs(%zeros : tensor<4x5xf32>) {
  ^bb0(%e: f32, %s: f32):
    %r = arith.addf %s, %e : f32
    linalg.yield %r : f32
  } -> tensor<4x5xf32>
  %pooled = linalg.generic {indexing_maps = [#pair, #pair], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<4x5xf32>) outs(%pairs : tensor<4x5xf32>) {
  ^bb0(%s: f32, %out: f32):
    %r = arith.divf %s, %pixels : f32
    linalg.yield %r : f32
  } -> tensor<4x5xf32>
  %logits = linalg.matmul ins(%pooled, %w : tensor<4x5xf32>, tensor<5x5xf32>) outs(%zeros : tensor<4x5xf32>) -> tensor<4x5xf32>
  %gate = linalg.generic {indexing_maps = [#pair, #pair], iterator_types = ["parallel", "parallel"]}
      ins(%logits : tensor<4x5xf32>) outs(%pairs : tensor<4x5xf32>) {
  ^bb0(%l: f32, %out: f32):
    %n = arith.negf %l : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %r = arith.divf %one, %d : f32
    linalg.yield %r : f32
  } -> tensor<4x5xf32>
  %product = linalg.mul ins(%g, %z : tensor<4x5x6x7xf32>, tensor<4x5x6x7xf32>) outs(%empty : tensor<4x5x6x7xf32>) -> tensor<4x5x6x7xf32>
  %dgate = linalg.generic {indexing_maps = [#id, #image], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%product : tensor<4x5x6x7xf32>) outs(%zeros : tensor<4x5xf32>) {
  ^bb0(%e: f32, %s: f32):
    %r = arith.addf %s, %e : f32
    linalg.yield %r : f32
  } -> tensor<4x5xf32>
  %dlogits = linalg.generic {indexing_maps = [#pair, #pair, #pair], iterator_types = ["parallel", "parallel"]}
      ins(%dgate, %gate : tensor<4x5xf32>, tensor<4x5xf32>) outs(%pairs : tensor<4x5xf32>) {
  ^bb0(%a: f32, %s: f32, %out: f32):
    %c = arith.subf %one, %s : f32
    %b = arith.mulf %s, %c : f32
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<4x5xf32>
  %turned = tensor.empty() : tensor<5x5xf32>
  %wt = linalg.transpose ins(%w : tensor<5x5xf32>) outs(%turned : tensor<5x5xf32>) permutation = [1, 0]
  %dpooled = linalg.matmul ins(%dlogits, %wt : tensor<4x5xf32>, tensor<5x5xf32>) outs(%zeros : tensor<4x5xf32>) -> tensor<4x5xf32>
  %transposed = tensor.empty() : tensor<5x4xf32>
  %pt = linalg.transpose ins(%pooled : tensor<4x5xf32>) outs(%transposed : tensor<5x4xf32>) permutation = [1, 0]
  %zerow = arith.constant dense<0.0> : tensor<5x5xf32>
  %dw = linalg.matmul ins(%pt, %dlogits : tensor<5x4xf32>, tensor<4x5xf32>) outs(%zerow : tensor<5x5xf32>) -> tensor<5x5xf32>
  %dy = linalg.generic {indexing_maps = [#id, #image, #image, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%g, %gate, %dpooled : tensor<4x5x6x7xf32>, tensor<4x5xf32>, tensor<4x5xf32>) outs(%empty : tensor<4x5x6x7xf32>) {
  ^bb0(%a: f32, %s: f32, %p: f32, %out: f32):
    %b = arith.mulf %a, %s : f32
    %c = arith.divf %p, %pixels : f32
    %r = arith.addf %b, %c : f32
    linalg.yield %r : f32
  } -> tensor<4x5x6x7xf32>
  %dx, %dscale, %doffset = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy)
      <{epsilon = 1.0e-5 : f32, feature_index = 1 : i64}>
      : (tensor<4x5x6x7xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<4x5x6x7xf32>) -> (tensor<4x5x6x7xf32>, tensor<5xf32>, tensor<5xf32>)
  return %dx, %dscale, %doffset, %dw : tensor<4x5x6x7xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5x5xf32>
}
