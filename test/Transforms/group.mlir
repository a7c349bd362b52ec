// RUN: bngrad-opt %s --bngrad-group="schedule=#bngrad.schedule<loops>" --allow-unregistered-dialect --mlir-print-local-scope | FileCheck %s
// RUN: bngrad-opt %s --cse --bngrad-group="schedule=#bngrad.schedule<loops>" --allow-unregistered-dialect --mlir-print-local-scope | FileCheck %s --check-prefix=CSE

// RUN: not bngrad-opt %s --bngrad-group=schedule=fast --allow-unregistered-dialect -o /dev/null 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not bngrad-opt %s --bngrad-group="schedule=#bngrad.statistics<batch>" --allow-unregistered-dialect -o /dev/null 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not bngrad-opt %s --bngrad-group="schedule=#bngrad.schedule<fast>" --allow-unregistered-dialect -o /dev/null 2>&1 | FileCheck %s --check-prefix=KIND

// The error names the option, for every kind of error.
// BAD: error: option 'schedule': expected an attribute such as #bngrad.schedule<loops>, got 'fast'
// OTHER: error: option 'schedule': expected an attribute such as #bngrad.schedule<loops>, got '#bngrad.statistics<batch>'
// KIND: error: option 'schedule': expected an attribute such as #bngrad.schedule<loops>, got '#bngrad.schedule<fast>'

#data = affine_map<(d0, d1) -> (d0, d1)>
#feature = affine_map<(d0, d1) -> (d1)>
#row = affine_map<(d0, d1) -> (d0)>
#reversed = affine_map<(d0, d1) -> (3 - d1)>
#channel = affine_map<(d0) -> (d0)>

// === members of a group ===

// The reduction, the per-channel ops that depend on it, and the loop that reads
// those. Results that leave the region have their init outside; other values
// have it inside.
// CHECK-LABEL: func @reduction_coefficients_elementwise
// CHECK-SAME:    %[[X:[^:]+]]: tensor<8x4xf32>
// CHECK-NOT:     linalg.generic
// CHECK:         %[[FULL:.+]] = tensor.empty() : tensor<8x4xf32>
// CHECK-NOT:     linalg.generic
// CHECK:         %[[DX:.+]] = scf.execute_region -> tensor<8x4xf32> no_inline {
// CHECK-NEXT:      %[[EMPTY:.+]] = tensor.empty() : tensor<4xf32>
// CHECK-NEXT:      %[[INIT:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%[[EMPTY]] : tensor<4xf32>)
// CHECK-NEXT:      %[[SUM:.+]] = linalg.generic {{.+}} ["reduction", "parallel"]} ins(%[[X]] : {{.+}}) outs(%[[INIT]] : tensor<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>}
// CHECK:           %[[OWN:.+]] = tensor.empty() : tensor<4xf32>
// CHECK-NEXT:      %[[FACTOR:.+]] = linalg.generic {{.+}} ins(%[[SUM]] : {{.+}}) outs(%[[OWN]] : tensor<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>}
// CHECK:           %[[RESULT:.+]] = linalg.generic {{.+}} ins(%[[X]], %[[FACTOR]] : {{.+}}) outs(%[[FULL]] : tensor<8x4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>}
// CHECK:           scf.yield %[[RESULT]] : tensor<8x4xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[DX]]
func.func @reduction_coefficients_elementwise(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %empty1 = tensor.empty() : tensor<4xf32>
  %factor = linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%empty1 : tensor<4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = math.sqrt %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<8x4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %factor : tensor<8x4xf32>, tensor<4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.mulf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx : tensor<8x4xf32>
}

