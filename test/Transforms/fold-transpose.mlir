// RUN: bngrad-opt %s --split-input-file --bngrad-fold-transpose | FileCheck %s

// An NCHW gradient between transposes to and from NHWC is an NHWC gradient.

// CHECK-LABEL: func.func @between_transposes(
// CHECK-SAME: %[[A:[^:]+]]: tensor<2x8x5x4xf32>, %[[B:[^:]+]]: tensor<2x8x5x4xf32>
// CHECK-NOT: linalg.transpose
// CHECK: %[[DX:.+]], %{{.+}}, %{{.+}} = bngrad.batch_norm_backward grad_output(%[[A]] : tensor<2x8x5x4xf32>) input(%[[B]] : tensor<2x8x5x4xf32>)
// CHECK-SAME: {feature_dims = array<i64: 3>} : tensor<2x8x5x4xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK-NOT: linalg.transpose
// CHECK: return %[[DX]]
func.func @between_transposes(%a: tensor<2x8x5x4xf32>, %b: tensor<2x8x5x4xf32>, %mean: tensor<4xf32>, %variance: tensor<4xf32>)
    -> tensor<2x8x5x4xf32> {
  %empty = tensor.empty() : tensor<2x4x8x5xf32>
  %dy = linalg.transpose ins(%a : tensor<2x8x5x4xf32>) outs(%empty : tensor<2x4x8x5xf32>) permutation = [0, 3, 1, 2]
  %x = linalg.transpose ins(%b : tensor<2x8x5x4xf32>) outs(%empty : tensor<2x4x8x5xf32>) permutation = [0, 3, 1, 2]
  %dx, %ds, %do = bngrad.batch_norm_backward grad_output(%dy : tensor<2x4x8x5xf32>) input(%x : tensor<2x4x8x5xf32>)
      mean(%mean : tensor<4xf32>) variance(%variance : tensor<4xf32>) : tensor<2x4x8x5xf32>, tensor<4xf32>, tensor<4xf32>
  %empty2 = tensor.empty() : tensor<2x8x5x4xf32>
  %r = linalg.transpose ins(%dx : tensor<2x4x8x5xf32>) outs(%empty2 : tensor<2x8x5x4xf32>) permutation = [0, 2, 3, 1]
  return %r : tensor<2x8x5x4xf32>
}

// -----

// grad_input is transposed only if its reader needs it; mask is transposed, too.

// CHECK-LABEL: func.func @mask_and_dynamic_sizes(
// CHECK-SAME: %[[A:[^:]+]]: tensor<?x8x4xf32>, %[[B:[^:]+]]: tensor<?x8x4xf32>, %[[M:[^:]+]]: tensor<?x8x4xi1>
// CHECK: %[[DX:.+]], %{{.+}}, %{{.+}} = bngrad.batch_norm_backward grad_output(%[[A]] : tensor<?x8x4xf32>) input(%[[B]] : tensor<?x8x4xf32>)
// CHECK-SAME: mask(%[[M]] : tensor<?x8x4xi1>) {feature_dims = array<i64: 2>} : tensor<?x8x4xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK: %[[R:.+]] = linalg.transpose ins(%[[DX]] : tensor<?x8x4xf32>) outs(%{{.+}} : tensor<4x?x8xf32>) permutation = [2, 0, 1]
// CHECK: return %[[R]]
func.func @mask_and_dynamic_sizes(%a: tensor<?x8x4xf32>, %b: tensor<?x8x4xf32>, %m: tensor<?x8x4xi1>, %mean: tensor<4xf32>,
                                  %inv_std: tensor<4xf32>, %n: index) -> tensor<4x?x8xf32> {
  %empty = tensor.empty(%n) : tensor<4x?x8xf32>
  %empty_mask = tensor.empty(%n) : tensor<4x?x8xi1>
  %dy = linalg.transpose ins(%a : tensor<?x8x4xf32>) outs(%empty : tensor<4x?x8xf32>) permutation = [2, 0, 1]
  %x = linalg.transpose ins(%b : tensor<?x8x4xf32>) outs(%empty : tensor<4x?x8xf32>) permutation = [2, 0, 1]
  %mask = linalg.transpose ins(%m : tensor<?x8x4xi1>) outs(%empty_mask : tensor<4x?x8xi1>) permutation = [2, 0, 1]
  %dx, %ds, %do = bngrad.batch_norm_backward grad_output(%dy : tensor<4x?x8xf32>) input(%x : tensor<4x?x8xf32>)
      mean(%mean : tensor<4xf32>) inv_std(%inv_std : tensor<4xf32>) mask(%mask : tensor<4x?x8xi1>)
      {feature_dims = array<i64: 0>} : tensor<4x?x8xf32>, tensor<4xf32>, tensor<4xf32>
  return %dx : tensor<4x?x8xf32>
}

