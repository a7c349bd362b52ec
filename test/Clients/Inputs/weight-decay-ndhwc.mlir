// NDHWC as TensorFlow has it, and a step of SGD with weight decay on the scale.
#c = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<3x2x4x6x5xf32>, %scale: tensor<5xf32>, %mean: tensor<5xf32>, %variance: tensor<5xf32>, %g: tensor<3x2x4x6x5xf32>) -> (tensor<3x2x4x6x5xf32>, tensor<5xf32>, tensor<5xf32>) {
  %dx, %dscale, %doffset = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %g)
      <{epsilon = 1.0e-3 : f32, feature_index = 4 : i64}>
      : (tensor<3x2x4x6x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<3x2x4x6x5xf32>) -> (tensor<3x2x4x6x5xf32>, tensor<5xf32>, tensor<5xf32>)
  %empty = tensor.empty() : tensor<5xf32>
  %rate = arith.constant 0.1 : f32
  %decay = arith.constant 0.01 : f32
  %new = linalg.generic {indexing_maps = [#c, #c, #c], iterator_types = ["parallel"]}
      ins(%scale, %dscale : tensor<5xf32>, tensor<5xf32>) outs(%empty : tensor<5xf32>) {
  ^bb0(%p: f32, %d: f32, %out: f32):
    %w = arith.mulf %p, %decay : f32
    %t = arith.addf %d, %w : f32
    %s = arith.mulf %t, %rate : f32
    %r = arith.subf %p, %s : f32
    linalg.yield %r : f32
  } -> tensor<5xf32>
  return %dx, %new, %doffset : tensor<3x2x4x6x5xf32>, tensor<5xf32>, tensor<5xf32>
}
