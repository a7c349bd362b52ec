// The result type in the signature has fewer static sizes than the operands:
// the result is still written directly to the out-parameter.
// RUN: bngrad-opt %s --bngrad-cpu-pipeline=stop-after=bufferize | FileCheck %s \
// RUN:   --implicit-check-not=memref.copy --implicit-check-not='memref.alloc{{.*}} : memref<{{[0-9?]+x[0-9?]+x}}'

// CHECK-LABEL: func @f
func.func @f(%dy: tensor<8x6xf32>, %x: tensor<8x6xf32>, %p: tensor<6xf32>) -> tensor<?x6xf32> {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward
      grad_output(%dy : tensor<8x6xf32>) input(%x : tensor<8x6xf32>) mean(%p : tensor<6xf32>) variance(%p : tensor<6xf32>)
      : tensor<?x6xf32>, tensor<6xf32>, tensor<6xf32>
  return %dx : tensor<?x6xf32>
}
