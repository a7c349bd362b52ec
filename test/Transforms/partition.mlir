// RUN: bngrad-opt %s --split-input-file --bngrad-partition | FileCheck %s --enable-var-scope
// RUN: bngrad-opt %s --split-input-file --bngrad-to-linalg=stop-after=partition | FileCheck %s --check-prefix=STAGE
// RUN: bngrad-opt %s --split-input-file --bngrad-partition --bngrad-decompose --mlir-print-local-scope | FileCheck %s --check-prefix=LINALG

// Without annotations nothing is partitioned, whatever the function has.

// CHECK-LABEL: func.func @local(
// CHECK-SAME: %{{.+}}: tensor<4x3xf32>, %{{.+}}: tensor<4x3xf32>
// CHECK-NOT: bngrad.grid_shape
// CHECK: cf.br
// CHECK: call @callee
// CHECK: = bngrad.batch_norm_backward grad_output
// CHECK-NOT: shard.all_reduce
shard.grid @unused(shape = 2)
func.func private @callee()
func.func @local(%dy: tensor<4x3xf32>, %x: tensor<4x3xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>,
                 %unused: tensor<7xf32>) -> tensor<4x3xf32> {
  cf.br ^next
^next:
  call @callee() : () -> ()
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4x3xf32>) input(%x : tensor<4x3xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<4x3xf32>
}

// -----

// Batch, from one annotation: one all-reduce of both sums; the count is that of
// the global type.

// CHECK-LABEL: func.func @batch(
// CHECK-SAME: %[[DY:[^:]+]]: tensor<2x3x5x7xf32> {bngrad.split_axes = #shard<axisarray{{\[}}[0]]>}
// CHECK-SAME: %[[X:[^:]+]]: tensor<2x3x5x7xf32> {bngrad.split_axes
// CHECK-SAME: %[[SCALE:[^:]+]]: tensor<3xf32>, %[[MEAN:[^:]+]]: tensor<3xf32>, %[[VAR:[^:]+]]: tensor<3xf32>
// CHECK-SAME: -> (tensor<2x3x5x7xf32> {bngrad.split_axes = {{.*}}}, tensor<3xf32>, tensor<3xf32>)
// CHECK-SAME: attributes {bngrad.grid_shape = array<i64: 2>}
// CHECK: %[[SUMS:.+]], %{{.+}} = bngrad.batch_norm_backward_reduce grad_output(%[[DY]] : tensor<2x3x5x7xf32>) input(%[[X]] : tensor<2x3x5x7xf32>) mean(%[[MEAN]] : tensor<3xf32>) : tensor<2x3xf32>, tensor<i64>
// CHECK: %[[ALL:.+]] = shard.all_reduce %[[SUMS]] on @grid grid_axes = [0] {bngrad.collective = "sums of bngrad.batch_norm_backward grad_output(tensor<4x3x5x7xf32>) input(tensor<4x3x5x7xf32>) scale(tensor<3xf32>) mean(tensor<3xf32>) variance(tensor<3xf32>) feature_dims=[1] epsilon={{.*}} statistics=batch"} : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK: %[[COUNT:.+]] = arith.constant dense<140> : tensor<i64>
// CHECK-NOT: shard.all_reduce
// CHECK: tensor.extract_slice %[[ALL]][0, 0]
// CHECK: tensor.extract_slice %[[ALL]][1, 0]
// CHECK: %[[CHANNEL:.+]]:2 = linalg.generic
// CHECK-NOT: arith.select
// CHECK: %[[DX:.+]] = bngrad.batch_norm_backward_elemt grad_output(%[[DY]] : tensor<2x3x5x7xf32>) input(%[[X]] : tensor<2x3x5x7xf32>) scale(%[[SCALE]] : tensor<3xf32>) mean(%[[MEAN]] : tensor<3xf32>) variance(%[[VAR]] : tensor<3xf32>) sums(%[[ALL]] : tensor<2x3xf32>) count(%[[COUNT]] : tensor<i64>) {epsilon = 1.000000e-05 : f64}
// CHECK: return %[[DX]], %[[CHANNEL]]#0, %[[CHANNEL]]#1

// STAGE-LABEL: func.func @batch(
// STAGE: shard.all_reduce
// STAGE: = bngrad.batch_norm_backward_elemt

