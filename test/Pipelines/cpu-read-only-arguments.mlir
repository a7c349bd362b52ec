// A tensor is a value: compiled code never writes to the buffer of an argument.
// RUN: bngrad-opt %s --bngrad-cpu-pipeline="stop-after=apply schedule=#bngrad.schedule<loops>" | FileCheck %s
// RUN: bngrad-runner %s --entry=relu_gradient_is_returned_too --arg=random:1 --arg=random:2 --arg=random:3 --check | FileCheck %s --check-prefix=EXECUTED
// EXECUTED: result 0 grad_input {{.+}} ok

// CHECK-LABEL: func @relu_gradient_is_returned_too
// CHECK-SAME:    (%[[DY:[^:]+]]: memref<8x4xf32>, %[[Y:[^:]+]]: memref
// CHECK-NOT:     memref.store %{{.+}}, %[[DY]][
// CHECK-NOT:     memref.store %{{.+}}, %[[Y]][
// CHECK:         return
func.func @relu_gradient_is_returned_too(%dy: tensor<8x4xf32>, %y: tensor<8x4xf32>, %p: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %d = arith.mulf %dy, %y : tensor<8x4xf32>
  %dx, %dscale, %doffset = bngrad.batch_norm_backward
      grad_output(%d : tensor<8x4xf32>) input(%y : tensor<8x4xf32>) mean(%p : tensor<4xf32>) inv_std(%p : tensor<4xf32>)
      : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  return %dx, %d : tensor<8x4xf32>, tensor<8x4xf32>
}

// A value that the reduction stores is written to its out-parameter.
// CHECK-LABEL: func @value_of_the_reduction
// CHECK-NOT:     memref.copy
// CHECK-NOT:     memref.alloc() {{.*}}: memref<8x4xf32>
// CHECK:         return
func.func @value_of_the_reduction(%dy: tensor<8x4xf32>, %y: tensor<8x4xf32>, %p: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %d = arith.mulf %dy, %y : tensor<8x4xf32>
  %dx, %dscale, %doffset = bngrad.batch_norm_backward
      grad_output(%d : tensor<8x4xf32>) input(%y : tensor<8x4xf32>) mean(%p : tensor<4xf32>) inv_std(%p : tensor<4xf32>)
      : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  return %d, %doffset : tensor<8x4xf32>, tensor<4xf32>
}
