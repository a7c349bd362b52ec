// A training step of a batch norm, in StableHLO: the forward pass, the gradient of
// sum((output - target)^2) / 2, and new parameters. The learning rate is half the
// inverse number of elements in a channel, 2048.
!data = tensor<32x16x8x8xf32>
!channel = tensor<16xf32>
func.func @step(%x: !data, %target: !data loc("target"), %scale: !channel,
                %offset: !channel)
    -> (!data, !channel, !channel) {
  %y, %mean, %variance = "stablehlo.batch_norm_training"(%x, %scale, %offset)
      <{epsilon = 1.0e-5 : f32, feature_index = 1 : i64}>
      : (!data, !channel, !channel) -> (!data, !channel, !channel)
  %dy = arith.subf %y, %target : !data
  %dx, %dscale, %doffset =
      "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy)
      <{epsilon = 1.0e-5 : f32, feature_index = 1 : i64}>
      : (!data, !channel, !channel, !channel, !data) -> (!data, !channel, !channel)
  %rate = arith.constant dense<0x39800000> : !channel // 2^-12
  %scale_change = arith.mulf %dscale, %rate : !channel
  %offset_change = arith.mulf %doffset, %rate : !channel
  %new_scale = arith.subf %scale, %scale_change : !channel
  %new_offset = arith.subf %offset, %offset_change : !channel
  return %dx, %new_scale, %new_offset : !data, !channel, !channel
}