// The count is a constant in linalg, too.
// LINALG-LABEL: func.func @batch(
// LINALG: shard.all_reduce
// LINALG-NOT: arith.sitofp
// LINALG: arith.constant 1.400000e+02 : f32
shard.grid @grid(shape = 2)
func.func @batch(%dy: tensor<4x3x5x7xf32>, %x: tensor<4x3x5x7xf32>, %scale: tensor<3xf32>, %mean: tensor<3xf32>,
                 %var: tensor<3xf32>) -> (tensor<4x3x5x7xf32>, tensor<3xf32>, tensor<3xf32>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x3x5x7xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4x3x5x7xf32>) input(%xs : tensor<4x3x5x7xf32>)
      scale(%scale : tensor<3xf32>) mean(%mean : tensor<3xf32>) variance(%var : tensor<3xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<4x3x5x7xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %0#1, %0#2 : tensor<4x3x5x7xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// The annotation may be that of grad_output, of mask or of the result.

// CHECK-LABEL: func.func @of_mask(
// CHECK-SAME: tensor<4x3xbf16>{{.*}}tensor<4x3xbf16>{{.*}}tensor<3xbf16>{{.*}}tensor<3xbf16>{{.*}}tensor<4x3xi1>
// CHECK: %[[SUMS:.+]], %{{.+}} = bngrad.batch_norm_backward_reduce
// CHECK-SAME: mask(
// CHECK-SAME: tensor<2x3xf32>
// CHECK: shard.all_reduce %[[SUMS]] on @grid grid_axes = [0]
// CHECK: = bngrad.batch_norm_backward_elemt
// CHECK-SAME: mask(
// CHECK-LABEL: func.func @of_result(
// CHECK-SAME: tensor<4x3xf16>{{.*}}tensor<4x3xf16>
// CHECK: shard.all_reduce
// CHECK-SAME: tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-LABEL: func.func @of_double(
// CHECK: shard.all_reduce
// CHECK-SAME: tensor<2x3xf64> -> tensor<2x3xf64>
shard.grid @grid(shape = 2)
func.func @of_mask(%dy: tensor<8x3xbf16>, %x: tensor<8x3xbf16>, %mean: tensor<3xbf16>, %inv_std: tensor<3xbf16>,
                   %mask: tensor<8x3xi1>) -> tensor<8x3xbf16> {
  %s = shard.sharding @grid split_axes = [[0], []] : !shard.sharding
  %ms = shard.shard %mask to %s : tensor<8x3xi1>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8x3xbf16>) input(%x : tensor<8x3xbf16>)
      mean(%mean : tensor<3xbf16>) inv_std(%inv_std : tensor<3xbf16>) mask(%ms : tensor<8x3xi1>)
      : tensor<8x3xbf16>, tensor<3xbf16>, tensor<3xbf16>
  return %0#0 : tensor<8x3xbf16>
}
func.func @of_result(%dy: tensor<8x3xf16>, %x: tensor<8x3xf16>, %mean: tensor<3xf16>, %inv_std: tensor<3xf16>)
    -> tensor<8x3xf16> {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8x3xf16>) input(%x : tensor<8x3xf16>)
      mean(%mean : tensor<3xf16>) inv_std(%inv_std : tensor<3xf16>)
      : tensor<8x3xf16>, tensor<3xf16>, tensor<3xf16>
  %1 = shard.shard %0#0 to %s : tensor<8x3xf16>
  return %1 : tensor<8x3xf16>
}
func.func @of_double(%dy: tensor<8x3xf32>, %x: tensor<8x3xf32>, %mean: tensor<3xf64>, %inv_std: tensor<3xf64>)
    -> tensor<8x3xf32> {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %dys = shard.shard %dy to %s : tensor<8x3xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dys : tensor<8x3xf32>) input(%x : tensor<8x3xf32>)
      mean(%mean : tensor<3xf64>) inv_std(%inv_std : tensor<3xf64>)
      : tensor<8x3xf32>, tensor<3xf64>, tensor<3xf64>
  return %0#0 : tensor<8x3xf32>
}

// -----

// A dynamic batch: the count is added up as well, beside the sums.

// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME: tensor<?x?x8xf32>
// CHECK: %[[SUMS:.+]], %[[COUNT:.+]] = bngrad.batch_norm_backward_reduce
// CHECK-SAME: tensor<2x?xf32>, tensor<i64>
// CHECK: %[[ALL:.+]] = shard.all_reduce %[[SUMS]] on @grid grid_axes = [0] {{.*}} : tensor<2x?xf32> -> tensor<2x?xf32>
// CHECK: %[[ALL_COUNT:.+]] = shard.all_reduce %[[COUNT]] on @grid grid_axes = [0] {bngrad.collective = "count of bngrad.batch_norm_backward {{.*}}"} : tensor<i64> -> tensor<i64>
// CHECK-NOT: shard.all_reduce
// CHECK: %[[N:.+]] = tensor.extract %[[ALL_COUNT]][]
// CHECK: arith.cmpi eq, %[[N]]
// CHECK: = bngrad.batch_norm_backward_elemt
// CHECK-SAME: sums(%[[ALL]] : tensor<2x?xf32>) count(%[[ALL_COUNT]] : tensor<i64>)
shard.grid @grid(shape = 3)
func.func @dynamic(%dy: tensor<?x?x8xf32>, %x: tensor<?x?x8xf32>, %mean: tensor<?xf32>, %inv_std: tensor<?xf32>)
    -> (tensor<?x?x8xf32>, tensor<?xf32>, tensor<?xf32>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<?x?x8xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x?x8xf32>) input(%xs : tensor<?x?x8xf32>)
      mean(%mean : tensor<?xf32>) inv_std(%inv_std : tensor<?xf32>) : tensor<?x?x8xf32>, tensor<?xf32>, tensor<?xf32>
  return %0#0, %0#1, %0#2 : tensor<?x?x8xf32>, tensor<?xf32>, tensor<?xf32>
}

// -----

// Channels alone: no sums run over processes, and the op stays one.

// CHECK-LABEL: func.func @channels(
// CHECK-SAME: tensor<4x3x8xf32>{{.*}}tensor<4x3x8xf32>{{.*}}%{{.+}}: tensor<3xf32> {bngrad.split_axes = #shard<axisarray{{\[}}[0]]>}
// CHECK-NOT: shard.all_reduce
// CHECK: = bngrad.batch_norm_backward grad_output(%{{.+}} : tensor<4x3x8xf32>)
// CHECK-SAME: tensor<4x3x8xf32>, tensor<3xf32>, tensor<3xf32>
// CHECK-NOT: shard.all_reduce
// CHECK: return
shard.grid @grid(shape = 2)
func.func @channels(%dy: tensor<4x6x8xf32>, %x: tensor<4x6x8xf32>, %mean: tensor<6xf32>, %inv_std: tensor<6xf32>)
    -> (tensor<4x6x8xf32>, tensor<6xf32>, tensor<6xf32>) {
  %s = shard.sharding @grid split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x6x8xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4x6x8xf32>) input(%xs : tensor<4x6x8xf32>)
      mean(%mean : tensor<6xf32>) inv_std(%inv_std : tensor<6xf32>) : tensor<4x6x8xf32>, tensor<6xf32>, tensor<6xf32>
  return %0#0, %0#1, %0#2 : tensor<4x6x8xf32>, tensor<6xf32>, tensor<6xf32>
}

// -----

// Batch and channels on a grid of two axes: the sum runs along that of the
// batch. Batch and height: along both, in ascending order.

// CHECK-LABEL: func.func @batch_and_channels(
// CHECK-SAME: tensor<2x3x8xf32>
// CHECK: shard.all_reduce %{{.+}} on @grid grid_axes = [1] {{.*}} : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK: arith.constant dense<64> : tensor<i64>
// CHECK-LABEL: func.func @batch_and_height(
// CHECK-SAME: tensor<8x3x1xf32>
// CHECK: shard.all_reduce %{{.+}} on @grid grid_axes = [0, 1] {{.*}} : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK: arith.constant dense<64> : tensor<i64>
// CHECK-LABEL: func.func @height_alone(
// CHECK-SAME: tensor<8x3x2xf32>
// CHECK: shard.all_reduce %{{.+}} on @grid grid_axes = [1] {{.*}}
shard.grid @grid(shape = 2x4)
func.func @batch_and_channels(%dy: tensor<8x6x8xf32>, %x: tensor<8x6x8xf32>, %mean: tensor<6xf32>,
                              %inv_std: tensor<6xf32>) -> tensor<8x6x8xf32> {
  %s = shard.sharding @grid split_axes = [[1], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<8x6x8xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8x6x8xf32>) input(%xs : tensor<8x6x8xf32>)
      mean(%mean : tensor<6xf32>) inv_std(%inv_std : tensor<6xf32>) : tensor<8x6x8xf32>, tensor<6xf32>, tensor<6xf32>
  return %0#0 : tensor<8x6x8xf32>
}
func.func @batch_and_height(%dy: tensor<16x3x4xf32>, %x: tensor<16x3x4xf32>, %mean: tensor<3xf32>,
                            %inv_std: tensor<3xf32>) -> tensor<16x3x4xf32> {
  %s = shard.sharding @grid split_axes = [[0], [], [1]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<16x3x4xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<16x3x4xf32>) input(%xs : tensor<16x3x4xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) : tensor<16x3x4xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<16x3x4xf32>
}
func.func @height_alone(%dy: tensor<8x3x8xf32>, %x: tensor<8x3x8xf32>, %mean: tensor<3xf32>,
                        %inv_std: tensor<3xf32>) -> tensor<8x3x8xf32> {
  %s = shard.sharding @grid split_axes = [[], [], [1]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<8x3x8xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8x3x8xf32>) input(%xs : tensor<8x3x8xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) : tensor<8x3x8xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<8x3x8xf32>
}

