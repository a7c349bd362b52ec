// Training over processes reads its shard twice: for its mean and the squares about that, which are one group, and for the
// output. The per-channel values in between belong to neither.

// RUN: bngrad-opt %s --bngrad-cpu-pipeline=stop-after=group --mlir-print-local-scope | FileCheck %s
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_90 stop-after=group" --mlir-print-local-scope | FileCheck %s
// RUN: bngrad-opt %s --bngrad-cpu-pipeline -o /dev/null
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_90 device-arguments=true" -o /dev/null

// A transpose of the input is folded: nothing transposed is left.

// CHECK-LABEL: func.func @training(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<4x64x6xf32>
// CHECK-NOT:     linalg.transpose
// CHECK:         scf.execute_region
// CHECK-COUNT-5:   linalg.generic {{.*}} {bngrad.schedule =
// CHECK:         shard.all_reduce {{.*}} : tensor<6xf64> -> tensor<6xf64>
// CHECK:         linalg.generic
// CHECK-NOT:     bngrad.schedule
// CHECK:         shard.all_reduce {{.*}} : tensor<2x6xf32> -> tensor<2x6xf32>
// CHECK:         scf.execute_region
// CHECK-COUNT-2:   linalg.generic {{.*}} {bngrad.schedule =
// CHECK-NOT:     linalg.generic
// CHECK-NOT:     linalg.transpose
// CHECK:         return
shard.grid @grid(shape = 2)
func.func @training(%x: tensor<8x64x6xf32>, %scale: tensor<6xf32>) -> (tensor<8x64x6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<8x64x6xf32>
  %empty = tensor.empty() : tensor<8x6x64xf32>
  %t = linalg.transpose ins(%xs : tensor<8x64x6xf32>) outs(%empty : tensor<8x6x64xf32>) permutation = [0, 2, 1]
  %0:4 = bngrad.batch_norm_training input(%t : tensor<8x6x64xf32>) scale(%scale : tensor<6xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<8x6x64xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  %back = tensor.empty() : tensor<8x64x6xf32>
  %y = linalg.transpose ins(%0#0 : tensor<8x6x64xf32>) outs(%back : tensor<8x64x6xf32>) permutation = [0, 2, 1]
  return %y, %0#1, %0#3 : tensor<8x64x6xf32>, tensor<6xf32>, tensor<6xf32>
}

// Two layers that do not depend on each other send one message for their means, and one for their sums.

// CHECK-LABEL: func.func @two_layers(
// CHECK:         shard.all_reduce {{.*}} : tensor<9xf64> -> tensor<9xf64>
// CHECK:         shard.all_reduce {{.*}} : tensor<18xf32> -> tensor<18xf32>
// CHECK-NOT:     shard.all_reduce
// CHECK:         return
func.func @two_layers(%x: tensor<8x6xf32>, %z: tensor<8x3xf32>) -> (tensor<8x6xf32>, tensor<8x3xf32>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<8x6xf32>
  %zs = shard.shard %z to %s : tensor<8x3xf32>
  %0:4 = bngrad.batch_norm_training input(%xs : tensor<8x6xf32>) : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  %1:4 = bngrad.batch_norm_training input(%zs : tensor<8x3xf32>) : tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %1#0 : tensor<8x6xf32>, tensor<8x3xf32>
}
