// RUN: bngrad-opt %s --canonicalize --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: bngrad-opt %s --cse | FileCheck %s --check-prefix=CSE
// RUN: bngrad-opt %s --loop-invariant-code-motion | FileCheck %s --check-prefix=LICM
// RUN: bngrad-opt %s --resolve-ranked-shaped-type-result-dims --cse | FileCheck %s --check-prefix=DIM

// === tensor.cast of an operand ===

// Every operand folds a cast that only drops static sizes. A missed operand
// would not propagate its sizes to the others.
// CHECK-LABEL: func @casts_of_all_operands_fold
// CHECK-SAME:    (%[[DY:.+]]: tensor<2x3xf32> loc({{.+}}), %[[X:.+]]: tensor<2x3xf32> loc({{.+}}), %[[S:.+]]: tensor<3xf32> loc({{.+}}), %[[M:.+]]: tensor<3xf32> loc({{.+}}), %[[V:.+]]: tensor<3xf32> loc({{.+}}), %[[K:.+]]: tensor<2x3xi1> loc({{.+}}))
// CHECK-NEXT:    %[[DX:.+]], %[[DS:.+]], %[[DO:.+]] = bngrad.batch_norm_backward
// CHECK-SAME:      grad_output(%[[DY]] : tensor<2x3xf32>) input(%[[X]] : tensor<2x3xf32>) scale(%[[S]] : tensor<3xf32>) mean(%[[M]] : tensor<3xf32>) variance(%[[V]] : tensor<3xf32>) mask(%[[K]] : tensor<2x3xi1>)
// CHECK-SAME:      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
// CHECK-NEXT:    %[[DX_CAST:.+]] = tensor.cast %[[DX]] : tensor<2x3xf32> to tensor<?x?xf32>
// CHECK-NEXT:    %[[DS_CAST:.+]] = tensor.cast %[[DS]] : tensor<3xf32> to tensor<?xf32>
// CHECK-NEXT:    %[[DO_CAST:.+]] = tensor.cast %[[DO]] : tensor<3xf32> to tensor<?xf32>
// CHECK-NEXT:    return %[[DX_CAST]], %[[DS_CAST]], %[[DO_CAST]]
func.func @casts_of_all_operands_fold(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %s: tensor<3xf32>, %m: tensor<3xf32>,
                                      %v: tensor<3xf32>, %k: tensor<2x3xi1>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %dy_cast = tensor.cast %dy : tensor<2x3xf32> to tensor<?x?xf32>
  %x_cast = tensor.cast %x : tensor<2x3xf32> to tensor<?x?xf32>
  %s_cast = tensor.cast %s : tensor<3xf32> to tensor<?xf32>
  %m_cast = tensor.cast %m : tensor<3xf32> to tensor<?xf32>
  %v_cast = tensor.cast %v : tensor<3xf32> to tensor<?xf32>
  %k_cast = tensor.cast %k : tensor<2x3xi1> to tensor<?x?xi1>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy_cast : tensor<?x?xf32>) input(%x_cast : tensor<?x?xf32>)
      scale(%s_cast : tensor<?xf32>) mean(%m_cast : tensor<?xf32>) variance(%v_cast : tensor<?xf32>) mask(%k_cast : tensor<?x?xi1>)
      : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
  return %0#0, %0#1, %0#2 : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
}

// inv_std has its own operand segment.
// CHECK-LABEL: func @cast_of_inv_std_folds
// CHECK-SAME:    %[[R:[^:]+]]: tensor<3xf32>
// CHECK-NOT:     tensor.cast
// CHECK:         inv_std(%[[R]] : tensor<3xf32>)
func.func @cast_of_inv_std_folds(%x: tensor<2x3xf32>, %m: tensor<?xf32>, %r: tensor<3xf32>) -> tensor<2x3xf32> {
  %r_cast = tensor.cast %r : tensor<3xf32> to tensor<?xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<?xf32>) inv_std(%r_cast : tensor<?xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<2x3xf32>
}

// A cast that adds static sizes must stay.
// CHECK-LABEL: func @cast_that_adds_sizes_stays
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x3xf32>
// CHECK-NEXT:    %[[CAST:.+]] = tensor.cast %[[X]] : tensor<?x3xf32> to tensor<2x3xf32>
// CHECK-NEXT:    bngrad.batch_norm_backward grad_output(%[[CAST]] : tensor<2x3xf32>) input(%[[CAST]] : tensor<2x3xf32>)
func.func @cast_that_adds_sizes_stays(%x: tensor<?x3xf32>, %p: tensor<3xf32>) -> tensor<2x3xf32> {
  %x_cast = tensor.cast %x : tensor<?x3xf32> to tensor<2x3xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%x_cast : tensor<2x3xf32>) input(%x_cast : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<2x3xf32>
}