// -----

// A grid of three axes, one dim split along two of them, NHWC.

// CHECK-LABEL: func.func @three_axes(
// CHECK-SAME: tensor<1x4x5x3xf32>
// CHECK-SAME: attributes {bngrad.grid_shape = array<i64: 2, 2, 2>}
// CHECK: = bngrad.batch_norm_backward_reduce
// CHECK-SAME: {feature_dims = array<i64: 3>} : tensor<2x3xf32>, tensor<i64>
// CHECK: shard.all_reduce %{{.+}} on @grid grid_axes = [0, 2]
// CHECK: arith.constant dense<80> : tensor<i64>
shard.grid @grid(shape = 2x2x2)
func.func @three_axes(%dy: tensor<4x4x5x6xf32>, %x: tensor<4x4x5x6xf32>, %mean: tensor<6xf32>,
                      %inv_std: tensor<6xf32>) -> tensor<4x4x5x6xf32> {
  %s = shard.sharding @grid split_axes = [[2, 0], [], [], [1]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x4x5x6xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4x4x5x6xf32>) input(%xs : tensor<4x4x5x6xf32>)
      mean(%mean : tensor<6xf32>) inv_std(%inv_std : tensor<6xf32>) {feature_dims = array<i64: 3>}
      : tensor<4x4x5x6xf32>, tensor<6xf32>, tensor<6xf32>
  return %0#0 : tensor<4x4x5x6xf32>
}

// -----

// Local gradients of the parameters are of the sums of the shard; grad_input is
// of those of all.

// CHECK-LABEL: func.func @local_parameters(
// CHECK: %[[SUMS:.+]], %[[COUNT:.+]] = bngrad.batch_norm_backward_reduce
// CHECK: %[[ALL:.+]] = shard.all_reduce %[[SUMS]]
// CHECK: tensor.extract_slice %[[SUMS]][0, 0]
// CHECK: tensor.extract_slice %[[SUMS]][1, 0]
// CHECK: = bngrad.batch_norm_backward_elemt
// CHECK-SAME: sums(%[[ALL]]
// CHECK-LABEL: func.func @local_parameters_alone(
// CHECK-NOT: shard.all_reduce
// CHECK: = bngrad.batch_norm_backward grad_output
// CHECK-NOT: shard.all_reduce
// CHECK-LABEL: func.func @local_parameters_dynamic(
// CHECK: %[[SUMS:.+]], %[[COUNT:.+]] = bngrad.batch_norm_backward_reduce
// CHECK: shard.all_reduce %[[SUMS]]
// CHECK: shard.all_reduce %[[COUNT]]
// CHECK: tensor.extract %[[COUNT]][]
shard.grid @grid(shape = 2)
func.func @local_parameters(%dy: tensor<4x3xf32>, %x: tensor<4x3xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>)
    -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x3xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4x3xf32>) input(%xs : tensor<4x3xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) {local_parameter_gradients}
      : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %0#1, %0#2 : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>
}
func.func @local_parameters_alone(%dy: tensor<4x3xf32>, %x: tensor<4x3xf32>, %mean: tensor<3xf32>,
                                  %inv_std: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x3xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4x3xf32>) input(%xs : tensor<4x3xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) {local_parameter_gradients}
      : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#1, %0#2 : tensor<3xf32>, tensor<3xf32>
}
func.func @local_parameters_dynamic(%dy: tensor<?x3xf32>, %x: tensor<?x3xf32>, %mean: tensor<3xf32>,
                                    %inv_std: tensor<3xf32>) -> (tensor<?x3xf32>, tensor<3xf32>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<?x3xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x3xf32>) input(%xs : tensor<?x3xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) {local_parameter_gradients}
      : tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %0#1 : tensor<?x3xf32>, tensor<3xf32>
}

