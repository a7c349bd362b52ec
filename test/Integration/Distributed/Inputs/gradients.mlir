// A batch of six samples on three processes; local leaves the gradients of
// parameters to the caller. training is the forward pass.

shard.grid @grid(shape = 3)

func.func @gradient(%dy: tensor<6x4x5xf32>, %x: tensor<6x4x5xf32>, %scale: tensor<4xf32>, %mean: tensor<4xf32>,
                    %variance: tensor<4xf32>) -> (tensor<6x4x5xf32>, tensor<4xf32>, tensor<4xf32>) {
  %batch = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %shard = shard.shard %x to %batch : tensor<6x4x5xf32>
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : tensor<6x4x5xf32>)
      input(%shard : tensor<6x4x5xf32>) scale(%scale : tensor<4xf32>) mean(%mean : tensor<4xf32>)
      variance(%variance : tensor<4xf32>) {epsilon = 1.0e-3 : f64} : tensor<6x4x5xf32>, tensor<4xf32>, tensor<4xf32>
  return %dx, %dscale, %doffset : tensor<6x4x5xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @local(%dy: tensor<6x4x5xf32>, %x: tensor<6x4x5xf32>, %scale: tensor<4xf32>, %mean: tensor<4xf32>,
                 %variance: tensor<4xf32>) -> (tensor<6x4x5xf32>, tensor<4xf32>, tensor<4xf32>) {
  %batch = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %shard = shard.shard %x to %batch : tensor<6x4x5xf32>
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : tensor<6x4x5xf32>)
      input(%shard : tensor<6x4x5xf32>) scale(%scale : tensor<4xf32>) mean(%mean : tensor<4xf32>)
      variance(%variance : tensor<4xf32>) {epsilon = 1.0e-3 : f64, local_parameter_gradients}
      : tensor<6x4x5xf32>, tensor<4xf32>, tensor<4xf32>
  return %dx, %dscale, %doffset : tensor<6x4x5xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @training(%x: tensor<6x4x5xf32>, %scale: tensor<4xf32>, %offset: tensor<4xf32>)
    -> (tensor<6x4x5xf32>, tensor<4xf32>, tensor<4xf32>) {
  %batch = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %shard = shard.shard %x to %batch : tensor<6x4x5xf32>
  %y, %mean, %variance, %inv_std = bngrad.batch_norm_training input(%shard : tensor<6x4x5xf32>)
      scale(%scale : tensor<4xf32>) offset(%offset : tensor<4xf32>) {epsilon = 1.0e-3 : f64}
      : tensor<6x4x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  return %y, %mean, %variance : tensor<6x4x5xf32>, tensor<4xf32>, tensor<4xf32>
}