// So must one that adds a static size and drops another.
// CHECK-LABEL: func @cast_that_trades_sizes_stays
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x3xf32>
// CHECK-NEXT:    %[[CAST:.+]] = tensor.cast %[[X]] : tensor<?x3xf32> to tensor<2x?xf32>
// CHECK-NEXT:    bngrad.batch_norm_backward grad_output(%[[CAST]] : tensor<2x?xf32>) input(%[[CAST]] : tensor<2x?xf32>)
func.func @cast_that_trades_sizes_stays(%x: tensor<?x3xf32>, %p: tensor<3xf32>) -> tensor<2x3xf32> {
  %x_cast = tensor.cast %x : tensor<?x3xf32> to tensor<2x?xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%x_cast : tensor<2x?xf32>) input(%x_cast : tensor<2x?xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<2x3xf32>
}

// Reading through a cast from an unranked tensor would break the op.
// CHECK-LABEL: func @cast_from_unranked_stays
// CHECK:         %[[CAST:.+]] = tensor.cast %{{.+}} : tensor<*xf32> to tensor<?x?xf32>
// CHECK-NEXT:    bngrad.batch_norm_backward grad_output(%[[CAST]] : tensor<?x?xf32>)
func.func @cast_from_unranked_stays(%x: tensor<*xf32>, %p: tensor<?xf32>) -> tensor<?x?xf32> {
  %x_cast = tensor.cast %x : tensor<*xf32> to tensor<?x?xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%x_cast : tensor<?x?xf32>) input(%x_cast : tensor<?x?xf32>)
      mean(%p : tensor<?xf32>) variance(%p : tensor<?xf32>)
      : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
  return %0#0 : tensor<?x?xf32>
}

// === refinement of result types ===

// Each size is static in one operand only: grad_output, input, mask, scale. The
// element types are the results' own.
// CHECK-LABEL: func @results_take_sizes_of_every_operand
// CHECK:         %[[DX:.+]], %[[DS:.+]], %[[DO:.+]] = bngrad.batch_norm_backward
// CHECK-SAME:      : tensor<2x5x3x4xf16>, tensor<5xbf16>, tensor<5xf64>
// CHECK-DAG:     %[[DX_CAST:.+]] = tensor.cast %[[DX]] : tensor<2x5x3x4xf16> to tensor<?x?x?x?xf16>
// CHECK-DAG:     %[[DS_CAST:.+]] = tensor.cast %[[DS]] : tensor<5xbf16> to tensor<?xbf16>
// CHECK-DAG:     %[[DO_CAST:.+]] = tensor.cast %[[DO]] : tensor<5xf64> to tensor<?xf64>
// CHECK:         return %[[DX_CAST]], %[[DS_CAST]], %[[DO_CAST]]
func.func @results_take_sizes_of_every_operand(%dy: tensor<2x?x?x?xf32>, %x: tensor<?x?x3x?xf32>, %s: tensor<5xf32>,
                                               %p: tensor<?xf32>, %k: tensor<?x?x?x4xi1>)
    -> (tensor<?x?x?x?xf16>, tensor<?xbf16>, tensor<?xf64>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x?x?x?xf32>) input(%x : tensor<?x?x3x?xf32>)
      scale(%s : tensor<5xf32>) mean(%p : tensor<?xf32>) inv_std(%p : tensor<?xf32>) mask(%k : tensor<?x?x?x4xi1>)
      : tensor<?x?x?x?xf16>, tensor<?xbf16>, tensor<?xf64>
  return %0#0, %0#1, %0#2 : tensor<?x?x?x?xf16>, tensor<?xbf16>, tensor<?xf64>
}

// Each feature dim has its own size in the per-channel results.
// CHECK-LABEL: func @results_take_sizes_at_their_feature_dim
// CHECK:         bngrad.batch_norm_backward
// CHECK-SAME:      {feature_dims = array<i64: 0, 2>} : tensor<2x3x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
func.func @results_take_sizes_at_their_feature_dim(%x: tensor<2x3x?xf32>, %m: tensor<?x4xf32>, %v: tensor<?x?xf32>)
    -> (tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3x?xf32>) input(%x : tensor<2x3x?xf32>)
      mean(%m : tensor<?x4xf32>) variance(%v : tensor<?x?xf32>) {feature_dims = array<i64: 0, 2>}
      : tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
  return %0#0, %0#1, %0#2 : tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
}

