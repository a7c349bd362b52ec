// The gradient of relu(batch_norm(x)), as JAX and TensorFlow print it. %y is the
// result of the forward pass.
func.func public @main(%dy: tensor<8x14x14x32xf32>, %x: tensor<8x14x14x32xf32>, %scale: tensor<32xf32>,
                       %mean: tensor<32xf32>, %variance: tensor<32xf32>, %y: tensor<8x14x14x32xf32>)
    -> (tensor<8x14x14x32xf32>, tensor<32xf32>, tensor<32xf32>) {
  %zeros = stablehlo.constant dense<0.0> : tensor<8x14x14x32xf32>
  %mask = stablehlo.compare GT, %y, %zeros : (tensor<8x14x14x32xf32>, tensor<8x14x14x32xf32>) -> tensor<8x14x14x32xi1>
  %masked = stablehlo.select %mask, %dy, %zeros : tensor<8x14x14x32xi1>, tensor<8x14x14x32xf32>
  %dx, %dscale, %doffset = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %masked)
      <{epsilon = 1.0e-5 : f32, feature_index = 3 : i64}>
      : (tensor<8x14x14x32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<8x14x14x32xf32>)
      -> (tensor<8x14x14x32xf32>, tensor<32xf32>, tensor<32xf32>)
  return %dx, %dscale, %doffset : tensor<8x14x14x32xf32>, tensor<32xf32>, tensor<32xf32>
}