// A reader of the sum with other sizes, or at another loop, has its own loops.
// CHECK-LABEL: func @readers_elsewhere
// CHECK:         scf.execute_region
// CHECK-NEXT:      linalg.generic {{.+}} attrs = {bngrad.schedule = #bngrad.schedule<loops>}
// CHECK-NOT:     bngrad.schedule
// CHECK:         return
func.func @readers_elsewhere(%x: tensor<4x4xf32>, %y: tensor<7x4xf32>, %init: tensor<4xf32>, %out: tensor<7x4xf32>, %out1: tensor<4x4xf32>)
    -> (tensor<7x4xf32>, tensor<4x4xf32>) {
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<4x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %larger = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%y, %sum : tensor<7x4xf32>, tensor<4xf32>) outs(%out : tensor<7x4xf32>) {
  ^bb0(%e: f32, %f: f32, %o: f32):
    %0 = arith.mulf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<7x4xf32>
  %turned = linalg.generic {indexing_maps = [#data, #row, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<4x4xf32>, tensor<4xf32>) outs(%out1 : tensor<4x4xf32>) {
  ^bb0(%e: f32, %f: f32, %o: f32):
    %0 = arith.mulf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<4x4xf32>
  return %larger, %turned : tensor<7x4xf32>, tensor<4x4xf32>
}

// A sum that must keep its order is not grouped.
// CHECK-LABEL: func @strict_sum
// CHECK-NOT:     bngrad.schedule
// CHECK:         return
func.func @strict_sum(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<contract> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %sum : tensor<4xf32>
}

// A sum that is also returned is a result of the region, like grad_input; the
// accumulator may be either operand of the addition.
// CHECK-LABEL: func @sum_that_escapes
// CHECK:         %[[EMPTY:.+]] = tensor.empty() : tensor<4xf32>
// CHECK:         %[[INIT:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%[[EMPTY]] : tensor<4xf32>)
// CHECK:         %[[RESULTS:.+]]:2 = scf.execute_region -> (tensor<4xf32>, tensor<8x4xf32>) no_inline {
// CHECK:           %[[SUM:.+]] = linalg.generic {{.+}} outs(%[[INIT]] : tensor<4xf32>)
// CHECK:           %[[DX:.+]] = linalg.generic {{.+}} ins(%{{.+}}, %[[SUM]] :
// CHECK:           scf.yield %[[SUM]], %[[DX]] :
// CHECK:         return %[[RESULTS]]#1, %[[RESULTS]]#0
func.func @sum_that_escapes(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %e, %acc fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<8x4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<8x4xf32>, tensor<4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.subf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx, %sum : tensor<8x4xf32>, tensor<4xf32>
}

// Sums alone are a group, with their own init.
// CHECK-LABEL: func @sums_alone
// CHECK-SAME:    %[[INIT0:[^:]+]]: tensor<4xf32>, %[[INIT1:[^:]+]]: tensor<4xf32>)
// CHECK:         scf.execute_region -> (tensor<4xf32>, tensor<4xf32>) no_inline {
// CHECK-NEXT:      linalg.generic {{.+}} outs(%[[INIT0]], %[[INIT1]] : {{.+}} attrs = {bngrad.schedule = #bngrad.schedule<loops>}
func.func @sums_alone(%x: tensor<8x4xf32>, %init0: tensor<4xf32>, %init1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %sums:2 = linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init0, %init1 : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%e: f32, %acc0: f32, %acc1: f32):
    %0 = arith.mulf %e, %e : f32
    %1 = arith.addf %acc0, %e fastmath<reassoc> : f32
    %2 = arith.addf %acc1, %0 fastmath<reassoc> : f32
    linalg.yield %1, %2 : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %sums#0, %sums#1 : tensor<4xf32>, tensor<4xf32>
}

// Global statistics, only grad_input: no sums, but the coefficients are grouped
// with the loop that reads them.
// CHECK-LABEL: func @coefficients_and_elementwise_without_sums
// CHECK-SAME:    (%[[DY:.+]]: tensor<8x4xf32>, %[[V:.+]]: tensor<4xf32>)
// CHECK:         %[[DX:.+]] = scf.execute_region -> tensor<8x4xf32> no_inline {
// CHECK:           %[[R:.+]] = linalg.generic {{.+}} ins(%[[V]] : {{.+}} attrs = {bngrad.schedule = #bngrad.schedule<loops>}
// CHECK:           linalg.generic {{.+}} ins(%[[DY]], %[[R]] : {{.+}} attrs = {bngrad.schedule = #bngrad.schedule<loops>}
// CHECK:         return %[[DX]]
func.func @coefficients_and_elementwise_without_sums(%dy: tensor<8x4xf32>, %v: tensor<4xf32>) -> tensor<8x4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%v : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = math.rsqrt %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<8x4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dy, %r : tensor<8x4xf32>, tensor<4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.mulf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx : tensor<8x4xf32>
}