// A result that already has static sizes gets no cast.
// CHECK-LABEL: func @only_results_that_change_get_a_cast
// CHECK:         %[[DX:.+]], %[[DS:.+]], %[[DO:.+]] = bngrad.batch_norm_backward
// CHECK-SAME:      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
// CHECK-NEXT:    %[[DS_CAST:.+]] = tensor.cast %[[DS]] : tensor<3xf32> to tensor<?xf32>
// CHECK-NEXT:    return %[[DX]], %[[DS_CAST]], %[[DO]]
func.func @only_results_that_change_get_a_cast(%x: tensor<2x3xf32>, %p: tensor<3xf32>)
    -> (tensor<2x3xf32>, tensor<?xf32>, tensor<3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<?xf32>, tensor<3xf32>
  return %0#0, %0#1, %0#2 : tensor<2x3xf32>, tensor<?xf32>, tensor<3xf32>
}

// A size that is static only in the result is kept.
// CHECK-LABEL: func @sizes_of_results_stay
// CHECK:         bngrad.batch_norm_backward
// CHECK-SAME:      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
// CHECK-NOT:     tensor.cast
// CHECK:         return
func.func @sizes_of_results_stay(%x: tensor<?x3xf32>, %p: tensor<?xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<?x3xf32>) input(%x : tensor<?x3xf32>)
      mean(%p : tensor<?xf32>) variance(%p : tensor<?xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %0#1, %0#2 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// The encoding of a result is kept.
// CHECK-LABEL: func @encoding_of_result_kept
// CHECK:         bngrad.batch_norm_backward
// CHECK-SAME:      : tensor<2x3xf32, "rows">, tensor<3xf32>, tensor<3xf32>
// CHECK:         tensor.cast %{{.+}} : tensor<2x3xf32, "rows"> to tensor<?x3xf32, "rows">
func.func @encoding_of_result_kept(%x: tensor<2x3xf32>, %p: tensor<3xf32>) -> tensor<?x3xf32, "rows"> {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<?x3xf32, "rows">, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<?x3xf32, "rows">
}

// Attributes and location of the op survive its new types; the casts share the
// location.
// CHECK-LABEL: func @attributes_and_location_kept
// CHECK:         bngrad.batch_norm_backward
// CHECK-SAME:      {epsilon = 1.000000e-03 : f64, layer = "bn1", statistics = #bngrad.statistics<global>}
// CHECK-SAME:      loc("gradient")
// CHECK-NEXT:    tensor.cast {{.+}} loc("gradient")
func.func @attributes_and_location_kept(%x: tensor<2x3xf32>, %p: tensor<3xf32>) -> tensor<?x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      {epsilon = 1.0e-3 : f64, layer = "bn1", statistics = #bngrad.statistics<global>}
      : tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32> loc("gradient")
  return %0#0 : tensor<?x3xf32>
}

// Types propagate through a chain of gradients.
// CHECK-LABEL: func @sizes_flow_to_the_next_gradient
// CHECK:         %[[DX:.+]], %{{.+}}, %{{.+}} = bngrad.batch_norm_backward
// CHECK:         bngrad.batch_norm_backward grad_output(%[[DX]] : tensor<2x3xf32>)
// CHECK-SAME:      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
func.func @sizes_flow_to_the_next_gradient(%x: tensor<2x3xf32>, %y: tensor<?x?xf32>, %p: tensor<3xf32>, %q: tensor<?xf32>) -> tensor<?x?xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
  %1:3 = bngrad.batch_norm_backward grad_output(%0#0 : tensor<?x?xf32>) input(%y : tensor<?x?xf32>)
      mean(%q : tensor<?xf32>) variance(%q : tensor<?xf32>)
      : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
  return %1#0 : tensor<?x?xf32>
}

// === nothing to do ===

// CHECK-LABEL: func @static_op_unchanged
// CHECK-SAME:    (%[[DY:.+]]: tensor<2x3xf32> loc({{.+}}), %[[X:.+]]: tensor<2x3xf32> loc({{.+}}), %[[P:.+]]: tensor<3xf32> loc({{.+}}))
// CHECK-NEXT:    %[[DX:.+]], %{{.+}}, %{{.+}} = bngrad.batch_norm_backward grad_output(%[[DY]] : tensor<2x3xf32>) input(%[[X]] : tensor<2x3xf32>) mean(%[[P]] : tensor<3xf32>) variance(%[[P]] : tensor<3xf32>) : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
// CHECK-NEXT:    return %[[DX]]
func.func @static_op_unchanged(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) -> tensor<2x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @dynamic_op_unchanged
// CHECK-NOT:     tensor.cast
// CHECK:         bngrad.batch_norm_backward
// CHECK-SAME:      : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
// CHECK-NOT:     tensor.cast
// CHECK:         return
func.func @dynamic_op_unchanged(%x: tensor<?x?xf32>, %p: tensor<?xf32>) -> tensor<?x?xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<?x?xf32>) input(%x : tensor<?x?xf32>)
      mean(%p : tensor<?xf32>) variance(%p : tensor<?xf32>)
      : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
  return %0#0 : tensor<?x?xf32>
}

