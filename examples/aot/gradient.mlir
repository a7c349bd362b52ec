// The gradient of a batch norm followed by a ReLU. The backward pass adds the
// gradient of a skip connection. NHWC, bf16 data, f32 parameters.
!data = tensor<32x14x14x256xbf16>
!mask = tensor<32x14x14x256xi1>
!channel = tensor<256xf32>
func.func @block_gradient(%dy: !data, %x: !data, %scale: !channel,
                          %mean: !channel, %variance: !channel, %mask: !mask,
                          %skip: !data loc("skip"))
    -> (!data, !channel, !channel) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward
      grad_output(%dy : !data) input(%x : !data) scale(%scale : !channel)
      mean(%mean : !channel) variance(%variance : !channel) mask(%mask : !mask)
      {epsilon = 1.0e-5 : f64, feature_dims = array<i64: 3>}
      : !data, !channel, !channel
  %sum = arith.addf %dx, %skip : !data
  return %sum, %dscale, %doffset : !data, !channel, !channel
}