// A coefficient may follow from a scalar.
// CHECK-LABEL: func @coefficient_of_a_scalar
// CHECK-SAME:    (%[[DY:.+]]: tensor<8x4xf32>, %[[S:.+]]: tensor<f32>)
// CHECK:         scf.execute_region -> tensor<8x4xf32> no_inline {
// CHECK:           linalg.generic {{.+}} ins(%[[S]] : {{.+}} attrs = {bngrad.schedule = #bngrad.schedule<loops>}
// CHECK:           linalg.generic {{.+}} ins(%[[DY]], {{.+}} attrs = {bngrad.schedule = #bngrad.schedule<loops>}
func.func @coefficient_of_a_scalar(%dy: tensor<8x4xf32>, %s: tensor<f32>) -> tensor<8x4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, #channel], iterator_types = ["parallel"]}
      ins(%s : tensor<f32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = math.rsqrt %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<8x4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dy, %r : tensor<8x4xf32>, tensor<4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.mulf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx : tensor<8x4xf32>
}

// A coefficient that carries a schedule keeps it, and its place.
// CHECK-LABEL: func @coefficient_with_a_schedule
// CHECK-NOT:     scf.execute_region
// CHECK:         linalg.generic {{.+}} attrs = {bngrad.schedule = #bngrad.schedule<rows>}
// CHECK-NOT:     bngrad.schedule
// CHECK:         return
func.func @coefficient_with_a_schedule(%dy: tensor<8x4xf32>, %v: tensor<4xf32>) -> tensor<8x4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%v : tensor<4xf32>) outs(%empty : tensor<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
  ^bb0(%e: f32, %out: f32):
    %0 = math.rsqrt %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<8x4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dy, %r : tensor<8x4xf32>, tensor<4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.mulf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx : tensor<8x4xf32>
}

// The loop of the sums may store elements. A reader of these at the element and
// of the sum at the channel is a member.
// CHECK-LABEL: func @sums_and_elements
// CHECK:         scf.execute_region
// CHECK:           %[[FIRST:.+]]:2 = linalg.generic {{.+}} ["reduction", "parallel"]}
// CHECK:           linalg.generic {{.+}} ins(%[[FIRST]]#1, %[[FIRST]]#0 : {{.+}} attrs = {bngrad.schedule = #bngrad.schedule<loops>}
// CHECK:           scf.yield
func.func @sums_and_elements(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<8x4xf32> {
  %empty = tensor.empty() : tensor<8x4xf32>
  %first:2 = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init, %empty : tensor<4xf32>, tensor<8x4xf32>) {
  ^bb0(%e: f32, %acc: f32, %out: f32):
    %0 = math.absf %e : f32
    %1 = arith.addf %acc, %0 fastmath<reassoc> : f32
    linalg.yield %1, %0 : f32, f32
  } -> (tensor<4xf32>, tensor<8x4xf32>)
  %full = tensor.empty() : tensor<8x4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%first#1, %first#0 : tensor<8x4xf32>, tensor<4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.subf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx : tensor<8x4xf32>
}