// === effects ===

// Without the trait NoMemoryEffect both would stay.
// CHECK-LABEL: func @unused_op_erased
// CHECK-NEXT:    return
func.func @unused_op_erased(%x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// CHECK-LABEL: func @unused_dynamic_op_erased
// CHECK-NEXT:    return
func.func @unused_dynamic_op_erased(%x: tensor<?x?xf32>, %p: tensor<?xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<?x?xf32>) input(%x : tensor<?x?xf32>)
      mean(%p : tensor<?xf32>) variance(%p : tensor<?xf32>)
      : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
  return
}

// Equal ops are merged; an explicit default makes no difference.
// CSE-LABEL: func @equal_ops_merge
// CSE-NEXT:    %[[DX:.+]], %{{.+}}, %[[DO:.+]] = bngrad.batch_norm_backward
// CSE-NEXT:    return %[[DX]], %[[DO]]
func.func @equal_ops_merge(%x: tensor<2x3xf32>, %p: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  %1:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {epsilon = 0.0 : f64}
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %1#2 : tensor<2x3xf32>, tensor<3xf32>
}

// Ops that differ in one attribute, or in the clause of an operand, are not.
// CSE-LABEL: func @different_ops_stay
// CSE-COUNT-4: bngrad.batch_norm_backward
func.func @different_ops_stay(%x: tensor<2x3xf32>, %p: tensor<3xf32>)
    -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  %1:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) inv_std(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  %2:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {epsilon = 1.0 : f64}
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  %3:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {statistics = #bngrad.statistics<global>}
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %1#0, %2#0, %3#0 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// === speculation ===

// A loop that may have no iterations: only a speculatable op is hoisted.
// LICM-LABEL: func @static_op_hoisted
// LICM:         bngrad.batch_norm_backward
// LICM:         scf.for
// LICM-NOT:     bngrad.batch_norm_backward
// LICM:         return
func.func @static_op_hoisted(%x: tensor<2x3xf32>, %p: tensor<3xf32>, %n: index, %init: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<2x3xf32>) {
    %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
        mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
        : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
    scf.yield %0#0 : tensor<2x3xf32>
  }
  return %r : tensor<2x3xf32>
}

// Sizes that disagree at run time are undefined behaviour, unless the loop has
// no iterations.
// LICM-LABEL: func @op_with_dynamic_operand_not_hoisted
// LICM:         scf.for
// LICM-NEXT:      bngrad.batch_norm_backward
func.func @op_with_dynamic_operand_not_hoisted(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %m: tensor<?xf32>, %v: tensor<3xf32>,
                                               %n: index, %init: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<2x3xf32>) {
    %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
        mean(%m : tensor<?xf32>) variance(%v : tensor<3xf32>)
        : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
    scf.yield %0#0 : tensor<2x3xf32>
  }
  return %r : tensor<2x3xf32>
}

// LICM-LABEL: func @op_with_dynamic_result_hoisted
// LICM:         bngrad.batch_norm_backward
// LICM:         scf.for
func.func @op_with_dynamic_result_hoisted(%x: tensor<2x3xf32>, %p: tensor<3xf32>, %n: index, %init: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<?x3xf32>) {
    %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
        mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
        : tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>
    scf.yield %0#0 : tensor<?x3xf32>
  }
  return %r : tensor<?x3xf32>
}

// === shapes of results ===