// -----

// CHECK-LABEL: func.func @halves(
// CHECK-SAME: %[[A:[^:]+]]: tensor<8x4xf32>, %[[B:[^:]+]]: tensor<8x4xf32>
// CHECK: bngrad.batch_norm_backward_reduce grad_output(%[[A]] : tensor<8x4xf32>) input(%[[B]] : tensor<8x4xf32>) mean(%{{.+}} : tensor<4xf32>) : tensor<2x4xf32>, tensor<i64>
// CHECK: bngrad.batch_norm_backward_elemt grad_output(%[[A]] : tensor<8x4xf32>) input(%[[B]] : tensor<8x4xf32>)
// CHECK-SAME: : tensor<8x4xf32>
// CHECK: linalg.transpose
func.func @halves(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>, %mean: tensor<4xf32>) -> tensor<4x8xf32> {
  %empty = tensor.empty() : tensor<4x8xf32>
  %dy = linalg.transpose ins(%a : tensor<8x4xf32>) outs(%empty : tensor<4x8xf32>) permutation = [1, 0]
  %x = linalg.transpose ins(%b : tensor<8x4xf32>) outs(%empty : tensor<4x8xf32>) permutation = [1, 0]
  %sums, %count = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<4x8xf32>) input(%x : tensor<4x8xf32>)
      mean(%mean : tensor<4xf32>) {feature_dims = array<i64: 0>} : tensor<2x4xf32>, tensor<i64>
  %dx = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<4x8xf32>) input(%x : tensor<4x8xf32>)
      mean(%mean : tensor<4xf32>) inv_std(%mean : tensor<4xf32>) sums(%sums : tensor<2x4xf32>) count(%count : tensor<i64>)
      {feature_dims = array<i64: 0>} : tensor<4x8xf32>
  return %dx : tensor<4x8xf32>
}

// -----

// Different transposes, or an operand without one, stay.

// CHECK-LABEL: func.func @different_transposes(
// CHECK-COUNT-2: linalg.transpose
// CHECK: bngrad.batch_norm_backward
// CHECK-SAME: tensor<4x4x4xf32>
func.func @different_transposes(%a: tensor<4x4x4xf32>, %b: tensor<4x4x4xf32>, %mean: tensor<4xf32>) -> tensor<4x4x4xf32> {
  %empty = tensor.empty() : tensor<4x4x4xf32>
  %dy = linalg.transpose ins(%a : tensor<4x4x4xf32>) outs(%empty : tensor<4x4x4xf32>) permutation = [2, 0, 1]
  %x = linalg.transpose ins(%b : tensor<4x4x4xf32>) outs(%empty : tensor<4x4x4xf32>) permutation = [1, 2, 0]
  %dx, %ds, %do = bngrad.batch_norm_backward grad_output(%dy : tensor<4x4x4xf32>) input(%x : tensor<4x4x4xf32>)
      mean(%mean : tensor<4xf32>) inv_std(%mean : tensor<4xf32>) : tensor<4x4x4xf32>, tensor<4xf32>, tensor<4xf32>
  return %dx : tensor<4x4x4xf32>
}

// -----

// CHECK-LABEL: func.func @one_transpose(
// CHECK: linalg.transpose
// CHECK: bngrad.batch_norm_backward
func.func @one_transpose(%a: tensor<4x4xf32>, %x: tensor<4x4xf32>, %mean: tensor<4xf32>) -> tensor<4x4xf32> {
  %empty = tensor.empty() : tensor<4x4xf32>
  %dy = linalg.transpose ins(%a : tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) permutation = [1, 0]
  %dx, %ds, %do = bngrad.batch_norm_backward grad_output(%dy : tensor<4x4xf32>) input(%x : tensor<4x4xf32>)
      mean(%mean : tensor<4xf32>) inv_std(%mean : tensor<4xf32>) : tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>
  return %dx : tensor<4x4xf32>
}

