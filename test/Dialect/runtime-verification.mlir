// Constraints on dynamic sizes are asserted at run time: for each size that is
// dynamic on one side of (C2), (C3) or (C6), and for no other.

// RUN: bngrad-opt %s --generate-runtime-verification=verbose-level=0 --cse --canonicalize | FileCheck %s --implicit-check-not=cf.assert

// If both sides are static, no check is emitted, not even one that folds.
// RUN: bngrad-opt %s --generate-runtime-verification | FileCheck %s --check-prefix=RAW

// The order of operands and clauses; both sides are dynamic. A check against
// another operand than input, or of another dim, would show in the sizes.
// CHECK-LABEL: func @every_operand_dynamic
// CHECK-SAME:    (%[[DY:.+]]: tensor<?x?xf32>, %[[X:.+]]: tensor<?x?xf32>, %[[S:.+]]: tensor<?xf32>, %[[M:.+]]: tensor<?xf32>, %[[V:.+]]: tensor<?xf32>, %[[K:.+]]: tensor<?x?xi1>)
// CHECK-DAG:     %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:     %[[C1:.+]] = arith.constant 1 : index
// CHECK-DAG:     %[[X0:.+]] = tensor.dim %[[X]], %[[C0]]
// CHECK-DAG:     %[[DY0:.+]] = tensor.dim %[[DY]], %[[C0]]
// CHECK:         %[[IS_DY0:.+]] = arith.cmpi eq, %[[DY0]], %[[X0]]
// CHECK:         cf.assert %[[IS_DY0]], "{{.*}}expected size 0 of grad_output to be size 0 of input
// CHECK-DAG:     %[[X1:.+]] = tensor.dim %[[X]], %[[C1]]
// CHECK-DAG:     %[[DY1:.+]] = tensor.dim %[[DY]], %[[C1]]
// CHECK:         %[[IS_DY1:.+]] = arith.cmpi eq, %[[DY1]], %[[X1]]
// CHECK:         cf.assert %[[IS_DY1]], "{{.*}}expected size 1 of grad_output to be size 1 of input
// CHECK:         %[[K0:.+]] = tensor.dim %[[K]], %[[C0]]
// CHECK:         %[[IS_K0:.+]] = arith.cmpi eq, %[[K0]], %[[X0]]
// CHECK:         cf.assert %[[IS_K0]], "{{.*}}expected size 0 of mask to be size 0 of input
// CHECK:         %[[K1:.+]] = tensor.dim %[[K]], %[[C1]]
// CHECK:         %[[IS_K1:.+]] = arith.cmpi eq, %[[K1]], %[[X1]]
// CHECK:         cf.assert %[[IS_K1]], "{{.*}}expected size 1 of mask to be size 1 of input
// CHECK:         %[[S0:.+]] = tensor.dim %[[S]], %[[C0]]
// CHECK:         %[[IS_S:.+]] = arith.cmpi eq, %[[S0]], %[[X1]]
// CHECK:         cf.assert %[[IS_S]], "{{.*}}expected size 0 of scale to be size 1 of input
// CHECK:         %[[M0:.+]] = tensor.dim %[[M]], %[[C0]]
// CHECK:         %[[IS_M:.+]] = arith.cmpi eq, %[[M0]], %[[X1]]
// CHECK:         cf.assert %[[IS_M]], "{{.*}}expected size 0 of mean to be size 1 of input
// CHECK:         %[[V0:.+]] = tensor.dim %[[V]], %[[C0]]
// CHECK:         %[[IS_V:.+]] = arith.cmpi eq, %[[V0]], %[[X1]]
// CHECK:         cf.assert %[[IS_V]], "{{.*}}expected size 0 of variance to be size 1 of input
// CHECK:         bngrad.batch_norm_backward
func.func @every_operand_dynamic(%dy: tensor<?x?xf32>, %x: tensor<?x?xf32>, %s: tensor<?xf32>, %m: tensor<?xf32>,
                                 %v: tensor<?xf32>, %k: tensor<?x?xi1>) -> tensor<?x?xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x?xf32>) input(%x : tensor<?x?xf32>)
      scale(%s : tensor<?xf32>) mean(%m : tensor<?xf32>) variance(%v : tensor<?xf32>) mask(%k : tensor<?x?xi1>)
      : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
  return %0#0 : tensor<?x?xf32>
}

// The message names the present clause.
// CHECK-LABEL: func @inv_std_dynamic
// CHECK:         cf.assert {{.+}}expected size 0 of inv_std to be size 1 of input
// CHECK:         bngrad.batch_norm_backward
func.func @inv_std_dynamic(%x: tensor<2x3xf32>, %m: tensor<3xf32>, %r: tensor<?xf32>) -> tensor<2x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) inv_std(%r : tensor<?xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<2x3xf32>
}

// Static in input, dynamic in the operand: compared with a constant.
// RAW-LABEL: func @operand_dynamic_input_static
// RAW-COUNT-1: cf.assert
// RAW-NOT:     cf.assert
// RAW:         return
// CHECK-LABEL: func @operand_dynamic_input_static
// CHECK-SAME:    %[[DY:[^:]+]]: tensor<?x3xf32>
// CHECK-DAG:     %[[C2:.+]] = arith.constant 2 : index
// CHECK-DAG:     %[[SIZE:.+]] = tensor.dim %[[DY]], %{{.+}}
// CHECK:         %[[IS:.+]] = arith.cmpi eq, %[[SIZE]], %[[C2]]
// CHECK:         cf.assert %[[IS]], "{{.*}}expected size 0 of grad_output to be size 0 of input
// CHECK:         bngrad.batch_norm_backward
func.func @operand_dynamic_input_static(%dy: tensor<?x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) -> tensor<2x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<2x3xf32>
}

