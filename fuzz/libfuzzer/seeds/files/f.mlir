func.func @f(%dy: tensor<3x4xf32>, %x: tensor<3x4xf32>, %mean: tensor<4xf32>, %inv_std: tensor<4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : tensor<3x4xf32>) input(%x : tensor<3x4xf32>) mean(%mean : tensor<4xf32>) inv_std(%inv_std : tensor<4xf32>) : tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>
  return %dx, %dscale : tensor<3x4xf32>, tensor<4xf32>
}
