// A buffer that is written between bufferization.to_tensor and the last use of its tensor is an error, as groups
// would read it later. Writes before and after are valid.

// RUN: not bngrad-opt %s --bngrad-cpu-pipeline 2>&1 | FileCheck %s
// RUN: not bngrad-opt %s --bngrad-cuda-pipeline 2>&1 | FileCheck %s
// CHECK: stores.mlir:[[#@LINE+19]]:{{[0-9]+}}: error: 'memref.store' op expected a buffer that is not written before the last use of its tensor, got a write before 'linalg.generic' reads it
// CHECK: stores.mlir:[[#@LINE+14]]:{{[0-9]+}}: note: the buffer's tensor
// CHECK-NOT: error:

// RUN: not bngrad-compile %s -o %t.o 2>&1 | FileCheck %s --check-prefix=TOOL
// TOOL: bngrad-compile: error: {{.+}}stores.mlir:[[#@LINE+14]]:{{[0-9]+}}: 'memref.store' op expected a buffer that is not written before the last use of its tensor, got a write before 'linalg.generic' reads it{{$}}
// TOOL-NOT: {{.}}

// RUN: sed s/between/elsewhere/ %s | grep -v BAD | bngrad-opt --bngrad-cpu-pipeline -o /dev/null

!d = tensor<8x4xf32>
!p = tensor<4xf32>
func.func @between(%m: memref<8x4xf32>, %dy: !d, %mean: !p, %r: !p, %i: index, %v: f32) -> !d {
  memref.store %v, %m[%i, %i] : memref<8x4xf32>

  %x = bufferization.to_tensor %m restrict : memref<8x4xf32> to !d
  %sums, %count = bngrad.batch_norm_backward_reduce grad_output(%dy : !d) input(%x : !d) mean(%mean : !p)
      : tensor<2x4xf32>, tensor<i64>

  memref.store %v, %m[%i, %i] : memref<8x4xf32> // BAD
  %dx = bngrad.batch_norm_backward_elemt grad_output(%dy : !d) input(%x : !d) mean(%mean : !p) inv_std(%r : !p)
      sums(%sums : tensor<2x4xf32>) count(%count : tensor<i64>) : !d
  memref.store %v, %m[%i, %i] : memref<8x4xf32>
  return %dx : !d
}
