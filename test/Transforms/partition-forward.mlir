// RUN: bngrad-opt %s --split-input-file --bngrad-partition | FileCheck %s --enable-var-scope

// Channels are independent: with shards of channels, each process trains its own.

// CHECK-LABEL: func.func @training_of_channels(
// CHECK-SAME: %[[X:[^:]+]]: tensor<4x3x5xf32>
// CHECK: bngrad.batch_norm_training input(%[[X]] : tensor<4x3x5xf32>) : tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
// CHECK-NOT: shard.all_reduce
shard.grid @grid(shape = 2)
func.func @training_of_channels(%x: tensor<4x6x5xf32>) -> (tensor<4x6x5xf32>, tensor<6xf32>) {
  %s = shard.sharding @grid split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x6x5xf32>
  %0:4 = bngrad.batch_norm_training input(%xs : tensor<4x6x5xf32>) : tensor<4x6x5xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  return %0#0, %0#1 : tensor<4x6x5xf32>, tensor<6xf32>
}

// -----

// CHECK-LABEL: func.func @inference(
// CHECK-SAME: %[[X:[^:]+]]: tensor<2x3xf32>
// CHECK: bngrad.batch_norm_inference input(%[[X]] : tensor<2x3xf32>) {{.*}} : tensor<2x3xf32>
// CHECK-NOT: shard.all_reduce
shard.grid @grid(shape = 2)
func.func @inference(%x: tensor<4x3xf32>, %mean: tensor<3xf32>, %variance: tensor<3xf32>) -> tensor<4x3xf32> {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x3xf32>
  %0 = bngrad.batch_norm_inference input(%xs : tensor<4x3xf32>) mean(%mean : tensor<3xf32>) variance(%variance : tensor<3xf32>) : tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

// The sums of the shards are added up; the count is known.

// CHECK-LABEL: func.func @sums(
// CHECK: %[[SUM:.+]], %[[SQUARE_SUM:.+]], %{{.+}} = bngrad.batch_norm_training_reduce
// CHECK-DAG: %[[ALL:.+]] = shard.all_reduce %[[SUM]] on @grid grid_axes = [0]
// CHECK-DAG: %[[ALL_SQUARES:.+]] = shard.all_reduce %[[SQUARE_SUM]] on @grid grid_axes = [0]
// CHECK-DAG: %[[COUNT:.+]] = arith.constant dense<4> : tensor<i64>
// CHECK: return %[[ALL]], %[[ALL_SQUARES]], %[[COUNT]]
shard.grid @grid(shape = 2)
func.func @sums(%x: tensor<4x3xf32>, %shift: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<i64>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x3xf32>
  %0:3 = bngrad.batch_norm_training_reduce input(%xs : tensor<4x3xf32>) shift(%shift : tensor<3xf32>) : tensor<3xf32>, tensor<3xf32>, tensor<i64>
  return %0#0, %0#1, %0#2 : tensor<3xf32>, tensor<3xf32>, tensor<i64>
}

// -----

// One process along the axis of the batch has whole channels.

// CHECK-LABEL: func.func @training_of_one_process(
// CHECK: bngrad.batch_norm_training input(%{{.+}} : tensor<4x3xf32>) : tensor<4x3xf32>,
// CHECK-NOT: shard.all_reduce
shard.grid @grid(shape = 1x2)
func.func @training_of_one_process(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %s = shard.sharding @grid split_axes = [[0], [1]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x6xf32>
  %0:4 = bngrad.batch_norm_training input(%xs : tensor<4x6xf32>) : tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  return %0#0 : tensor<4x6xf32>
}