// Sizes come from input; a query does not keep the op alive.
// DIM-LABEL: func @sizes_of_grad_input
// DIM-SAME:    (%[[DY:.+]]: tensor<?x?x?xf32>, %[[X:.+]]: tensor<?x?x?xf32>, %{{.+}}: tensor<?xf32>)
// DIM-DAG:     %[[C0:.+]] = arith.constant 0 : index
// DIM-DAG:     %[[C1:.+]] = arith.constant 1 : index
// DIM-DAG:     %[[C2:.+]] = arith.constant 2 : index
// DIM-DAG:     %[[D0:.+]] = tensor.dim %[[X]], %[[C0]]
// DIM-DAG:     %[[D1:.+]] = tensor.dim %[[X]], %[[C1]]
// DIM-DAG:     %[[D2:.+]] = tensor.dim %[[X]], %[[C2]]
// DIM-NOT:     bngrad.batch_norm_backward
// DIM:         return %[[D0]], %[[D1]], %[[D2]]
func.func @sizes_of_grad_input(%dy: tensor<?x?x?xf32>, %x: tensor<?x?x?xf32>, %p: tensor<?xf32>) -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x?x?xf32>) input(%x : tensor<?x?x?xf32>)
      mean(%p : tensor<?xf32>) variance(%p : tensor<?xf32>)
      : tensor<?x?x?xf32>, tensor<?xf32>, tensor<?xf32>
  %d0 = tensor.dim %0#0, %c0 : tensor<?x?x?xf32>
  %d1 = tensor.dim %0#0, %c1 : tensor<?x?x?xf32>
  %d2 = tensor.dim %0#0, %c2 : tensor<?x?x?xf32>
  return %d0, %d1, %d2 : index, index, index
}

// Dim i of grad_scale and grad_offset is dim feature_dims[i] of input.
// DIM-LABEL: func @sizes_of_channels
// DIM-SAME:    (%[[X:.+]]: tensor<?x?x?xf32>, %{{.+}}: tensor<?x?xf32>)
// DIM-DAG:     %[[C0:.+]] = arith.constant 0 : index
// DIM-DAG:     %[[C2:.+]] = arith.constant 2 : index
// DIM-DAG:     %[[D0:.+]] = tensor.dim %[[X]], %[[C0]]
// DIM-DAG:     %[[D1:.+]] = tensor.dim %[[X]], %[[C2]]
// DIM-NOT:     bngrad.batch_norm_backward
// DIM:         return %[[D0]], %[[D1]], %[[D0]], %[[D1]]
func.func @sizes_of_channels(%x: tensor<?x?x?xf32>, %p: tensor<?x?xf32>) -> (index, index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<?x?x?xf32>) input(%x : tensor<?x?x?xf32>)
      mean(%p : tensor<?x?xf32>) variance(%p : tensor<?x?xf32>) {feature_dims = array<i64: 0, 2>}
      : tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
  %s0 = tensor.dim %0#1, %c0 : tensor<?x?xf32>
  %s1 = tensor.dim %0#1, %c1 : tensor<?x?xf32>
  %o0 = tensor.dim %0#2, %c0 : tensor<?x?xf32>
  %o1 = tensor.dim %0#2, %c1 : tensor<?x?xf32>
  return %s0, %s1, %o0, %o1 : index, index, index, index
}

// A size that is static in input is a constant even if it is dynamic in the
// result type, and the other way around.
// DIM-LABEL: func @sizes_known_on_one_side
// DIM-DAG:     %[[C5:.+]] = arith.constant 5 : index
// DIM-DAG:     %[[C7:.+]] = arith.constant 7 : index
// DIM:         return %[[C5]], %[[C7]]
func.func @sizes_known_on_one_side(%x: tensor<5x?xf32>, %p: tensor<?xf32>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<5x?xf32>) input(%x : tensor<5x?xf32>)
      mean(%p : tensor<?xf32>) variance(%p : tensor<?xf32>)
      : tensor<?x?xf32>, tensor<7xf32>, tensor<?xf32>
  %d = tensor.dim %0#0, %c0 : tensor<?x?xf32>
  %s = tensor.dim %0#1, %c0 : tensor<7xf32>
  return %d, %s : index, index
}

// Casts that cancel out.
// CHECK-LABEL: func @element_casts(
// CHECK-SAME:    %[[A:[a-z0-9]+]]: memref<4xi1>
// CHECK:         %[[BYTES:.+]] = bngrad.element_cast %[[A]] : memref<4xi1> to memref<4xi8>
// CHECK:         return %[[A]], %[[A]], %[[BYTES]]
func.func @element_casts(%a: memref<4xi1>) -> (memref<4xi1>, memref<4xi1>, memref<4xi8>) {
  %0 = bngrad.element_cast %a : memref<4xi1> to memref<4xi1>
  %1 = bngrad.element_cast %0 : memref<4xi1> to memref<4xi8>
  %2 = bngrad.element_cast %1 : memref<4xi8> to memref<4xi1>
  return %0, %2, %1 : memref<4xi1>, memref<4xi1>, memref<4xi8>
}

