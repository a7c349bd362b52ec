// The gradient of an average pool of 2x2: each value goes to four pixels.
#wide = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4, d5)>
#narrow = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4)>
func.func @main(%x: tensor<4x5x6x8xf32>, %scale: tensor<5xf32>, %mean: tensor<5xf32>, %variance: tensor<5xf32>, %g: tensor<4x5x3x4xf32>) -> (tensor<4x5x6x8xf32>, tensor<5xf32>, tensor<5xf32>) {
  %empty = tensor.empty() : tensor<4x5x3x2x4x2xf32>
  %quarter = arith.constant 0.25 : f32
  %wide = linalg.generic {indexing_maps = [#narrow, #wide],
                          iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%g : tensor<4x5x3x4xf32>) outs(%empty : tensor<4x5x3x2x4x2xf32>) {
  ^bb0(%a: f32, %out: f32):
    %r = arith.mulf %a, %quarter : f32
    linalg.yield %r : f32
  } -> tensor<4x5x3x2x4x2xf32>
  %dy = tensor.collapse_shape %wide [[0], [1], [2, 3], [4, 5]] : tensor<4x5x3x2x4x2xf32> into tensor<4x5x6x8xf32>
  %dx, %dscale, %doffset = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy)
      <{epsilon = 1.0e-5 : f32, feature_index = 1 : i64}>
      : (tensor<4x5x6x8xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<4x5x6x8xf32>) -> (tensor<4x5x6x8xf32>, tensor<5xf32>, tensor<5xf32>)
  return %dx, %dscale, %doffset : tensor<4x5x6x8xf32>, tensor<5xf32>, tensor<5xf32>
}
