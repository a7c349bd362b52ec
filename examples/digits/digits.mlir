// The batch norm of a small convolutional network on images of digits.
//
// epsilon is that of the forward pass; the feature dim (1) and the statistics
// (of this batch) are the defaults. scripts/demo.sh runs it.

func.func @digits(%grad_output : tensor<64x8x8x8xf32>, %input : tensor<64x8x8x8xf32>,
                  %scale : tensor<8xf32>, %mean : tensor<8xf32>, %variance : tensor<8xf32>)
    -> (tensor<64x8x8x8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %grad_input, %grad_scale, %grad_offset = bngrad.batch_norm_backward
      grad_output(%grad_output : tensor<64x8x8x8xf32>) input(%input : tensor<64x8x8x8xf32>)
      scale(%scale : tensor<8xf32>) mean(%mean : tensor<8xf32>) variance(%variance : tensor<8xf32>)
      {epsilon = 1.0e-5 : f64}
      : tensor<64x8x8x8xf32>, tensor<8xf32>, tensor<8xf32>
  return %grad_input, %grad_scale, %grad_offset
      : tensor<64x8x8x8xf32>, tensor<8xf32>, tensor<8xf32>
}
