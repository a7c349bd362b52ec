// A convolution behind a batch norm: dy is a convolution of the padded gradient.
func.func @main(%x: tensor<4x5x6x7xf32>, %scale: tensor<5xf32>, %mean: tensor<5xf32>, %variance: tensor<5xf32>, %w: tensor<5x3x3x3xf32>, %g: tensor<4x3x6x7xf32>) -> (tensor<4x5x6x7xf32>, tensor<5xf32>, tensor<5xf32>) {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %g low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %w_: index):
    tensor.yield %zero : f32
  } : tensor<4x3x6x7xf32> to tensor<4x3x8x9xf32>
  %zeros = arith.constant dense<0.0> : tensor<4x5x6x7xf32>
  %dy = linalg.conv_2d_nchw_fchw ins(%padded, %w : tensor<4x3x8x9xf32>, tensor<5x3x3x3xf32>) outs(%zeros : tensor<4x5x6x7xf32>) -> tensor<4x5x6x7xf32>
  %dx, %dscale, %doffset = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy)
      <{epsilon = 1.0e-5 : f32, feature_index = 1 : i64}>
      : (tensor<4x5x6x7xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<4x5x6x7xf32>) -> (tensor<4x5x6x7xf32>, tensor<5xf32>, tensor<5xf32>)
  return %dx, %dscale, %doffset : tensor<4x5x6x7xf32>, tensor<5xf32>, tensor<5xf32>
}
