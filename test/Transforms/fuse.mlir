// RUN: bngrad-opt %s --bngrad-fuse --verify-diagnostics --mlir-print-local-scope | FileCheck %s

#data = affine_map<(d0, d1) -> (d0, d1)>
#transposed = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>
#feature = affine_map<(d0, d1) -> (d1)>
#channel = affine_map<(d0) -> (d0)>
#scalar = affine_map<(d0, d1) -> ()>

// The structure of a gradient: the sums and grad_input both read grad_output,
// which upstream's fusion (only one reader) would leave in memory. The producer
// is cloned into both and erased.
// CHECK-LABEL: func @producer_into_both_readers
// CHECK-SAME:    (%[[DY:.+]]: tensor<8x4xf32>, %[[Y:.+]]: tensor<8x4xf32>, %[[INIT:.+]]: tensor<4xf32>)
// CHECK-NOT:     linalg.generic
// CHECK:         %[[SUM:.+]] = linalg.generic {{.+}} iterator_types = ["reduction", "parallel"]} ins(%[[DY]], %[[Y]] : tensor<8x4xf32>, tensor<8x4xf32>) outs(%[[INIT]] : tensor<4xf32>)
// CHECK-NEXT:    ^bb0(%[[DY_E:[^:]+]]: f32, %[[Y_E:[^:]+]]: f32, %[[ACC:[^:]+]]: f32):
// CHECK-NEXT:      %[[PRODUCT:.+]] = arith.mulf %[[DY_E]], %[[Y_E]]
// CHECK-NEXT:      %[[TOTAL:.+]] = arith.addf %[[ACC]], %[[PRODUCT]]
// CHECK-NEXT:      linalg.yield %[[TOTAL]]
// CHECK:         %[[DX:.+]] = linalg.generic {{.+}} iterator_types = ["parallel", "parallel"]} ins(%[[DY]], %[[Y]], %[[SUM]] :
// CHECK-NEXT:    ^bb0(%[[DY_E:[^:]+]]: f32, %[[Y_E:[^:]+]]: f32, %[[SUM_E:[^:]+]]: f32,
// CHECK-NEXT:      %[[PRODUCT:.+]] = arith.mulf %[[DY_E]], %[[Y_E]]
// CHECK-NEXT:      %[[REST:.+]] = arith.subf %[[PRODUCT]], %[[SUM_E]]
// CHECK-NEXT:      linalg.yield %[[REST]]
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[DX]], %[[SUM]]
func.func @producer_into_both_readers(%dy: tensor<8x4xf32>, %y: tensor<8x4xf32>, %init: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<8x4xf32>
  %product = linalg.generic {indexing_maps = [#data, #data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dy, %y : tensor<8x4xf32>, tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%product : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%product, %sum : tensor<8x4xf32>, tensor<4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %s: f32, %out: f32):
    %0 = arith.subf %e, %s : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx, %sum : tensor<8x4xf32>, tensor<4xf32>
}

// Producers of both operands of the sums, one of them a chain of two with a
// change of type. No full-size tensor remains between them.
// CHECK-LABEL: func @chains_of_producers
// CHECK-SAME:    (%[[DY:.+]]: tensor<8x4xbf16>, %[[X:.+]]: tensor<8x4xf32>, %[[INIT:.+]]: tensor<4xf32>)
// CHECK-NOT:     linalg.generic
// CHECK:         %[[SUM:.+]] = linalg.generic {{.+}} ins(%[[DY]], %[[X]] : tensor<8x4xbf16>, tensor<8x4xf32>) outs(%[[INIT]] :
// CHECK-NEXT:    ^bb0(%[[DY_E:[^:]+]]: bf16, %[[X_E:[^:]+]]: f32, %[[ACC:[^:]+]]: f32):
// CHECK-DAG:       %[[WIDE:.+]] = arith.extf %[[DY_E]] : bf16 to f32
// CHECK-DAG:       %[[NEGATED:.+]] = arith.negf %[[WIDE]]
// CHECK-DAG:       %[[EXP:.+]] = math.exp %[[X_E]]
// CHECK-DAG:       %[[PRODUCT:.+]] = arith.mulf %[[NEGATED]], %[[EXP]]
// CHECK-DAG:       %[[TOTAL:.+]] = arith.addf %[[ACC]], %[[PRODUCT]]
// CHECK:           linalg.yield %[[TOTAL]]
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[SUM]]
func.func @chains_of_producers(%dy: tensor<8x4xbf16>, %x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<8x4xf32>
  %wide = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dy : tensor<8x4xbf16>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: bf16, %out: f32):
    %0 = arith.extf %e : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %negated = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%wide : tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = arith.negf %e : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %exp = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = math.exp %e : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %sum = linalg.generic {indexing_maps = [#data, #data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%negated, %exp : tensor<8x4xf32>, tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %sum : tensor<4xf32>
}

// Two sums in one pass stay in one pass.
// CHECK-LABEL: func @producer_into_two_result_reduction
// CHECK-SAME:    (%[[X:.+]]: tensor<8x4xf32>, %[[INIT0:.+]]: tensor<4xf32>, %[[INIT1:.+]]: tensor<4xf32>)
// CHECK-NOT:     linalg.generic
// CHECK:         %[[SUMS:.+]]:2 = linalg.generic {{.+}} ins(%[[X]] : tensor<8x4xf32>) outs(%[[INIT0]], %[[INIT1]] :
// CHECK:           math.exp
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[SUMS]]#0, %[[SUMS]]#1
func.func @producer_into_two_result_reduction(%x: tensor<8x4xf32>, %init0: tensor<4xf32>, %init1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<8x4xf32>
  %exp = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = math.exp %e : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %sums:2 = linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%exp : tensor<8x4xf32>) outs(%init0, %init1 : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%e: f32, %acc0: f32, %acc1: f32):
    %0 = arith.mulf %e, %e : f32
    %1 = arith.addf %acc0, %e : f32
    %2 = arith.addf %acc1, %0 : f32
    linalg.yield %1, %2 : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %sums#0, %sums#1 : tensor<4xf32>, tensor<4xf32>
}

