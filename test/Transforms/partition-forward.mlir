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

// -----

// Of a sharded batch, each process computes its own mean and the squares about it. A first all-reduce gives the mean of the whole
// batch, a second one the sums about that.

// CHECK-LABEL: func.func @training_of_batch(
// CHECK-SAME: %[[X:[^:]+]]: tensor<2x3x5xf16>{{.*}}, %[[SCALE:[^:]+]]: tensor<3xf32>, %[[OFFSET:[^:]+]]: tensor<3xf32>)
// CHECK: %[[FIRST:.+]] = linalg.generic
// CHECK: tensor.extract %[[X]]
// CHECK: %[[SUM:.+]], %{{.+}}, %{{.+}} = bngrad.batch_norm_training_reduce input(%[[X]] : tensor<2x3x5xf16>) shift(%[[FIRST]] : tensor<3xf32>)
// CHECK: %[[OWN:.+]] = linalg.generic {{.*}} ins(%[[SUM]], %[[FIRST]] : {{.*}}
// CHECK: %[[ABOUT:.+]], %[[SQUARES:.+]], %{{.+}} = bngrad.batch_norm_training_reduce input(%[[X]] : tensor<2x3x5xf16>) shift(%[[OWN]] : tensor<3xf32>)
// CHECK: %[[WEIGHTED:.+]] = linalg.generic {{.*}} ins(%[[OWN]] : tensor<3xf32>) {{.*}}tensor<3xf64>
// CHECK: arith.constant 1.000000e+01 : f64
// CHECK: %[[ALL:.+]] = shard.all_reduce %[[WEIGHTED]] on @grid grid_axes = [0] {bngrad.collective = "sums of bngrad.batch_norm_training input(tensor<4x3x5xf16>) scale(tensor<3xf32>) offset(tensor<3xf32>) feature_dims=[1] epsilon=1.000000e-03 statistics=batch"} : tensor<3xf64> -> tensor<3xf64>
// CHECK: %[[CENTER:.+]] = linalg.generic {{.*}} ins(%[[ALL]] : tensor<3xf64>) {{.*}}tensor<3xf32>
// CHECK: arith.constant 2.000000e+01 : f64
// CHECK: %[[MOVED:.+]]:2 = linalg.generic {{.*}} ins(%[[CENTER]], %[[OWN]], %[[ABOUT]], %[[SQUARES]] :
// CHECK-NEXT: ^bb0(%[[K:.+]]: f32, %[[M:.+]]: f32, %[[T:.+]]: f32, %[[Q:.+]]: f32, %{{.+}}: f32, %{{.+}}: f32):
// CHECK: %[[D:.+]] = arith.subf %[[M]], %[[K]]
// CHECK: %[[N:.+]] = arith.constant 1.000000e+01 : f32
// CHECK: %[[ND:.+]] = arith.mulf %[[N]], %[[D]]
// CHECK: %[[T1:.+]] = arith.addf %[[T]], %[[ND]]
// CHECK: %[[TWICE:.+]] = arith.addf %[[T]], %[[T1]]
// CHECK: %[[PRODUCT:.+]] = arith.mulf %[[D]], %[[TWICE]]
// CHECK: %[[Q1:.+]] = arith.addf %[[Q]], %[[PRODUCT]]
// CHECK: linalg.yield %[[T1]], %[[Q1]]
// CHECK: %[[ROW:.+]] = tensor.insert_slice %[[MOVED]]#0 into %{{.+}}[0, 0] [1, 3] [1, 1]
// CHECK: %[[STACKED:.+]] = tensor.insert_slice %[[MOVED]]#1 into %[[ROW]][1, 0] [1, 3] [1, 1]
// CHECK: %[[SUMS:.+]] = shard.all_reduce %[[STACKED]] on @grid grid_axes = [0] {{.*}} : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NOT: shard.all_reduce
// CHECK: %[[ALL_ABOUT:.+]] = tensor.extract_slice %[[SUMS]][0, 0]
// CHECK: %[[ALL_SQUARES:.+]] = tensor.extract_slice %[[SUMS]][1, 0]
// CHECK: %[[CHANNEL:.+]]:4 = linalg.generic {{.*}} ins(%[[CENTER]], %[[ALL_ABOUT]], %[[ALL_SQUARES]], %[[SCALE]], %[[OFFSET]] :
// CHECK: arith.constant 2.000000e+01 : f32
// CHECK: %[[Y:.+]] = bngrad.batch_norm_inference input(%[[X]] : tensor<2x3x5xf16>) offset(%[[CHANNEL]]#1 : tensor<3xf32>) mean(%[[CENTER]] : tensor<3xf32>) inv_std(%[[CHANNEL]]#0 : tensor<3xf32>) : tensor<2x3x5xbf16>
// CHECK: return %[[Y]], %[[CHANNEL]]#2, %[[CHANNEL]]#3 : tensor<2x3x5xbf16>, tensor<3xf64>, tensor<3xf32>
shard.grid @grid(shape = 2)
func.func @training_of_batch(%x: tensor<4x3x5xf16>, %scale: tensor<3xf32>, %offset: tensor<3xf32>)
    -> (tensor<4x3x5xbf16>, tensor<3xf64>, tensor<3xf32>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x3x5xf16>
  %0:4 = bngrad.batch_norm_training input(%xs : tensor<4x3x5xf16>) scale(%scale : tensor<3xf32>) offset(%offset : tensor<3xf32>)
      {epsilon = 1.0e-3 : f64} : tensor<4x3x5xbf16>, tensor<3xf64>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %0#1, %0#3 : tensor<4x3x5xbf16>, tensor<3xf64>, tensor<3xf32>
}