// -----

// The per-channel operands are [d1, d2] of the transposed data; without the
// transpose they would be [d2, d1].

// CHECK-LABEL: func.func @feature_dims_change_their_order(
// CHECK-COUNT-2: linalg.transpose
// CHECK: bngrad.batch_norm_backward
// CHECK-SAME: {feature_dims = array<i64: 1, 2>}
func.func @feature_dims_change_their_order(%a: tensor<4x5x6xf32>, %b: tensor<4x5x6xf32>, %mean: tensor<6x5xf32>) -> tensor<4x6x5xf32> {
  %empty = tensor.empty() : tensor<4x6x5xf32>
  %dy = linalg.transpose ins(%a : tensor<4x5x6xf32>) outs(%empty : tensor<4x6x5xf32>) permutation = [0, 2, 1]
  %x = linalg.transpose ins(%b : tensor<4x5x6xf32>) outs(%empty : tensor<4x6x5xf32>) permutation = [0, 2, 1]
  %dx, %ds, %do = bngrad.batch_norm_backward grad_output(%dy : tensor<4x6x5xf32>) input(%x : tensor<4x6x5xf32>)
      mean(%mean : tensor<6x5xf32>) inv_std(%mean : tensor<6x5xf32>) {feature_dims = array<i64: 1, 2>}
      : tensor<4x6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>
  return %dx : tensor<4x6x5xf32>
}

// -----

// CHECK-LABEL: func.func @does_nothing(
// CHECK-NEXT: arith.addf
func.func @does_nothing(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// The forward pass, too.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[A:[^:]+]]: tensor<2x8x5x4xf32>
// CHECK-NOT: linalg.transpose
// CHECK: %[[Y:.+]], %{{.+}}, %{{.+}}, %{{.+}} = bngrad.batch_norm_training input(%[[A]] : tensor<2x8x5x4xf32>) {feature_dims = array<i64: 3>}
// CHECK-NOT: linalg.transpose
// CHECK: return %[[Y]]
func.func @forward(%a: tensor<2x8x5x4xf32>) -> tensor<2x8x5x4xf32> {
  %empty = tensor.empty() : tensor<2x4x8x5xf32>
  %empty2 = tensor.empty() : tensor<2x8x5x4xf32>
  %x = linalg.transpose ins(%a : tensor<2x8x5x4xf32>) outs(%empty : tensor<2x4x8x5xf32>) permutation = [0, 3, 1, 2]
  %0:4 = bngrad.batch_norm_training input(%x : tensor<2x4x8x5xf32>) : tensor<2x4x8x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  %r = linalg.transpose ins(%0#0 : tensor<2x4x8x5xf32>) outs(%empty2 : tensor<2x8x5x4xf32>) permutation = [0, 2, 3, 1]
  return %r : tensor<2x8x5x4xf32>
}

// -----

// An element of the transpose is one of its source: the first one of each channel needs no transpose.

// CHECK-LABEL: func.func @first_elements(
// CHECK-SAME: %[[X:[^:]+]]: tensor<2x8x4xf32>, %[[I:[^:]+]]: index, %[[J:[^:]+]]: index, %[[K:[^:]+]]: index
// CHECK-NOT: linalg.transpose
// CHECK: %[[E:.+]] = tensor.extract %[[X]][%[[J]], %[[K]], %[[I]]] : tensor<2x8x4xf32>
// CHECK: return %[[E]]
func.func @first_elements(%x: tensor<2x8x4xf32>, %i: index, %j: index, %k: index) -> f32 {
  %empty = tensor.empty() : tensor<4x2x8xf32>
  %t = linalg.transpose ins(%x : tensor<2x8x4xf32>) outs(%empty : tensor<4x2x8xf32>) permutation = [2, 0, 1]
  %e = tensor.extract %t[%i, %j, %k] : tensor<4x2x8xf32>
  return %e : f32
}