// A loop that writes over the sums is no member: another reader may need them.
// CHECK-LABEL: func @written_over_the_sum
// CHECK:         %[[SUM:.+]] = scf.execute_region -> tensor<4xf32> no_inline {
// CHECK-COUNT-1:   linalg.generic
// CHECK:         }
// CHECK:         linalg.generic {{.+}} ins(%[[SUM]] : {{.+}} outs(%[[SUM]] :
// CHECK-NOT:     bngrad.schedule
// CHECK:         return
func.func @written_over_the_sum(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %factor = linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%sum : tensor<4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = arith.mulf %e, %out : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %factor : tensor<4xf32>
}

// A reduction whose stored elements depend on the old ones is not taken.
// CHECK-LABEL: func @elements_of_elements
// CHECK-NOT:     bngrad.schedule
// CHECK:         return
func.func @elements_of_elements(%x: tensor<8x4xf32>, %init: tensor<4xf32>, %y: tensor<8x4xf32>) -> (tensor<4xf32>, tensor<8x4xf32>) {
  %0:2 = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init, %y : tensor<4xf32>, tensor<8x4xf32>) {
  ^bb0(%e: f32, %acc: f32, %out: f32):
    %1 = arith.addf %acc, %e fastmath<reassoc> : f32
    %2 = arith.mulf %e, %out : f32
    linalg.yield %1, %2 : f32, f32
  } -> (tensor<4xf32>, tensor<8x4xf32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<8x4xf32>
}

// A full-size reader of grad_input is not in the group.
// CHECK-LABEL: func @reader_of_grad_input
// CHECK:         %[[DX:.+]] = scf.execute_region -> tensor<8x4xf32> no_inline {
// CHECK-COUNT-2:   linalg.generic {{.+}} attrs = {bngrad.schedule = #bngrad.schedule<loops>}
// CHECK:         }
// CHECK:         %[[NEGATED:.+]] = linalg.generic {{.+}} ins(%[[DX]] :
// CHECK-NOT:     bngrad.schedule
// CHECK:         return %[[DX]], %[[NEGATED]]
func.func @reader_of_grad_input(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %full0 = tensor.empty() : tensor<8x4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<8x4xf32>, tensor<4xf32>) outs(%full0 : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.subf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %full1 = tensor.empty() : tensor<8x4xf32>
  %negated = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dx : tensor<8x4xf32>) outs(%full1 : tensor<8x4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = arith.negf %e : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx, %negated : tensor<8x4xf32>, tensor<8x4xf32>
}

// Two consecutive gradients: the second group starts after the first one's
// result is complete.
// CHECK-LABEL: func @two_gradients_two_groups
// CHECK-SAME:    %[[X:[^:]+]]: tensor<8x4xf32>
// CHECK:         %[[DX0:.+]] = scf.execute_region -> tensor<8x4xf32> no_inline {
// CHECK:           linalg.generic {{.+}} ["reduction", "parallel"]} ins(%[[X]] :
// CHECK:           linalg.generic {{.+}} ["parallel", "parallel"]}
// CHECK:         %[[DX1:.+]] = scf.execute_region -> tensor<8x4xf32> no_inline {
// CHECK:           linalg.generic {{.+}} ["reduction", "parallel"]} ins(%[[DX0]] :
// CHECK:           linalg.generic {{.+}} ["parallel", "parallel"]} ins(%[[DX0]],
// CHECK:         return %[[DX1]]
func.func @two_gradients_two_groups(%x: tensor<8x4xf32>, %init0: tensor<4xf32>, %init1: tensor<4xf32>) -> tensor<8x4xf32> {
  %sum0 = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init0 : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %full0 = tensor.empty() : tensor<8x4xf32>
  %dx0 = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum0 : tensor<8x4xf32>, tensor<4xf32>) outs(%full0 : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.subf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %sum1 = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%dx0 : tensor<8x4xf32>) outs(%init1 : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %full1 = tensor.empty() : tensor<8x4xf32>
  %dx1 = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dx0, %sum1 : tensor<8x4xf32>, tensor<4xf32>) outs(%full1 : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.subf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx1 : tensor<8x4xf32>
}

