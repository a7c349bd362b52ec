// Two gradients, one of which reads the other's grad_input, with the same
// parameters: per-channel values of the first are needed before the sums of the
// second, so that they are in no group after those.

// RUN: bngrad-opt %s --bngrad-cuda-pipeline=stop-after=group --mlir-print-local-scope | FileCheck %s
// RUN: bngrad-opt %s --bngrad-cuda-pipeline -o /dev/null
// RUN: bngrad-opt %s --bngrad-cpu-pipeline -o /dev/null

// CHECK: shard.all_reduce
// CHECK: math.sqrt
// CHECK: iterator_types = ["reduction", "parallel"]
// CHECK: shard.all_reduce
// CHECK: %{{.+}}:3 = scf.execute_region
// CHECK-COUNT-3: linalg.generic
// CHECK: scf.yield
// CHECK-NOT: linalg.generic
// CHECK: return
!d = tensor<4x3xf32>
!c = tensor<3xf32>
shard.grid @grid(shape = 2)
func.func @chain(%dy: !d, %x: !d, %scale: !c, %mean: !c, %variance: !c) -> (!d, !c, !c) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%xs : !d) scale(%scale : !c) mean(%mean : !c)
      variance(%variance : !c) {epsilon = 1.0e-5 : f64} : !d, !c, !c
  %1:3 = bngrad.batch_norm_backward grad_output(%0#0 : !d) input(%xs : !d) scale(%scale : !c) mean(%mean : !c)
      variance(%variance : !c) {epsilon = 1.0e-5 : f64} : !d, !c, !c
  return %1#0, %1#1, %1#2 : !d, !c, !c
}
