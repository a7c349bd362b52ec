// An operand that is not valid is one error, and the end: nothing is printed, or compiled further.

// RUN: not bngrad-opt %s --bngrad-decompose 2>&1 | FileCheck %s

// CHECK:     error: 'bngrad.batch_norm_backward' op expected grad_output to have the element type of input, 'f32', got 'f64'
// CHECK-NOT: error
// CHECK-NOT: func.func
func.func @other_type(%dy: tensor<8x4xf64>, %x: tensor<8x4xf32>, %p: tensor<4xf32>) -> tensor<8x4xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8x4xf64>) input(%x : tensor<8x4xf32>)
      mean(%p : tensor<4xf32>) variance(%p : tensor<4xf32>) {feature_dims = array<i64: 1>} : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  return %0#0 : tensor<8x4xf32>
}
