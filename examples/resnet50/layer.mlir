// The batch norm after the first convolution of ResNet-50, batch 32, NCHW.
func.func @layer(%grad_output: tensor<32x64x112x112xf32>,
                 %input: tensor<32x64x112x112xf32>, %scale: tensor<64xf32>,
                 %mean: tensor<64xf32>, %variance: tensor<64xf32>)
    -> (tensor<32x64x112x112xf32>, tensor<64xf32>, tensor<64xf32>) {
  %grad_input, %grad_scale, %grad_offset = bngrad.batch_norm_backward
      grad_output(%grad_output : tensor<32x64x112x112xf32>)
      input(%input : tensor<32x64x112x112xf32>)
      scale(%scale : tensor<64xf32>) mean(%mean : tensor<64xf32>)
      variance(%variance : tensor<64xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<32x64x112x112xf32>, tensor<64xf32>, tensor<64xf32>
  return %grad_input, %grad_scale, %grad_offset
      : tensor<32x64x112x112xf32>, tensor<64xf32>, tensor<64xf32>
}