// Two gradients side by side, one inside the other in program order: each
// keeps its own.
// CHECK-LABEL: func @interleaved_gradients
// CHECK-SAME:    (%[[X:.+]]: tensor<8x4xf32>, %[[Y:.+]]: tensor<8x4xf32>,
// CHECK-DAG:     %[[DX:.+]] = scf.execute_region -> tensor<8x4xf32> no_inline {{{[[:space:]]+}}%[[SUM_X:.+]] = linalg.generic {{.+}} ins(%[[X]] :
// CHECK-DAG:       linalg.generic {{.+}} ins(%[[X]], %[[SUM_X]] :
// CHECK-DAG:     %[[DY:.+]] = scf.execute_region -> tensor<8x4xf32> no_inline {{{[[:space:]]+}}%[[SUM_Y:.+]] = linalg.generic {{.+}} ins(%[[Y]] :
// CHECK-DAG:       linalg.generic {{.+}} ins(%[[Y]], %[[SUM_Y]] :
// CHECK:         return %[[DX]], %[[DY]]
func.func @interleaved_gradients(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>, %init0: tensor<4xf32>, %init1: tensor<4xf32>)
    -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %sum0 = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init0 : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %sum1 = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%y : tensor<8x4xf32>) outs(%init1 : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %full0 = tensor.empty() : tensor<8x4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum0 : tensor<8x4xf32>, tensor<4xf32>) outs(%full0 : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.subf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %full1 = tensor.empty() : tensor<8x4xf32>
  %dy = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%y, %sum1 : tensor<8x4xf32>, tensor<4xf32>) outs(%full1 : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.subf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx, %dy : tensor<8x4xf32>, tensor<8x4xf32>
}

// A group inside a region.
// CHECK-LABEL: func @group_in_a_loop
// CHECK:         scf.for
// CHECK-NEXT:      %[[SUM:.+]] = scf.execute_region -> tensor<4xf32> no_inline {
// CHECK:           scf.yield %[[SUM]]
func.func @group_in_a_loop(%x: tensor<8x4xf32>, %init: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%start = %init) -> (tensor<4xf32>) {
    %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%x : tensor<8x4xf32>) outs(%start : tensor<4xf32>) {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    } -> tensor<4xf32>
    scf.yield %sum : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// === foreign ops ===

// An op on the path from the sums to grad_input (an all-reduce, say) must run
// between them: they are two groups, before and after it.
// CHECK-LABEL: func @foreign_op_on_the_path
// CHECK:         %[[SUM:.+]] = scf.execute_region -> tensor<4xf32> no_inline {
// CHECK-NEXT:      linalg.generic {{.+}} ["reduction", "parallel"]}
// CHECK-NOT:       linalg.generic
// CHECK:         %[[TOTAL:.+]] = "test.all_reduce"(%[[SUM]])
// CHECK:         %[[DX:.+]] = scf.execute_region -> tensor<8x4xf32> no_inline {
// CHECK:           linalg.generic {{.+}} ins(%[[TOTAL]] :
// CHECK:           linalg.generic {{.+}} ["parallel", "parallel"]}
// CHECK:         return %[[DX]]
func.func @foreign_op_on_the_path(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<8x4xf32> {
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %total = "test.all_reduce"(%sum) : (tensor<4xf32>) -> tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %factor = linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%total : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = math.sqrt %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<8x4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %factor : tensor<8x4xf32>, tensor<4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.mulf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx : tensor<8x4xf32>
}

// A call is also foreign. An op that reads the sum and the call's result
// depends on the call; one that only reads the sum does not.
func.func private @all_reduce(tensor<4xf32>) -> tensor<4xf32>
// CHECK-LABEL: func @call_on_one_of_two_paths
// CHECK:         %[[GROUP:.+]]:2 = scf.execute_region -> (tensor<4xf32>, tensor<4xf32>) no_inline {
// CHECK:           linalg.generic {{.+}} ["reduction", "parallel"]}
// CHECK:           linalg.generic {{.+}} ["parallel"]}
// CHECK-NOT:       linalg.generic
// CHECK:         }
// CHECK:         %[[TOTAL:.+]] = {{.*}}call @all_reduce(%[[GROUP]]#0)
// CHECK:         %[[DX:.+]] = scf.execute_region
// CHECK-NEXT:      linalg.generic {{.+}} ["parallel", "parallel"]} ins(%{{.+}}, %[[GROUP]]#0, %[[TOTAL]] :
// CHECK:         return %[[DX]], %[[GROUP]]#1
func.func @call_on_one_of_two_paths(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %total = func.call @all_reduce(%sum) : (tensor<4xf32>) -> tensor<4xf32>
  %full = tensor.empty() : tensor<8x4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum, %total : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %t: f32, %out: f32):
    %0 = arith.mulf %e, %f : f32
    %1 = arith.subf %0, %t : f32
    linalg.yield %1 : f32
  } -> tensor<8x4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %root = linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = math.sqrt %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %dx, %root : tensor<8x4xf32>, tensor<4xf32>
}