// -----

// Dynamic shards may be empty: their count is 0, and the counts are added up. The mean alone needs no squares.

// CHECK-LABEL: func.func @mean_of_dynamic_batch(
// CHECK: %[[EMPTY:.+]] = arith.cmpi eq
// CHECK: scf.if %[[EMPTY]]
// CHECK: bngrad.batch_norm_training_reduce
// CHECK: %[[ABOUT:.+]], %{{.+}}, %[[COUNT:.+]] = bngrad.batch_norm_training_reduce input(%{{.+}} : tensor<?x3xf64>) shift(%[[OWN:.+]] : tensor<3xf64>)
// CHECK: %[[WEIGHTED:.+]] = linalg.generic {{.*}} ins(%[[OWN]] : tensor<3xf64>)
// CHECK: arith.select
// CHECK: shard.all_reduce %[[WEIGHTED]] {{.*}} : tensor<3xf64> -> tensor<3xf64>
// CHECK: shard.all_reduce %[[COUNT]] {{.*}}"count of bngrad.batch_norm_training {{.*}} : tensor<i64> -> tensor<i64>
// CHECK: %[[MOVED:.+]] = linalg.generic {{.*}} ins(%{{.+}}, %[[OWN]], %[[ABOUT]] :
// CHECK: shard.all_reduce %[[MOVED]] {{.*}} : tensor<3xf64> -> tensor<3xf64>
// CHECK-NOT: shard.all_reduce
// CHECK-NOT: batch_norm_inference
// CHECK: return
shard.grid @grid(shape = 2)
func.func @mean_of_dynamic_batch(%x: tensor<?x3xf64>) -> tensor<3xf64> {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<?x3xf64>
  %0:4 = bngrad.batch_norm_training input(%xs : tensor<?x3xf64>) : tensor<?x3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>
  return %0#1 : tensor<3xf64>
}

// -----

// The sums are those of the processes with the same channels.

// CHECK-LABEL: func.func @training_of_batch_and_channels(
// CHECK-SAME: tensor<2x3x5xf32> {bngrad.split_axes = #shard<axisarray{{.*}}>}, %{{.+}}: tensor<3xf32> {bngrad.split_axes = #shard<axisarray{{.....}}>}
// CHECK-SAME: -> (tensor<2x3x5xf32> {{.*}}, tensor<3xf32> {bngrad.split_axes = #shard<axisarray{{.....}}>})
// CHECK: shard.all_reduce {{.*}} grid_axes = [1] {{.*}} : tensor<3xf64> -> tensor<3xf64>
// CHECK: shard.all_reduce {{.*}} grid_axes = [1] {{.*}} : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NOT: shard.all_reduce
// CHECK: return
shard.grid @grid(shape = 2x2)
func.func @training_of_batch_and_channels(%x: tensor<4x6x5xf32>, %scale: tensor<6xf32>) -> (tensor<4x6x5xf32>, tensor<6xf32>) {
  %s = shard.sharding @grid split_axes = [[1], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x6x5xf32>
  %0:4 = bngrad.batch_norm_training input(%xs : tensor<4x6x5xf32>) scale(%scale : tensor<6xf32>)
      : tensor<4x6x5xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  return %0#0, %0#2 : tensor<4x6x5xf32>, tensor<6xf32>
}

// -----

// Without elements there are no sums.

// CHECK-LABEL: func.func @training_of_nothing(
// CHECK: bngrad.batch_norm_training input(%{{.+}} : tensor<0x3xf32>)
// CHECK-NOT: shard.all_reduce
// CHECK: return
shard.grid @grid(shape = 2)
func.func @training_of_nothing(%x: tensor<0x3xf32>) -> tensor<3xf32> {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<0x3xf32>
  %0:4 = bngrad.batch_norm_training input(%xs : tensor<0x3xf32>) : tensor<0x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#1 : tensor<3xf32>
}

// -----

// A forward pass and its gradient: one annotation is enough.

// CHECK-LABEL: func.func @training_and_gradient(
// CHECK: bngrad.batch_norm_inference
// CHECK: bngrad.batch_norm_backward_reduce grad_output(%{{.+}} : tensor<2x3xf32>)
// CHECK: bngrad.batch_norm_backward_elemt
// CHECK: return
shard.grid @grid(shape = 2)
func.func @training_and_gradient(%x: tensor<4x3xf32>, %dy: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x3xf32>
  %0:4 = bngrad.batch_norm_training input(%xs : tensor<4x3xf32>) {epsilon = 1.0e-3 : f64}
      : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  %1:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4x3xf32>) input(%xs : tensor<4x3xf32>) mean(%0#1 : tensor<3xf32>)
      inv_std(%0#3 : tensor<3xf32>) : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %1#0 : tensor<4x3xf32>, tensor<4x3xf32>
}