// Static in the operand, dynamic in input.
// CHECK-LABEL: func @operand_static_input_dynamic
// CHECK-SAME:    %[[X:[^:]+]]: tensor<2x?xf32>
// CHECK-DAG:     %[[C3:.+]] = arith.constant 3 : index
// CHECK-DAG:     %[[SIZE:.+]] = tensor.dim %[[X]], %{{.+}}
// CHECK:         %[[IS:.+]] = arith.cmpi eq, %[[SIZE]], %[[C3]]
// CHECK:         cf.assert %[[IS]], "{{.*}}expected size 1 of grad_output to be size 1 of input
// CHECK:         cf.assert %{{.+}}, "{{.*}}expected size 0 of mean to be size 1 of input
// CHECK:         cf.assert %{{.+}}, "{{.*}}expected size 0 of variance to be size 1 of input
// CHECK:         bngrad.batch_norm_backward
func.func @operand_static_input_dynamic(%x: tensor<2x?xf32>, %dy: tensor<2x3xf32>, %p: tensor<3xf32>) -> tensor<2x?xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x?xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x?xf32>, tensor<?xf32>, tensor<?xf32>
  return %0#0 : tensor<2x?xf32>
}

// Sizes that are static in a result's type and dynamic in input; the check does
// not read the result. A result with dynamic sizes is not checked.
// CHECK-LABEL: func @results_static_input_dynamic
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x?xf32>
// CHECK-DAG:     %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:     %[[C2:.+]] = arith.constant 2 : index
// CHECK-DAG:     %[[X0:.+]] = tensor.dim %[[X]], %[[C0]]
// CHECK:         cf.assert %{{.+}}, "{{.*}}expected size 0 of mean to be size 1 of input
// CHECK:         cf.assert %{{.+}}, "{{.*}}expected size 0 of variance to be size 1 of input
// CHECK:         %[[IS_DX0:.+]] = arith.cmpi eq, %[[X0]], %[[C2]]
// CHECK:         cf.assert %[[IS_DX0]], "{{.*}}expected size 0 of grad_input to be size 0 of input
// CHECK:         cf.assert %{{.+}}, "{{.*}}expected size 0 of grad_scale to be size 1 of input
// CHECK:         cf.assert %{{.+}}, "{{.*}}expected size 0 of grad_offset to be size 1 of input
// CHECK:         bngrad.batch_norm_backward
func.func @results_static_input_dynamic(%x: tensor<?x?xf32>, %p: tensor<?xf32>) -> tensor<2x?xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<?x?xf32>) input(%x : tensor<?x?xf32>)
      mean(%p : tensor<?xf32>) variance(%p : tensor<?xf32>)
      : tensor<2x?xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<2x?xf32>
}

// Dim i of a per-channel operand is dim feature_dims[i] of input. grad_output
// is input, so its checks fold away.
// CHECK-LABEL: func @several_feature_dims
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x4x?xf32>, %[[M:[^:]+]]: tensor<?x?xf32>
// CHECK-DAG:     %[[C2:.+]] = arith.constant 2 : index
// CHECK-DAG:     %[[X2:.+]] = tensor.dim %[[X]], %[[C2]]
// CHECK:         cf.assert %{{.+}}, "{{.*}}expected size 0 of mean to be size 0 of input
// CHECK:         %[[M1:.+]] = tensor.dim %[[M]], %{{.+}}
// CHECK:         %[[IS_M1:.+]] = arith.cmpi eq, %[[M1]], %[[X2]]
// CHECK:         cf.assert %[[IS_M1]], "{{.*}}expected size 1 of mean to be size 2 of input
// CHECK:         cf.assert %{{.+}}, "{{.*}}expected size 0 of variance to be size 0 of input
// CHECK:         cf.assert %{{.+}}, "{{.*}}expected size 1 of variance to be size 2 of input
// CHECK:         bngrad.batch_norm_backward
func.func @several_feature_dims(%x: tensor<?x4x?xf32>, %m: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<?x4x?xf32>) input(%x : tensor<?x4x?xf32>)
      mean(%m : tensor<?x?xf32>) variance(%m : tensor<?x?xf32>) {feature_dims = array<i64: 0, 2>}
      : tensor<?x4x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
  return %0#1 : tensor<?x?xf32>
}

// All sizes are static, so an assert fails the test (implicit check).
// RAW-LABEL: func @static_op_unchanged
// RAW-NEXT:    bngrad.batch_norm_backward
// CHECK-LABEL: func @static_op_unchanged
// CHECK-NEXT:    bngrad.batch_norm_backward
// CHECK-NEXT:    return
func.func @static_op_unchanged(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>, %k: tensor<2x3xi1>) -> tensor<2x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      scale(%s : tensor<3xf32>) mean(%m : tensor<3xf32>) variance(%v : tensor<3xf32>) mask(%k : tensor<2x3xi1>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<2x3xf32>
}

// Sizes that are dynamic on both sides and checked elsewhere: a dynamic size of
// a result is that of input.
// CHECK-LABEL: func @results_without_sizes_unchecked
// CHECK-NEXT:    bngrad.batch_norm_backward
func.func @results_without_sizes_unchecked(%x: tensor<2x3xf32>, %p: tensor<3xf32>) -> tensor<?x?xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
  return %0#0 : tensor<?x?xf32>
}