// A region reads the sums from outside. grad_input reads the sums and the
// region's result, so it cannot be computed before the region.
// CHECK-LABEL: func @region_on_the_path
// CHECK:         %[[SUM:.+]] = scf.execute_region -> tensor<4xf32> no_inline {
// CHECK:         %[[TOTAL:.+]] = scf.if
// CHECK:           "test.use"(%[[SUM]])
// CHECK:         linalg.generic {{.+}} ["parallel", "parallel"]} ins(%{{.+}}, %[[SUM]], %[[TOTAL]] :
func.func @region_on_the_path(%x: tensor<8x4xf32>, %init: tensor<4xf32>, %c: i1) -> tensor<8x4xf32> {
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %total = scf.if %c -> tensor<4xf32> {
    %0 = "test.use"(%sum) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  } else {
    scf.yield %init : tensor<4xf32>
  }
  %full = tensor.empty() : tensor<8x4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum, %total : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %t: f32, %out: f32):
    %0 = arith.mulf %e, %f : f32
    %1 = arith.subf %0, %t : f32
    linalg.yield %1 : f32
  } -> tensor<8x4xf32>
  return %dx : tensor<8x4xf32>
}

// An op reads grad_scale before grad_input is computed. It is on no path: the
// group stays whole, and the reader is moved after it.
// CHECK-LABEL: func @reader_of_grad_scale_in_between
// CHECK:         %[[GROUP:.+]]:2 = scf.execute_region -> (tensor<4xf32>, tensor<8x4xf32>) no_inline {
// CHECK:           linalg.generic {{.+}} ["reduction", "parallel"]}
// CHECK:           linalg.generic {{.+}} ["parallel"]}
// CHECK:           linalg.generic {{.+}} ["parallel", "parallel"]}
// CHECK:         }
// CHECK:         %[[UPDATED:.+]] = arith.negf %[[GROUP]]#0
// CHECK:         return %[[GROUP]]#1, %[[UPDATED]]
func.func @reader_of_grad_scale_in_between(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %scale = linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = math.sqrt %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %updated = arith.negf %scale : tensor<4xf32>
  %full = tensor.empty() : tensor<8x4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %scale : tensor<8x4xf32>, tensor<4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.mulf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx, %updated : tensor<8x4xf32>, tensor<4xf32>
}