// A computed i1 mask that depends on the index of its element; dynamic sizes.
// CHECK-LABEL: func @producer_with_index
// CHECK-SAME:    (%[[X:.+]]: tensor<?x?xf32>, %[[INIT:.+]]: tensor<?xf32>
// CHECK-NOT:     linalg.generic
// CHECK:         linalg.generic {{.+}} ins(%[[X]]{{.*}} : tensor<?x?xf32>{{.*}}) outs(%[[INIT]] : tensor<?xf32>)
// CHECK-DAG:       %[[I:.+]] = linalg.index 0 : index
// CHECK-DAG:       %[[J:.+]] = linalg.index 1 : index
// CHECK-DAG:       %[[KEPT:.+]] = arith.cmpi slt, %[[I]], %[[J]] : index
// CHECK-DAG:       arith.select %[[KEPT]], %{{.+}}, %{{.+}} : f32
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @producer_with_index(%x: tensor<?x?xf32>, %init: tensor<?xf32>, %empty: tensor<?x?xi1>) -> tensor<?xf32> {
  %mask = linalg.generic {indexing_maps = [#data], iterator_types = ["parallel", "parallel"]} outs(%empty : tensor<?x?xi1>) {
  ^bb0(%out: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %0 = arith.cmpi slt, %i, %j : index
    linalg.yield %0 : i1
  } -> tensor<?x?xi1>
  %sum = linalg.generic {indexing_maps = [#data, #data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x, %mask : tensor<?x?xf32>, tensor<?x?xi1>) outs(%init : tensor<?xf32>) {
  ^bb0(%e: f32, %k: i1, %acc: f32):
    %zero = arith.constant 0.0 : f32
    %0 = arith.select %k, %e, %zero : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<?xf32>
  return %sum : tensor<?xf32>
}

// A broadcast scalar is not a per-channel value.
// CHECK-LABEL: func @producer_with_scalar_operand
// CHECK-SAME:    (%[[X:.+]]: tensor<8x4xf32>, %[[S:.+]]: tensor<f32>, %[[INIT:.+]]: tensor<4xf32>)
// CHECK-NOT:     linalg.generic
// CHECK:         linalg.generic {{.+}} ins(%[[X]], %[[S]] : tensor<8x4xf32>, tensor<f32>) outs(%[[INIT]] :
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @producer_with_scalar_operand(%x: tensor<8x4xf32>, %s: tensor<f32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<8x4xf32>
  %scaled = linalg.generic {indexing_maps = [#data, #scalar, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<8x4xf32>, tensor<f32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.mulf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%scaled : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %sum : tensor<4xf32>
}

// A per-channel value is widened where it is read, as in a gradient of narrow parameters.
// CHECK-LABEL: func @widened_channel
// CHECK-SAME:    (%[[X:.+]]: tensor<8x4xf32>, %[[M:.+]]: tensor<4xbf16>, %[[INIT:.+]]: tensor<4xf32>)
// CHECK-NOT:     linalg.generic
// CHECK:         %[[SUM:.+]] = linalg.generic {{.+}} ins(%[[X]], %[[M]] : tensor<8x4xf32>, tensor<4xbf16>) outs(%[[INIT]] :
// CHECK:           arith.extf
// CHECK:         %[[DX:.+]] = linalg.generic {{.+}} ins(%[[X]], %[[M]] : tensor<8x4xf32>, tensor<4xbf16>)
// CHECK:           arith.extf
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @widened_channel(%x: tensor<8x4xf32>, %m: tensor<4xbf16>, %init: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<4xf32>
  %full = tensor.empty() : tensor<8x4xf32>
  %wide = linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%m : tensor<4xbf16>) outs(%empty : tensor<4xf32>) {
  ^bb0(%e: bf16, %out: f32):
    %0 = arith.extf %e : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x, %wide : tensor<8x4xf32>, tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %f: f32, %acc: f32):
    %0 = arith.subf %e, %f : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %wide : tensor<8x4xf32>, tensor<4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.subf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx, %sum : tensor<8x4xf32>, tensor<4xf32>
}

// The same without sums.
// CHECK-LABEL: func @widened_channel_of_elements
// CHECK-SAME:    (%[[X:.+]]: tensor<8x4xf32>, %[[M:.+]]: tensor<4xbf16>)
// CHECK-NOT:     linalg.generic
// CHECK:         linalg.generic {{.+}} ins(%[[X]], %[[M]] : tensor<8x4xf32>, tensor<4xbf16>)
// CHECK:           arith.extf
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @widened_channel_of_elements(%x: tensor<8x4xf32>, %m: tensor<4xbf16>) -> tensor<8x4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %full = tensor.empty() : tensor<8x4xf32>
  %wide = linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%m : tensor<4xbf16>) outs(%empty : tensor<4xf32>) {
  ^bb0(%e: bf16, %out: f32):
    %0 = arith.extf %e : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %wide : tensor<8x4xf32>, tensor<4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.subf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx : tensor<8x4xf32>
}

// === ops that must not be fused ===

// A widened value that is also returned has to be computed anyway.
// CHECK-LABEL: func @returned_widened_channel
// CHECK-SAME:    (%[[X:.+]]: tensor<8x4xf32>, %[[M:.+]]: tensor<4xbf16>)
// CHECK:         %[[WIDE:.+]] = linalg.generic {{.+}} ins(%[[M]] :
// CHECK:         linalg.generic {{.+}} ins(%[[X]], %[[WIDE]] :
// CHECK:         return
func.func @returned_widened_channel(%x: tensor<8x4xf32>, %m: tensor<4xbf16>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<4xf32>
  %full = tensor.empty() : tensor<8x4xf32>
  %wide = linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%m : tensor<4xbf16>) outs(%empty : tensor<4xf32>) {
  ^bb0(%e: bf16, %out: f32):
    %0 = arith.extf %e : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %wide : tensor<8x4xf32>, tensor<4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.subf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx, %wide : tensor<8x4xf32>, tensor<4xf32>
}

// In a product of matrices, each element would be widened for each column of the other one.
// CHECK-LABEL: func @widened_matrix
// CHECK-SAME:    (%[[A:.+]]: tensor<8x4xbf16>, %[[B:.+]]: tensor<4x5xf32>, %[[INIT:.+]]: tensor<8x5xf32>)
// CHECK:         %[[WIDE:.+]] = linalg.generic {{.+}} ins(%[[A]] :
// CHECK:         linalg.generic {{.+}} ins(%[[WIDE]], %[[B]] :
func.func @widened_matrix(%a: tensor<8x4xbf16>, %b: tensor<4x5xf32>, %init: tensor<8x5xf32>) -> tensor<8x5xf32> {
  %empty = tensor.empty() : tensor<8x4xf32>
  %wide = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<8x4xbf16>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: bf16, %out: f32):
    %0 = arith.extf %e : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %product = linalg.generic {
      indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%wide, %b : tensor<8x4xf32>, tensor<4x5xf32>) outs(%init : tensor<8x5xf32>) {
  ^bb0(%e: f32, %f: f32, %acc: f32):
    %0 = arith.mulf %e, %f : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x5xf32>
  return %product : tensor<8x5xf32>
}

// One root and one division per channel, not per element, although the value
// has only one reader.
// CHECK-LABEL: func @per_channel_value_stays_per_channel
// CHECK-SAME:    (%[[X:.+]]: tensor<8x4xf32>, %[[V:.+]]: tensor<4xf32>)
// CHECK:         %[[R:.+]] = linalg.generic {{.+}} iterator_types = ["parallel"]} ins(%[[V]] :
// CHECK:           math.rsqrt
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel"]} ins(%[[X]], %[[R]] :
// CHECK-NOT:       math.rsqrt
// CHECK:         return
func.func @per_channel_value_stays_per_channel(%x: tensor<8x4xf32>, %v: tensor<4xf32>) -> tensor<8x4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %full = tensor.empty() : tensor<8x4xf32>
  %r = linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%v : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = math.rsqrt %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %r : tensor<8x4xf32>, tensor<4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %f: f32, %out: f32):
    %0 = arith.mulf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// Nor is it fused into the loop of the sums.
// CHECK-LABEL: func @per_channel_value_of_the_sums_stays_per_channel
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel"]}
// CHECK:           math.rsqrt
// CHECK:         linalg.generic {{.+}} iterator_types = ["reduction", "parallel"]}
// CHECK-NOT:       math.rsqrt
// CHECK:         return
func.func @per_channel_value_of_the_sums_stays_per_channel(%x: tensor<8x4xf32>, %v: tensor<4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%v : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = math.rsqrt %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x, %r : tensor<8x4xf32>, tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %f: f32, %acc: f32):
    %0 = arith.mulf %e, %f : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %sum : tensor<4xf32>
}

// A fused transpose would end the contiguous loads of the consumer.
// CHECK-LABEL: func @transposing_producer_stays
// CHECK:         %[[T:.+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>]
// CHECK:         linalg.generic {{.+}} iterator_types = ["reduction", "parallel"]} ins(%[[T]] :
func.func @transposing_producer_stays(%x: tensor<4x8xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<8x4xf32>
  %t = linalg.generic {indexing_maps = [#transposed, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %out: f32):
    linalg.yield %e : f32
  } -> tensor<8x4xf32>
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%t : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %sum : tensor<4xf32>
}

// The same written with the transpose at the result.
// CHECK-LABEL: func @producer_with_transposed_result_stays
// CHECK:         %[[T:.+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1, d0)>]
// CHECK:         linalg.generic {{.+}} iterator_types = ["reduction", "parallel"]} ins(%[[T]] :
func.func @producer_with_transposed_result_stays(%x: tensor<4x8xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<8x4xf32>
  %t = linalg.generic {indexing_maps = [#data, #transposed], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %out: f32):
    linalg.yield %e : f32
  } -> tensor<8x4xf32>
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%t : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %sum : tensor<4xf32>
}

// The value is needed in memory anyway: the loop of the sums stores it.
// CHECK-LABEL: func @producer_that_is_returned_becomes_a_result
// CHECK:         %[[BOTH:.+]]:2 = linalg.generic
// CHECK:           math.exp
// CHECK-NOT:     math.exp
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[BOTH]]#1, %[[BOTH]]#0
func.func @producer_that_is_returned_becomes_a_result(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> (tensor<4xf32>, tensor<8x4xf32>) {
  %empty = tensor.empty() : tensor<8x4xf32>
  %exp = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = math.exp %e : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%exp : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %sum, %exp : tensor<4xf32>, tensor<8x4xf32>
}

// It cannot be fused into one of two readers (which reads the transpose): the
// other computes it once and stores it.
// CHECK-LABEL: func @producer_that_one_reader_cannot_take_becomes_a_result
// CHECK:         %[[BOTH:.+]]:2 = linalg.generic
// CHECK:           math.exp
// CHECK:         linalg.generic {{.+}} ins(%[[BOTH]]#0 :
// CHECK-NOT:     math.exp
// CHECK:         return
func.func @producer_that_one_reader_cannot_take_becomes_a_result(%x: tensor<4x4xf32>, %init: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<4x4xf32>
  %exp = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = math.exp %e : f32
    linalg.yield %0 : f32
  } -> tensor<4x4xf32>
  %columns = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%exp : tensor<4x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %rows = linalg.generic {indexing_maps = [#transposed, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%exp : tensor<4x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %columns, %rows : tensor<4xf32>, tensor<4xf32>
}

// A sum is computed once, even if its only reader is element-wise.
// CHECK-LABEL: func @reduction_stays
// CHECK:         %[[SUM:.+]] = linalg.generic {{.+}} iterator_types = ["reduction", "parallel"]}
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel"]} ins(%[[SUM]] :
func.func @reduction_stays(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %negated = linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = arith.negf %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %negated : tensor<4xf32>
}

// === consumers of grad_input ===

// Two consecutive consumers, one with another full-size operand, are fused into
// the loop of grad_input.
// CHECK-LABEL: func @consumers_of_grad_input
// CHECK-SAME:    (%[[DY:.+]]: tensor<8x4xf32>, %[[F:.+]]: tensor<4xf32>, %[[OTHER:.+]]: tensor<8x4xf32>)
// CHECK-NOT:     linalg.generic
// CHECK:         %[[DX:.+]] = linalg.generic {{.+}} ins(%[[DY]], %[[F]], %[[OTHER]] : {{.+}} outs(%{{.+}} : tensor<8x4xbf16>)
// CHECK-NEXT:    ^bb0(%[[DY_E:[^:]+]]: f32, %[[F_E:[^:]+]]: f32, %[[OTHER_E:[^:]+]]: f32,
// CHECK-NEXT:      %[[PRODUCT:.+]] = arith.mulf %[[DY_E]], %[[F_E]]
// CHECK-NEXT:      %[[TOTAL:.+]] = arith.addf %[[PRODUCT]], %[[OTHER_E]]
// CHECK-NEXT:      %[[ROUNDED:.+]] = arith.truncf %[[TOTAL]] : f32 to bf16
// CHECK-NEXT:      linalg.yield %[[ROUNDED]]
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[DX]]
func.func @consumers_of_grad_input(%dy: tensor<8x4xf32>, %f: tensor<4xf32>, %other: tensor<8x4xf32>) -> tensor<8x4xbf16> {
  %empty = tensor.empty() : tensor<8x4xf32>
  %empty16 = tensor.empty() : tensor<8x4xbf16>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dy, %f : tensor<8x4xf32>, tensor<4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %c: f32, %out: f32):
    %0 = arith.mulf %e, %c : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %total = linalg.generic {indexing_maps = [#data, #data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dx, %other : tensor<8x4xf32>, tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %rounded = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%total : tensor<8x4xf32>) outs(%empty16 : tensor<8x4xbf16>) {
  ^bb0(%e: f32, %out: bf16):
    %0 = arith.truncf %e : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<8x4xbf16>
  return %rounded : tensor<8x4xbf16>
}

// Two consumers: grad_input is computed once, in one loop with both.
// CHECK-LABEL: func @grad_input_with_two_consumers_computed_once
// CHECK:         %[[BOTH:.+]]:2 = linalg.generic
// CHECK:           %[[DX:.+]] = arith.mulf
// CHECK-DAG:       arith.negf %[[DX]]
// CHECK-DAG:       math.exp %[[DX]]
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[BOTH]]#{{[01]}}, %[[BOTH]]#{{[01]}}
func.func @grad_input_with_two_consumers_computed_once(%dy: tensor<8x4xf32>, %f: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %empty = tensor.empty() : tensor<8x4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dy, %f : tensor<8x4xf32>, tensor<4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %c: f32, %out: f32):
    %0 = arith.mulf %e, %c : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %negated = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dx : tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = arith.negf %e : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %exp = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dx : tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = math.exp %e : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %negated, %exp : tensor<8x4xf32>, tensor<8x4xf32>
}

// The next gradient's sums read grad_input through an element-wise op: that op is fused
// into the loop of grad_input or of the sums, but the two gradients stay separate.
// CHECK-LABEL: func @grad_input_not_into_the_next_sums
// CHECK:         linalg.generic {{.+}} iterator_types = ["reduction", "parallel"]}
// CHECK:         %[[DX:.+]] = linalg.generic {{.+}} iterator_types = ["parallel", "parallel"]}
// CHECK:           arith.mulf
// CHECK:         %[[SUM:.+]] = linalg.generic {{.+}} iterator_types = ["reduction", "parallel"]} ins(%[[DX]] :
// CHECK-NOT:       arith.mulf
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[SUM]]
func.func @grad_input_not_into_the_next_sums(%dy: tensor<8x4xf32>, %f: tensor<4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<8x4xf32>
  %factor = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%dy : tensor<8x4xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dy, %factor : tensor<8x4xf32>, tensor<4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %c: f32, %out: f32):
    %0 = arith.mulf %e, %c : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %negated = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dx : tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = arith.negf %e : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%negated : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %sum : tensor<4xf32>
}

// === nothing to do ===

// A gradient that is also read in another order is computed in its reader once more, which then is a group.
// CHECK-LABEL: func @gradient_read_in_two_orders
// CHECK:         %[[DX:.+]] = linalg.generic {{.+}} ["parallel", "parallel"]}
// CHECK:           arith.subf
// CHECK:         linalg.generic {{.+}} ["parallel", "parallel"]} ins(%{{.+}}, %{{.+}}, %[[DX]] :
// CHECK:           arith.subf
// CHECK:           arith.mulf
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @gradient_read_in_two_orders(%x: tensor<4x4xf32>, %init: tensor<4xf32>, %e: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %sum = linalg.generic {indexing_maps = [#data, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<4x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %0 = arith.addf %acc, %a fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %dx = linalg.generic {indexing_maps = [#data, affine_map<(d0, d1) -> (d1)>, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<4x4xf32>, tensor<4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %s: f32, %out: f32):
    %0 = arith.subf %a, %s : f32
    linalg.yield %0 : f32
  } -> tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#data, affine_map<(d0, d1) -> (d1, d0)>, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dx, %dx : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// A producer outside of a loop is not computed in each iteration.
// CHECK-LABEL: func @producer_before_a_loop
// CHECK:         math.exp
// CHECK:         scf.for
// CHECK-NOT:       math.exp
// CHECK:           arith.addf
// CHECK:         return
func.func @producer_before_a_loop(%x: tensor<8x4xf32>, %n: index) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8x4xf32>
  %y = linalg.exp ins(%x : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  %z = scf.for %i = %c0 to %n step %c1 iter_args(%w = %x) -> tensor<8x4xf32> {
    %0 = linalg.add ins(%y, %w : tensor<8x4xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
    scf.yield %0 : tensor<8x4xf32>
  }
  return %z : tensor<8x4xf32>
}

// CHECK-LABEL: func @nothing_to_fuse
// CHECK-SAME:    (%[[X:.+]]: tensor<8x4xf32>, %[[INIT:.+]]: tensor<4xf32>)
// CHECK-NEXT:    %[[SUM:.+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]} ins(%[[X]] : tensor<8x4xf32>) outs(%[[INIT]] : tensor<4xf32>) attrs = {kept = 1 : i64} {
// CHECK-NEXT:    ^bb0(%[[E:[^:]+]]: f32, %[[ACC:[^:]+]]: f32):
// CHECK-NEXT:      %[[TOTAL:.+]] = arith.addf %[[ACC]], %[[E]] : f32
// CHECK-NEXT:      linalg.yield %[[TOTAL]] : f32
// CHECK-NEXT:    } -> tensor<4xf32>
// CHECK-NEXT:    return %[[SUM]]
func.func @nothing_to_fuse(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %sum = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) attrs = {kept = 1 : i64} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %sum : tensor<4xf32>
}

// Inputs whose elements are all the same are scalars: those of a constant, of a
// fill and of a splat, of any sizes.
// CHECK-LABEL: func @uniform_inputs
// CHECK-SAME:    (%[[X:[^:]+]]: tensor<?x4xf32>, %[[S:[^:]+]]: f32,
// CHECK-DAG:     %[[HALF:.+]] = arith.constant 5.000000e-01 : f32
// CHECK-DAG:     %[[C2:.+]] = arith.constant 2.000000e+00 : f32
// CHECK:         linalg.generic {{.+}} ins(%[[X]] : tensor<?x4xf32>) outs
// CHECK-NEXT:    ^bb0(%[[E:[^:]+]]: f32, %{{.+}}: f32):
// CHECK-NEXT:      %[[SCALED:.+]] = arith.mulf %[[E]], %[[HALF]]
// CHECK-NEXT:      %[[SHIFTED:.+]] = arith.addf %[[SCALED]], %[[S]]
// CHECK-NEXT:      %[[LESS:.+]] = arith.subf %[[SHIFTED]], %[[C2]]
// CHECK-NEXT:      linalg.yield %[[LESS]]
func.func @uniform_inputs(%x: tensor<?x4xf32>, %s: f32, %n: index) -> tensor<?x4xf32> {
  %two = arith.constant 2.0 : f32
  %half = arith.constant dense<0.5> : tensor<4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %filled = linalg.fill ins(%s : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %splat = tensor.splat %two[%n] : tensor<?x4xf32>
  %y = linalg.generic {indexing_maps = [#data, #feature, #data, #data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %half, %filled, %splat : tensor<?x4xf32>, tensor<4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %0, %c : f32
    %2 = arith.subf %1, %d : f32
    linalg.yield %2 : f32
  } -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// An input that alone tells the size of a loop stays an operand. A constant of
// different elements is read.
// CHECK-LABEL: func @uniform_inputs_kept
// CHECK-DAG:     %[[TWOS:.+]] = arith.constant dense<2.000000e+00> : tensor<8x4xf32>
// CHECK-DAG:     %[[STEPS:.+]] = arith.constant dense<[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00]>
// CHECK-DAG:     %[[TWO:.+]] = arith.constant 2.000000e+00 : f32
// CHECK:         linalg.generic {{.+}} ins(%[[TWOS]], %[[STEPS]] :
// CHECK-NEXT:    ^bb0(%{{.+}}: f32, %[[STEP:[^:]+]]: f32,
// CHECK-NEXT:      arith.mulf %[[STEP]], %[[TWO]]
func.func @uniform_inputs_kept(%init: tensor<4xf32>) -> tensor<4xf32> {
  %twos = arith.constant dense<2.0> : tensor<8x4xf32>
  %steps = arith.constant dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%twos, %steps : tensor<8x4xf32>, tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %sum : tensor<4xf32>
}

// A scalar constant has no sign, so this one stays a tensor.
// CHECK-LABEL: func @uniform_unsigned
// CHECK:         %[[ONES:.+]] = arith.constant dense<1> : tensor<8x4xui8>
// CHECK:         linalg.generic {{.+}} ins(%{{.+}}, %[[ONES]], %{{.+}} :
func.func @uniform_unsigned(%k: tensor<8x4xi1>, %x: tensor<8x4xui8>) -> tensor<8x4xui8> {
  %ones = arith.constant dense<1> : tensor<8x4xui8>
  %e = tensor.empty() : tensor<8x4xui8>
  %y = linalg.generic {indexing_maps = [#data, #data, #data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%k, %ones, %x : tensor<8x4xi1>, tensor<8x4xui8>, tensor<8x4xui8>) outs(%e : tensor<8x4xui8>) {
  ^bb0(%p: i1, %a: ui8, %b: ui8, %o: ui8):
    %0 = arith.select %p, %a, %b : ui8
    linalg.yield %0 : ui8
  } -> tensor<8x4xui8>
  return %y : tensor<8x4xui8>
}
