// The ops in upstream's own passes, without --bngrad-partition.

// RUN: bngrad-opt %s --split-input-file --pass-pipeline="builtin.module(func.func(sharding-propagation))" | FileCheck %s --check-prefix=PROPAGATE
// RUN: bngrad-opt %s --split-input-file --pass-pipeline="builtin.module(func.func(sharding-propagation,shard-partition))" | FileCheck %s --check-prefix=PARTITION

// Every operand and result gets an annotation, an unused result too: data as
// input, parameters as the feature dims of input.

// PROPAGATE-LABEL: func.func @nhwc(
// PROPAGATE-SAME: %[[DY:[^:]+]]: tensor<4x2x2x6xf32>, %[[X:[^:]+]]: tensor<4x2x2x6xf32>, %[[SCALE:[^:]+]]: tensor<6xf32>
// PROPAGATE: %[[GIVEN:.+]] = shard.sharding @grid split_axes = {{\[\[}}1], [], [], [0]]
// PROPAGATE: shard.shard %[[X]] to %[[GIVEN]] : tensor<4x2x2x6xf32>
// PROPAGATE: %[[DATA:.+]] = shard.sharding @grid split_axes = {{\[\[}}1], [], [], [0]]
// PROPAGATE: shard.shard %[[DY]] to %[[DATA]] annotate_for_users : tensor<4x2x2x6xf32>
// PROPAGATE: %[[PARAMETER:.+]] = shard.sharding @grid split_axes = {{\[\[}}0]]
// PROPAGATE: shard.shard %[[SCALE]] to %[[PARAMETER]] annotate_for_users : tensor<6xf32>
// PROPAGATE: %[[DX:.+]], %[[DSCALE:.+]], %[[DOFFSET:.+]] = bngrad.batch_norm_backward
// PROPAGATE-DAG: shard.shard %[[DX]] to %{{.+}} : tensor<4x2x2x6xf32>
// PROPAGATE-DAG: shard.shard %[[DSCALE]] to %{{.+}} : tensor<6xf32>
// PROPAGATE-DAG: shard.shard %[[DOFFSET]] to %{{.+}} : tensor<6xf32>

// PARTITION-LABEL: func.func @nhwc(
// PARTITION-SAME: : tensor<2x2x2x3xf32>, %{{.+}}: tensor<2x2x2x3xf32>, %{{.+}}: tensor<3xf32>, %{{.+}}) -> (tensor<2x2x2x3xf32>, tensor<3xf32>)
// PARTITION: shard.all_reduce %{{.+}} on @grid grid_axes = [1]
// PARTITION: = bngrad.batch_norm_backward_elemt
shard.grid @grid(shape = 2x2)
func.func @nhwc(%dy: tensor<4x2x2x6xf32>, %x: tensor<4x2x2x6xf32>, %scale: tensor<6xf32>, %mean: tensor<6xf32>,
                %var: tensor<6xf32>) -> (tensor<4x2x2x6xf32>, tensor<6xf32>) {
  %s = shard.sharding @grid split_axes = [[1], [], [], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x2x2x6xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4x2x2x6xf32>) input(%xs : tensor<4x2x2x6xf32>)
      scale(%scale : tensor<6xf32>) mean(%mean : tensor<6xf32>) variance(%var : tensor<6xf32>)
      {feature_dims = array<i64: 3>} : tensor<4x2x2x6xf32>, tensor<6xf32>, tensor<6xf32>
  return %0#0, %0#1 : tensor<4x2x2x6xf32>, tensor<6xf32>
}

// -----

// The rows of sums are not split, its channels are; a count is replicated.
// Upstream would take elemt for one without a sharding because of its count.

// PROPAGATE-LABEL: func.func @halves(
// PROPAGATE: %[[SUMS:.+]], %[[COUNT:.+]] = bngrad.batch_norm_backward_reduce
// PROPAGATE: shard.sharding @grid split_axes = {{\[\[}}], [1]]
// PROPAGATE: shard.shard %[[SUMS]]
// PROPAGATE: %[[DX:.+]] = bngrad.batch_norm_backward_elemt
// PROPAGATE: shard.shard %[[DX]] to

// PARTITION-LABEL: func.func @halves(
// PARTITION-SAME: -> tensor<2x3xf32>
// PARTITION: %[[SUMS:.+]], %{{.+}} = bngrad.batch_norm_backward_reduce
// PARTITION-SAME: tensor<2x3xf32>, tensor<i64>
// PARTITION: %[[ALL:.+]] = shard.all_reduce %[[SUMS]] on @grid grid_axes = [0]
// PARTITION: %[[COUNT:.+]] = arith.constant dense<4> : tensor<i64>
// PARTITION: = bngrad.batch_norm_backward_elemt
// PARTITION-SAME: sums(%[[ALL]] : tensor<2x3xf32>) count(%[[COUNT]] : tensor<i64>) : tensor<2x3xf32>
shard.grid @grid(shape = 2x2)
func.func @halves(%dy: tensor<4x6xf32>, %x: tensor<4x6xf32>, %mean: tensor<6xf32>, %inv_std: tensor<6xf32>)
    -> tensor<4x6xf32> {
  %s = shard.sharding @grid split_axes = [[0], [1]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x6xf32>
  %sums, %count = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<4x6xf32>) input(%xs : tensor<4x6xf32>)
      mean(%mean : tensor<6xf32>) : tensor<2x6xf32>, tensor<i64>
  %dx = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<4x6xf32>) input(%xs : tensor<4x6xf32>)
      mean(%mean : tensor<6xf32>) inv_std(%inv_std : tensor<6xf32>) sums(%sums : tensor<2x6xf32>)
      count(%count : tensor<i64>) : tensor<4x6xf32>
  return %dx : tensor<4x6xf32>
}

// -----

// Nothing is annotated: nothing changes.

// PROPAGATE-LABEL: func.func @nothing(
// PROPAGATE-NOT: shard.
// PROPAGATE: return
// PARTITION-LABEL: func.func @nothing(
// PARTITION-NEXT: bngrad.batch_norm_backward grad_output
// PARTITION-NEXT: return
func.func @nothing(%dy: tensor<4x6xf32>, %x: tensor<4x6xf32>, %mean: tensor<6xf32>, %inv_std: tensor<6xf32>)
    -> tensor<4x6xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4x6xf32>) input(%x : tensor<4x6xf32>)
      mean(%mean : tensor<6xf32>) inv_std(%inv_std : tensor<6xf32>) : tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>
  return %0#0 : tensor<4x6xf32>
}

// -----

// Training with shards of channels.

// PROPAGATE-LABEL: func.func @training(
// PROPAGATE: %[[Y:.+]], %[[MEAN:.+]], %{{.+}}, %{{.+}} = bngrad.batch_norm_training
// PROPAGATE-DAG: shard.shard %[[Y]] to %{{.+}} : tensor<4x6xf32>
// PROPAGATE-DAG: shard.shard %[[MEAN]] to %{{.+}} : tensor<6xf32>

// PARTITION-LABEL: func.func @training(
// PARTITION: bngrad.batch_norm_training input(%{{.+}} : tensor<4x3xf32>) offset(%{{.+}} : tensor<3xf32>) : tensor<4x3xf32>, tensor<3xf32>
// PARTITION-NOT: shard.all_reduce
shard.grid @grid(shape = 2)
func.func @training(%x: tensor<4x6xf32>, %offset: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %s = shard.sharding @grid split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x6xf32>
  %0:4 = bngrad.batch_norm_training input(%xs : tensor<4x6xf32>) offset(%offset : tensor<6xf32>) : tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}