// Operands of members that are computed between the members are moved before the group.
// CHECK-LABEL: func @operand_computed_in_between
// CHECK:         %[[Z:.+]] = math.exp
// CHECK:         scf.execute_region
// CHECK:           linalg.generic {{.+}} ["reduction", "parallel"]}
// CHECK:           linalg.generic {{.+}} ins(%[[Z]], %{{.+}} :
func.func @operand_computed_in_between(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<8x4xf32> {
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %z = math.exp %x : tensor<8x4xf32>
  %full = tensor.empty() : tensor<8x4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%z, %sum : tensor<8x4xf32>, tensor<4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.subf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx : tensor<8x4xf32>
}

// A reader with another order of the channels is not a member.
// CHECK-LABEL: func @channels_read_in_reverse
// CHECK:         %[[SUM:.+]] = scf.execute_region -> tensor<4xf32> no_inline {
// CHECK-NEXT:      linalg.generic {{.+}} ["reduction", "parallel"]}
// CHECK-NOT:       linalg.generic
// CHECK:         }
// CHECK:         linalg.generic {{.+}} ["parallel", "parallel"]} ins(%{{.+}}, %[[SUM]] :
// CHECK-NOT:     bngrad.schedule
// CHECK:         return
func.func @channels_read_in_reverse(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<8x4xf32> {
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<8x4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #reversed, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<8x4xf32>, tensor<4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.subf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx : tensor<8x4xf32>
}

// === inits ===

// CSE merges the fills and the empties; bufferization would copy if two results
// start from one of them. Every result gets its own again, and unused ones are
// erased.
// CSE-LABEL: func @merged_inits
// CSE-NOT:     linalg.fill
// CSE:         %[[OUTER_EMPTY:.+]] = tensor.empty() : tensor<4xf32>
// CSE-NEXT:    %[[OUTER:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%[[OUTER_EMPTY]] : tensor<4xf32>)
// CSE-NOT:     linalg.fill
// CSE:         scf.execute_region -> (tensor<4xf32>, tensor<4xf32>) no_inline {
// CSE-NEXT:      %[[INNER_EMPTY:.+]] = tensor.empty() : tensor<4xf32>
// CSE-NEXT:      %[[INNER:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%[[INNER_EMPTY]] : tensor<4xf32>)
// CSE-NEXT:      %[[SUMS:.+]]:2 = linalg.generic {{.+}} outs(%[[OUTER]], %[[INNER]] :
// CSE-NOT:       linalg.fill
// CSE:         return
func.func @merged_inits(%x: tensor<8x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty0 = tensor.empty() : tensor<4xf32>
  %init0 = linalg.fill ins(%zero : f32) outs(%empty0 : tensor<4xf32>) -> tensor<4xf32>
  %empty1 = tensor.empty() : tensor<4xf32>
  %init1 = linalg.fill ins(%zero : f32) outs(%empty1 : tensor<4xf32>) -> tensor<4xf32>
  %sums:2 = linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init0, %init1 : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%e: f32, %acc0: f32, %acc1: f32):
    %0 = arith.mulf %e, %e : f32
    %1 = arith.addf %acc0, %e fastmath<reassoc> : f32
    %2 = arith.addf %acc1, %0 fastmath<reassoc> : f32
    linalg.yield %1, %2 : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  %empty2 = tensor.empty() : tensor<4xf32>
  %root = linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%sums#1 : tensor<4xf32>) outs(%empty2 : tensor<4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = math.sqrt %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %sums#0, %root : tensor<4xf32>, tensor<4xf32>
}

// Dynamic sizes are kept with the inits.
// CSE-LABEL: func @merged_dynamic_inits
// CSE-SAME:    %[[C:[^:]+]]: index)
// CSE:         %[[E0:.+]] = tensor.empty(%[[C]]) : tensor<?xf32>
// CSE:         %[[I0:.+]] = linalg.fill {{.+}} outs(%[[E0]] :
// CSE:         %[[E1:.+]] = tensor.empty(%[[C]]) : tensor<?xf32>
// CSE:         %[[I1:.+]] = linalg.fill {{.+}} outs(%[[E1]] :
// CSE:           linalg.generic {{.+}} outs(%[[I0]], %[[I1]] :
func.func @merged_dynamic_inits(%x: tensor<?x?xf32>, %c: index) -> (tensor<?xf32>, tensor<?xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty0 = tensor.empty(%c) : tensor<?xf32>
  %init0 = linalg.fill ins(%zero : f32) outs(%empty0 : tensor<?xf32>) -> tensor<?xf32>
  %empty1 = tensor.empty(%c) : tensor<?xf32>
  %init1 = linalg.fill ins(%zero : f32) outs(%empty1 : tensor<?xf32>) -> tensor<?xf32>
  %sums:2 = linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<?x?xf32>) outs(%init0, %init1 : tensor<?xf32>, tensor<?xf32>) {
  ^bb0(%e: f32, %acc0: f32, %acc1: f32):
    %0 = arith.mulf %e, %e : f32
    %1 = arith.addf %acc0, %e fastmath<reassoc> : f32
    %2 = arith.addf %acc1, %0 fastmath<reassoc> : f32
    linalg.yield %1, %2 : f32, f32
  } -> (tensor<?xf32>, tensor<?xf32>)
  return %sums#0, %sums#1 : tensor<?xf32>, tensor<?xf32>
}

