// Between a forward pass and its gradient, the condition of a ReLU follows from the input, which both read: neither the
// condition nor the masked gradient is stored.

// RUN: bngrad-opt %s --bngrad-to-linalg --mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: func.func @select(
// CHECK-SAME:    %[[X:.+]]: tensor<8x4x6xf32>, %[[DY:[^:]+]]: tensor<8x4x6xf32>)
// CHECK-NOT:     xi1>
// The forward pass has one tensor of elements as a result.
// CHECK:         %[[RELU:.+]] = linalg.generic {{.*}}["parallel", "parallel", "parallel"]{{.*}} ins(%[[X]], %{{[^:]+}} : tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) outs(
// CHECK:           arith.maximumf
// CHECK:         } -> tensor<8x4x6xf32>
// CHECK:         linalg.generic {{.*}}["reduction", "parallel", "reduction"]{{.*}} ins(%[[X]], {{.*}}%[[DY]],
// CHECK:           %[[K:.+]] = arith.cmpf ogt
// CHECK:           arith.select %[[K]]
// CHECK:         } -> (tensor<4xf32>, tensor<4xf32>)
// CHECK:         %[[DX:.+]] = linalg.generic {{.*}}["parallel", "parallel", "parallel"]{{.*}} ins(%[[X]], {{.*}}%[[DY]],
// CHECK:           arith.cmpf ogt
// CHECK:         return %[[RELU]], %[[DX]]
func.func @select(%x: tensor<8x4x6xf32>, %dy: tensor<8x4x6xf32>) -> (tensor<8x4x6xf32>, tensor<8x4x6xf32>) {
  %y, %mean, %variance, %inv_std = bngrad.batch_norm_training input(%x : tensor<8x4x6xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  %zero = arith.constant dense<0.0> : tensor<8x4x6xf32>
  %relu = arith.maximumf %y, %zero : tensor<8x4x6xf32>
  %k = arith.cmpf ogt, %relu, %zero : tensor<8x4x6xf32>
  %d = arith.select %k, %dy, %zero : tensor<8x4x6xi1>, tensor<8x4x6xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%d : tensor<8x4x6xf32>) input(%x : tensor<8x4x6xf32>)
      mean(%mean : tensor<4xf32>) inv_std(%inv_std : tensor<4xf32>) : tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>
  return %relu, %0#0 : tensor<8x4x6xf32>, tensor<8x4x6xf32>
}

// CHECK-LABEL: func.func @mask(
// CHECK-NOT:     xi1>
// CHECK:         return
func.func @mask(%x: tensor<8x4x6xf32>, %dy: tensor<8x4x6xf32>) -> (tensor<8x4x6xf32>, tensor<8x4x6xf32>) {
  %y, %mean, %variance, %inv_std = bngrad.batch_norm_training input(%x : tensor<8x4x6xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  %zero = arith.constant dense<0.0> : tensor<8x4x6xf32>
  %relu = arith.maximumf %y, %zero : tensor<8x4x6xf32>
  %k = arith.cmpf ogt, %relu, %zero : tensor<8x4x6xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8x4x6xf32>) input(%x : tensor<8x4x6xf32>)
      mean(%mean : tensor<4xf32>) inv_std(%inv_std : tensor<4xf32>) mask(%k : tensor<8x4x6xi1>)
      : tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>
  return %relu, %0#0 : tensor<8x4x6xf32>, tensor<8x4x6xf32>
}

// The gradient of another batch norm does not read this input, so the condition is computed once, beside the output.
// CHECK-LABEL: func.func @other_input(
// CHECK-SAME:    %[[X:.+]]: tensor<8x4x6xf32>, %{{[^:]+}}: tensor<8x4x6xf32>, %[[Z:[^:]+]]: tensor<8x4x6xf32>)
// CHECK:         %[[BOTH:.+]]:2 = linalg.generic {{.*}}["parallel", "parallel", "parallel"]
// CHECK:         linalg.generic {{.*}}["reduction", "parallel", "reduction"]{{.*}} ins(%[[BOTH]]#{{.}}, %[[Z]],
// CHECK:         return %[[BOTH]]#
func.func @other_input(%x: tensor<8x4x6xf32>, %dy: tensor<8x4x6xf32>, %z: tensor<8x4x6xf32>) -> (tensor<8x4x6xf32>, tensor<8x4x6xf32>) {
  %y, %mean, %variance, %inv_std = bngrad.batch_norm_training input(%x : tensor<8x4x6xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  %zero = arith.constant dense<0.0> : tensor<8x4x6xf32>
  %relu = arith.maximumf %y, %zero : tensor<8x4x6xf32>
  %k = arith.cmpf ogt, %relu, %zero : tensor<8x4x6xf32>
  %d = arith.select %k, %dy, %zero : tensor<8x4x6xi1>, tensor<8x4x6xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%d : tensor<8x4x6xf32>) input(%z : tensor<8x4x6xf32>)
      mean(%mean : tensor<4xf32>) inv_std(%inv_std : tensor<4xf32>) : tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>
  return %relu, %0#0 : tensor<8x4x6xf32>, tensor<8x4x6xf32>
}

// Equal operands are merged first, so that a body has one copy of its producer's.
// CHECK-LABEL: func.func @squares(
// CHECK:         ["reduction", "parallel", "reduction"]{{.*}} ins(%{{[^,]+}}, {{.*}}tensor<4xf32>) outs(%{{[^,]+}}, %{{[^:]+}} : tensor<4xf32>, tensor<4xf32>)
// CHECK:         ["reduction", "parallel", "reduction"]
// CHECK-COUNT-6:   arith.mulf
// CHECK-NOT:       arith.mulf
// CHECK:           linalg.yield
func.func @squares(%x: tensor<8x4x6xf32>, %dy: tensor<8x4x6xf32>) -> (tensor<8x4x6xf32>, tensor<8x4x6xf32>) {
  %y, %mean, %variance, %inv_std = bngrad.batch_norm_training input(%x : tensor<8x4x6xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  %z0 = arith.mulf %y, %y : tensor<8x4x6xf32>
  %z1 = arith.mulf %z0, %z0 : tensor<8x4x6xf32>
  %z2 = arith.mulf %z1, %z1 : tensor<8x4x6xf32>
  %d = arith.mulf %z2, %dy : tensor<8x4x6xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%d : tensor<8x4x6xf32>) input(%x : tensor<8x4x6xf32>)
      mean(%mean : tensor<4xf32>) inv_std(%inv_std : tensor<4xf32>) : tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>
  return %z2, %0#0 : tensor<8x4x6xf32>, tensor<8x4x6xf32>
}