// -----

// Global statistics: grad_input needs no sums, the others do, unless they are
// local.

// CHECK-LABEL: func.func @frozen_grad_input(
// CHECK-NOT: shard.all_reduce
// CHECK: = bngrad.batch_norm_backward grad_output
// CHECK-NOT: shard.all_reduce
// CHECK-LABEL: func.func @frozen_all(
// CHECK: shard.all_reduce
// CHECK-NOT: shard.all_reduce
// CHECK: = bngrad.batch_norm_backward_elemt
// CHECK-NOT: sums(
// CHECK-LABEL: func.func @frozen_local(
// CHECK-NOT: shard.all_reduce
// CHECK: return
// CHECK-LABEL: func.func @grad_offset_alone(
// CHECK: shard.all_reduce
// CHECK-NOT: bngrad.batch_norm_backward_elemt
// CHECK-NOT: count
// CHECK: return
shard.grid @grid(shape = 2)
func.func @frozen_grad_input(%dy: tensor<?x3xf32>, %x: tensor<?x3xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>)
    -> tensor<?x3xf32> {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<?x3xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x3xf32>) input(%xs : tensor<?x3xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) {statistics = #bngrad.statistics<global>}
      : tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<?x3xf32>
}
func.func @frozen_all(%dy: tensor<4x3xf32>, %x: tensor<4x3xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>)
    -> (tensor<4x3xf32>, tensor<3xf32>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x3xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4x3xf32>) input(%xs : tensor<4x3xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) {statistics = #bngrad.statistics<global>}
      : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %0#1 : tensor<4x3xf32>, tensor<3xf32>
}
func.func @frozen_local(%dy: tensor<4x3xf32>, %x: tensor<4x3xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>)
    -> (tensor<4x3xf32>, tensor<3xf32>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x3xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4x3xf32>) input(%xs : tensor<4x3xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>)
      {statistics = #bngrad.statistics<global>, local_parameter_gradients}
      : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %0#1 : tensor<4x3xf32>, tensor<3xf32>
}
func.func @grad_offset_alone(%dy: tensor<?x3xf32>, %x: tensor<?x3xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>)
    -> tensor<3xf32> {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<?x3xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x3xf32>) input(%xs : tensor<?x3xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) : tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#2 : tensor<3xf32>
}

// -----

// Nothing to sum, and replicated tensors: no all-reduce.

// CHECK-LABEL: func.func @no_elements(
// CHECK-NOT: shard.all_reduce
// CHECK-LABEL: func.func @replicated(
// CHECK-SAME: tensor<5x3xf32>
// CHECK-NOT: bngrad.split_axes
// CHECK-NOT: shard.all_reduce
shard.grid @grid(shape = 2)
func.func @no_elements(%dy: tensor<0x3xf32>, %x: tensor<0x3xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>)
    -> (tensor<0x3xf32>, tensor<3xf32>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<0x3xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<0x3xf32>) input(%xs : tensor<0x3xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) : tensor<0x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %0#1 : tensor<0x3xf32>, tensor<3xf32>
}
func.func @replicated(%dy: tensor<5x3xf32>, %x: tensor<5x3xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>)
    -> tensor<5x3xf32> {
  %s = shard.sharding @grid split_axes = [[]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<5x3xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<5x3xf32>) input(%xs : tensor<5x3xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) : tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<5x3xf32>
}

// -----

// The halves: the sums and the count are those of the whole batch, and elemt
// without a count has that of its global type.

