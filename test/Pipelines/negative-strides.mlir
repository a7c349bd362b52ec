// No product of an index and a stride is flagged as not wrapping: with a negative stride it does.

// RUN: bngrad-opt %s --bngrad-cpu-pipeline | FileCheck %s
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="device-arguments=true" --mlir-print-ir-before=gpu-module-to-binary 2>&1 >/dev/null | FileCheck %s

// CHECK-NOT: nuw
// CHECK:     llvm.mul
// CHECK-NOT: nuw

!data = tensor<7x8xf32>
!backwards = memref<8xf32, strided<[-1], offset: 7>>

func.func @gradient(%dy: !data, %x: !data, %mean_m: !backwards, %variance: tensor<8xf32>) -> (!data, tensor<8xf32>) {
  %mean = bufferization.to_tensor %mean_m restrict : !backwards to tensor<8xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !data) input(%x : !data) mean(%mean : tensor<8xf32>)
      variance(%variance : tensor<8xf32>) {feature_dims = array<i64: 1>} : !data, tensor<8xf32>, tensor<8xf32>
  return %0#0, %0#1 : !data, tensor<8xf32>
}