// === nothing to do ===

// Reductions other than floating-point sums, and their readers.
// CHECK-LABEL: func @other_reductions
// CHECK-NOT:     scf.execute_region
// CHECK-NOT:     bngrad.schedule
// CHECK:         return
func.func @other_reductions(%x: tensor<8x4xf32>, %k: tensor<8x4xi32>, %f: tensor<4xf32>, %i: tensor<4xi32>)
    -> (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %max = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.maximumf %acc, %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %integer_sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%k : tensor<8x4xi32>) outs(%i : tensor<4xi32>) {
  ^bb0(%e: i32, %acc: i32):
    %0 = arith.addi %acc, %e : i32
    linalg.yield %0 : i32
  } -> tensor<4xi32>
  // The accumulator is read twice.
  %compound = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.mulf %acc, %e : f32
    %1 = arith.addf %acc, %0 fastmath<reassoc> : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  // The sum is modified at every step.
  %negated = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    %1 = arith.negf %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  // Each result adds to the other one.
  %crossed:2 = linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%f, %f : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%e: f32, %acc0: f32, %acc1: f32):
    %0 = arith.addf %acc1, %e fastmath<reassoc> : f32
    %1 = arith.addf %acc0, %e fastmath<reassoc> : f32
    linalg.yield %0, %1 : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  // One of two results is not a sum.
  %mixed:2 = linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%f, %f : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%e: f32, %acc0: f32, %acc1: f32):
    %0 = arith.addf %acc0, %e fastmath<reassoc> : f32
    %1 = arith.maximumf %acc1, %e : f32
    linalg.yield %0, %1 : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %max, %integer_sum, %compound, %negated, %crossed#0, %mixed#0, %mixed#1
      : tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Element-wise ops without per-channel values, and IR that is not linalg.
// CHECK-LABEL: func @unrelated_ops
// CHECK-NOT:     scf.execute_region
// CHECK-NOT:     bngrad.schedule
// CHECK:         return
func.func @unrelated_ops(%x: tensor<8x4xf32>, %v: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %empty = tensor.empty() : tensor<8x4xf32>
  %exp = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = math.exp %e : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %bias = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %v : tensor<8x4xf32>, tensor<4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %b: f32, %out: f32):
    %0 = arith.addf %e, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %sum = linalg.add ins(%exp, %bias : tensor<8x4xf32>, tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %exp, %bias, %sum : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// On buffers, other writers are unknown.
// CHECK-LABEL: func @buffers
// CHECK-NOT:     scf.execute_region
// CHECK-NOT:     bngrad.schedule
// CHECK:         return
func.func @buffers(%x: memref<8x4xf32>, %sum: memref<4xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<8x4xf32>) outs(%sum : memref<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}