// -----

// CHECK-LABEL: func @parallel_condition
// CHECK:         bngrad.parallel {
// CHECK:         bngrad.parallel if(%false) {
func.func @parallel_condition(%m: memref<i32>) {
  %true = arith.constant true
  %false = arith.constant false
  bngrad.parallel if(%true) {
  ^bb0(%thread: i32, %threads: i32):
    memref.store %thread, %m[] : memref<i32>
    bngrad.yield
  }
  bngrad.parallel if(%false) {
  ^bb0(%thread: i32, %threads: i32):
    memref.store %thread, %m[] : memref<i32>
    bngrad.yield
  }
  return
}

// -----

// The gradient needs the inv_std that training has computed.
// CHECK-LABEL: func @shared_inv_std
// CHECK:         %{{.+}}, %[[MEAN:.+]], %[[VARIANCE:.+]], %[[INV_STD:.+]] = bngrad.batch_norm_training
// CHECK:         bngrad.batch_norm_backward {{.*}} mean(%[[MEAN]] : tensor<4xf32>) inv_std(%[[INV_STD]] : tensor<4xf32>) : tensor<8x4xf32>
func.func @shared_inv_std(%x: tensor<8x4xf32>, %dy: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<8x4xf32>) {epsilon = 1.0e-5 : f64} : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  %1:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8x4xf32>) input(%x : tensor<8x4xf32>) mean(%0#1 : tensor<4xf32>) variance(%0#2 : tensor<4xf32>)
      {epsilon = 1.0e-5 : f64} : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  return %1#0, %0#2 : tensor<8x4xf32>, tensor<4xf32>
}

// -----

// Another epsilon, a variance rounded to bf16, an inv_std rounded to bf16, arithmetic in f64 and a mean give other bits.
// CHECK-LABEL: func @other_inv_std
// CHECK-COUNT-5: bngrad.batch_norm_backward {{.*}} variance(
func.func @other_inv_std(%x: tensor<8x4xf32>, %dy: tensor<8x4xf32>, %wide: tensor<8x4xf64>, %p: tensor<4xbf16>)
    -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf64>, tensor<8x4xf32>) {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<8x4xf32>) {epsilon = 1.0e-5 : f64} : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  %1:4 = bngrad.batch_norm_training input(%x : tensor<8x4xf32>) {epsilon = 1.0e-5 : f64} : tensor<8x4xf32>, tensor<4xbf16>, tensor<4xbf16>, tensor<4xf32>
  %2:4 = bngrad.batch_norm_training input(%x : tensor<8x4xf32>) {epsilon = 1.0e-5 : f64} : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>
  %3:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8x4xf32>) input(%x : tensor<8x4xf32>) mean(%0#1 : tensor<4xf32>) variance(%0#2 : tensor<4xf32>)
      {epsilon = 1.0e-3 : f64} : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  %4:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8x4xf32>) input(%x : tensor<8x4xf32>) mean(%1#1 : tensor<4xbf16>) variance(%1#2 : tensor<4xbf16>)
      {epsilon = 1.0e-5 : f64} : tensor<8x4xf32>, tensor<4xbf16>, tensor<4xbf16>
  %5:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8x4xf32>) input(%x : tensor<8x4xf32>) mean(%2#1 : tensor<4xf32>) variance(%2#2 : tensor<4xf32>)
      {epsilon = 1.0e-5 : f64} : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  %6:3 = bngrad.batch_norm_backward grad_output(%wide : tensor<8x4xf64>) input(%wide : tensor<8x4xf64>) mean(%0#1 : tensor<4xf32>) variance(%0#2 : tensor<4xf32>)
      {epsilon = 1.0e-5 : f64} : tensor<8x4xf64>, tensor<4xf32>, tensor<4xf32>
  %7:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8x4xf32>) input(%x : tensor<8x4xf32>) mean(%0#1 : tensor<4xf32>) variance(%0#1 : tensor<4xf32>)
      {epsilon = 1.0e-5 : f64} : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  return %3#0, %4#0, %5#0, %6#0, %7#0 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf64>, tensor<8x4xf32>
}
