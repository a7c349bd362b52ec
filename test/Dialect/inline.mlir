// RUN: bngrad-opt %s --inline --symbol-dce | FileCheck %s

// Functions with gradients can be inlined.

// CHECK-LABEL: func.func @caller(
// CHECK-NOT: call
// CHECK: bngrad.batch_norm_backward_reduce
// CHECK-NOT: func.func
func.func @caller(%dy: tensor<8x4xf32>, %x: tensor<8x4xf32>, %mean: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<i64>) {
  %0:2 = call @callee(%dy, %x, %mean) : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<i64>)
  return %0#0, %0#1 : tensor<2x4xf32>, tensor<i64>
}

func.func private @callee(%dy: tensor<8x4xf32>, %x: tensor<8x4xf32>, %mean: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<i64>) {
  %0:2 = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<8x4xf32>) input(%x : tensor<8x4xf32>)
      mean(%mean : tensor<4xf32>) : tensor<2x4xf32>, tensor<i64>
  return %0#0, %0#1 : tensor<2x4xf32>, tensor<i64>
}