// CHECK-LABEL: func.func @halves(
// CHECK: %[[SUMS:.+]], %[[COUNT:.+]] = bngrad.batch_norm_backward_reduce
// CHECK: %[[ALL:.+]] = shard.all_reduce %[[SUMS]]
// CHECK: %[[ALL_COUNT:.+]] = shard.all_reduce %[[COUNT]]
// CHECK: %[[DX:.+]] = bngrad.batch_norm_backward_elemt
// CHECK-SAME: sums(%[[ALL]] : tensor<2x3xf32>) count(%[[ALL_COUNT]] : tensor<i64>)
// CHECK: return %[[DX]], %[[ALL]], %[[ALL_COUNT]]
// CHECK-LABEL: func.func @static_elemt(
// CHECK: %[[COUNT:.+]] = arith.constant dense<8> : tensor<i64>
// CHECK: = bngrad.batch_norm_backward_elemt
// CHECK-SAME: count(%[[COUNT]] : tensor<i64>)
// CHECK-LABEL: func.func @dynamic_elemt(
// CHECK: %{{.+}}, %[[PART:.+]] = bngrad.batch_norm_backward_reduce
// CHECK: %[[COUNT:.+]] = shard.all_reduce %[[PART]]
// CHECK: = bngrad.batch_norm_backward_elemt
// CHECK-SAME: count(%[[COUNT]] : tensor<i64>)
shard.grid @grid(shape = 2)
func.func @halves(%dy: tensor<?x3xf32>, %x: tensor<?x3xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>)
    -> (tensor<?x3xf32>, tensor<2x3xf32>, tensor<i64>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<?x3xf32>
  %sums, %count = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<?x3xf32>) input(%xs : tensor<?x3xf32>)
      mean(%mean : tensor<3xf32>) : tensor<2x3xf32>, tensor<i64>
  %dx = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<?x3xf32>) input(%xs : tensor<?x3xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) sums(%sums : tensor<2x3xf32>)
      count(%count : tensor<i64>) : tensor<?x3xf32>
  return %dx, %sums, %count : tensor<?x3xf32>, tensor<2x3xf32>, tensor<i64>
}
func.func @static_elemt(%dy: tensor<8x3xf32>, %x: tensor<8x3xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>,
                        %sums: tensor<2x3xf32>) -> tensor<8x3xf32> {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<8x3xf32>
  %dx = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<8x3xf32>) input(%xs : tensor<8x3xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) sums(%sums : tensor<2x3xf32>) : tensor<8x3xf32>
  return %dx : tensor<8x3xf32>
}
func.func @dynamic_elemt(%dy: tensor<?x3xf32>, %x: tensor<?x3xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>,
                         %sums: tensor<2x3xf32>) -> tensor<?x3xf32> {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<?x3xf32>
  %dx = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<?x3xf32>) input(%xs : tensor<?x3xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) sums(%sums : tensor<2x3xf32>) : tensor<?x3xf32>
  return %dx : tensor<?x3xf32>
}

// -----

// Ops of upstream around a gradient, a shared argument, and an argument that is
// several operands. The all-reduces of both gradients are two: one needs the
// result of the other.

// CHECK-LABEL: func.func @neighbours(
// CHECK-SAME: %[[DY:[^:]+]]: tensor<4x3xf32>
// CHECK: %[[SUM:.+]] = tosa.add
// CHECK-SAME: (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
// CHECK: = bngrad.batch_norm_backward_reduce grad_output(%[[SUM]]
// CHECK: shard.all_reduce
// CHECK: %[[DX:.+]] = bngrad.batch_norm_backward_elemt grad_output(%[[SUM]]
// CHECK: = bngrad.batch_norm_backward_reduce grad_output(%[[DX]]
// CHECK: shard.all_reduce
// CHECK: = bngrad.batch_norm_backward_elemt grad_output(%[[DX]]
shard.grid @grid(shape = 2)
func.func @neighbours(%dy: tensor<8x3xf32>, %x: tensor<8x3xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>)
    -> (tensor<8x3xf32>, tensor<8x3xf32>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<8x3xf32>
  %sum = tosa.add %dy, %xs : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%sum : tensor<8x3xf32>) input(%xs : tensor<8x3xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) : tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>
  %1:3 = bngrad.batch_norm_backward grad_output(%0#0 : tensor<8x3xf32>) input(%dy : tensor<8x3xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%mean : tensor<3xf32>) : tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %1#0, %sum : tensor<8x3xf32>, tensor<8x3xf32>
}

// -----

// Processes compare the text, so that all digits of epsilon count.

// CHECK-LABEL: func.func @epsilon(
// CHECK: shard.all_reduce {{.*}} epsilon=1.00000001{{[0-9]+}}E-5 statistics
!d = tensor<4x3xf32>
!c = tensor<3xf32>
shard.grid @grid(shape = 2)
func.func @epsilon(%dy: !d, %x: !d, %mean: !c, %variance: !c) -> !d {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%xs : !d) mean(%mean : !c) variance(%variance : !c)
      {epsilon = 1.00000001e-5 : f64} : !d, !c, !c
  return %0#0 : !d
}
