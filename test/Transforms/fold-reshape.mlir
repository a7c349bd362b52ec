// RUN: bngrad-opt %s --bngrad-fuse --verify-diagnostics --mlir-print-local-scope --split-input-file | FileCheck %s

// Reshapes between generics: the loops of the coarser shape are split, with all
// dims of their class, and the generics are fused. Every case terminates early;
// otherwise there would be a warning.

#data = affine_map<(d0, d1) -> (d0, d1)>
#channel = affine_map<(d0, d1) -> (d1)>
#fine = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// Sums and grad_input are split in the same way, so that they stay one group;
// so are their other operands.
// CHECK-LABEL: func @collapsed_producer
// CHECK-SAME:    (%[[DY:.+]]: tensor<2x3x4xf32>, %[[X:.+]]: tensor<6x4xf32>, %[[INIT:.+]]: tensor<4xf32>)
// CHECK-NOT:     linalg.generic
// CHECK:         %[[X_FINE:.+]] = tensor.expand_shape %[[X]] {{\[\[}}0, 1], [2]] output_shape [2, 3, 4]
// CHECK-NOT:     linalg.generic
// CHECK:         %[[SUM:.+]] = linalg.generic {{.+}} iterator_types = ["reduction", "reduction", "parallel"]} ins(%[[DY]], %[[X_FINE]] : {{.+}} outs(%[[INIT]] :
// CHECK:           arith.negf
// CHECK:         %[[DX:.+]] = linalg.generic {{.+}} iterator_types = ["parallel", "parallel", "parallel"]} ins(%[[DY]], %[[SUM]] :
// CHECK:           arith.negf
// CHECK-NOT:     linalg.generic
// CHECK:         %[[FLAT:.+]] = tensor.collapse_shape %[[DX]] {{\[\[}}0, 1], [2]]
// CHECK:         return %[[FLAT]], %[[SUM]]
func.func @collapsed_producer(%dy: tensor<2x3x4xf32>, %x: tensor<6x4xf32>, %init: tensor<4xf32>) -> (tensor<6x4xf32>, tensor<4xf32>) {
  %e3 = tensor.empty() : tensor<2x3x4xf32>
  %e2 = tensor.empty() : tensor<6x4xf32>
  %neg = linalg.negf ins(%dy : tensor<2x3x4xf32>) outs(%e3 : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %flat = tensor.collapse_shape %neg [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
  %sum = linalg.generic {indexing_maps = [#data, #data, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%flat, %x : tensor<6x4xf32>, tensor<6x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #channel, #data], iterator_types = ["parallel", "parallel"]}
      ins(%flat, %sum : tensor<6x4xf32>, tensor<4xf32>) outs(%e2 : tensor<6x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<6x4xf32>
  return %dx, %sum : tensor<6x4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func @expanded_consumer
// CHECK:         %[[BOTH:.+]]:2 = linalg.generic {{.+}} iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK:           arith.mulf
// CHECK:           math.exp
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @expanded_consumer(%dy: tensor<6x4xf32>, %f: tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<6x4xf32>) {
  %e3 = tensor.empty() : tensor<2x3x4xf32>
  %e2 = tensor.empty() : tensor<6x4xf32>
  %dx = linalg.generic {indexing_maps = [#data, #channel, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dy, %f : tensor<6x4xf32>, tensor<4xf32>) outs(%e2 : tensor<6x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<6x4xf32>
  %image = tensor.expand_shape %dx [[0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>
  %exp = linalg.exp ins(%image : tensor<2x3x4xf32>) outs(%e3 : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %exp, %dx : tensor<2x3x4xf32>, tensor<6x4xf32>
}

// -----

// A result that is only returned in another shape changes no loops.
// CHECK-LABEL: func @expanded_result
// CHECK:         %[[Y:.+]] = linalg.generic {{.+}} iterator_types = ["parallel", "parallel"]}
// CHECK:         tensor.expand_shape %[[Y]]
func.func @expanded_result(%x: tensor<6x4xf32>) -> tensor<2x3x4xf32> {
  %e = tensor.empty() : tensor<6x4xf32>
  %y = linalg.negf ins(%x : tensor<6x4xf32>) outs(%e : tensor<6x4xf32>) -> tensor<6x4xf32>
  %image = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>
  return %image : tensor<2x3x4xf32>
}

// -----

// One dim of a group may be dynamic; its size is computed from the others.
// CHECK-LABEL: func @dynamic
// CHECK:         %[[Y:.+]] = linalg.generic {{.+}} iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK:           arith.negf
// CHECK:           math.exp
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[Y]]
func.func @dynamic(%x: tensor<?x4xf32>, %n: index) -> tensor<?x3x4xf32> {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%rows) : tensor<?x4xf32>
  %e3 = tensor.empty(%n) : tensor<?x3x4xf32>
  %y = linalg.negf ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %image = tensor.expand_shape %y [[0, 1], [2]] output_shape [%n, 3, 4] : tensor<?x4xf32> into tensor<?x3x4xf32>
  %exp = linalg.exp ins(%image : tensor<?x3x4xf32>) outs(%e3 : tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
  return %exp : tensor<?x3x4xf32>
}

// Two dynamic dims cannot be computed: nothing is split.
// CHECK-LABEL: func @two_dynamic_dims
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel"]}
// CHECK:         tensor.expand_shape
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel", "parallel"]}
func.func @two_dynamic_dims(%x: tensor<?x4xf32>, %n: index, %m: index) -> tensor<?x?x4xf32> {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%rows) : tensor<?x4xf32>
  %e3 = tensor.empty(%n, %m) : tensor<?x?x4xf32>
  %y = linalg.negf ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %image = tensor.expand_shape %y [[0, 1], [2]] output_shape [%n, %m, 4] : tensor<?x4xf32> into tensor<?x?x4xf32>
  %exp = linalg.exp ins(%image : tensor<?x?x4xf32>) outs(%e3 : tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  return %exp : tensor<?x?x4xf32>
}

// A dynamic dim of a group has a size where that of the whole is known.
// CHECK-LABEL: func @dynamic_dim_of_a_static_size
// CHECK:         tensor.expand_shape %{{.+}} {{\[\[}}0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel", "parallel"]}
func.func @dynamic_dim_of_a_static_size(%x: tensor<?x4xf32>, %y: tensor<6x4xf32>, %e: tensor<?x4xf32>, %e3: tensor<?x3x4xf32>, %n: index) -> tensor<?x3x4xf32> {
  %sum = linalg.add ins(%x, %y : tensor<?x4xf32>, tensor<6x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %image = tensor.expand_shape %sum [[0, 1], [2]] output_shape [%n, 3, 4] : tensor<?x4xf32> into tensor<?x3x4xf32>
  %exp = linalg.exp ins(%image : tensor<?x3x4xf32>) outs(%e3 : tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
  return %exp : tensor<?x3x4xf32>
}

// A size that is static in one operand holds for all.
// CHECK-LABEL: func @static_and_dynamic
// CHECK:         %[[CAST:.+]] = tensor.cast %{{.+}} : tensor<?x4xf32> to tensor<6x4xf32>
// CHECK:         tensor.expand_shape %[[CAST]] {{\[\[}}0, 1], [2]] output_shape [2, 3, 4]
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK-NOT:     linalg.generic
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @static_and_dynamic(%x: tensor<?x4xf32>, %y: tensor<6x4xf32>) -> tensor<2x3x4xf32> {
  %e = tensor.empty() : tensor<6x4xf32>
  %e3 = tensor.empty() : tensor<2x3x4xf32>
  %sum = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<?x4xf32>, tensor<6x4xf32>) outs(%e : tensor<6x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<6x4xf32>
  %image = tensor.expand_shape %sum [[0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>
  %exp = linalg.exp ins(%image : tensor<2x3x4xf32>) outs(%e3 : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %exp : tensor<2x3x4xf32>
}

// -----

// The index of a split loop is computed from those of its parts.
// CHECK-LABEL: func @index_of_a_split_loop
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK-DAG:       %[[OUTER:.+]] = linalg.index 0
// CHECK-DAG:       %[[INNER:.+]] = linalg.index 1
// CHECK-DAG:       %[[COLUMN:.+]] = linalg.index 2
// CHECK:           %[[SCALED:.+]] = arith.muli %[[OUTER]], %{{.+}} : index
// CHECK:           %[[ROW:.+]] = arith.addi %[[SCALED]], %[[INNER]] : index
// CHECK:           arith.addi %[[ROW]], %[[COLUMN]] : index
#data = affine_map<(d0, d1) -> (d0, d1)>
func.func @index_of_a_split_loop(%x: tensor<6x4xf32>) -> tensor<2x3x4xf32> {
  %e = tensor.empty() : tensor<6x4xf32>
  %e3 = tensor.empty() : tensor<2x3x4xf32>
  %y = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<6x4xf32>) outs(%e : tensor<6x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %row = linalg.index 0 : index
    %column = linalg.index 1 : index
    %place = arith.addi %row, %column : index
    %i = arith.index_cast %place : index to i32
    %f = arith.sitofp %i : i32 to f32
    %0 = arith.addf %a, %f : f32
    linalg.yield %0 : f32
  } -> tensor<6x4xf32>
  %image = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>
  %exp = linalg.exp ins(%image : tensor<2x3x4xf32>) outs(%e3 : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %exp : tensor<2x3x4xf32>
}

// -----

// Both dims are split, by two reshapes, one of them through the other.
// CHECK-LABEL: func @through_another_reshape
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
// CHECK:           arith.negf
// CHECK:           math.exp
// CHECK:           math.sqrt
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @through_another_reshape(%x: tensor<6x8xf32>) -> tensor<2x3x2x4xf32> {
  %e2 = tensor.empty() : tensor<6x8xf32>
  %e3 = tensor.empty() : tensor<2x3x8xf32>
  %e4 = tensor.empty() : tensor<2x3x2x4xf32>
  %y = linalg.negf ins(%x : tensor<6x8xf32>) outs(%e2 : tensor<6x8xf32>) -> tensor<6x8xf32>
  %y3 = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 3, 8] : tensor<6x8xf32> into tensor<2x3x8xf32>
  %z = linalg.exp ins(%y3 : tensor<2x3x8xf32>) outs(%e3 : tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %z4 = tensor.expand_shape %z [[0], [1], [2, 3]] output_shape [2, 3, 2, 4] : tensor<2x3x8xf32> into tensor<2x3x2x4xf32>
  %r = linalg.sqrt ins(%z4 : tensor<2x3x2x4xf32>) outs(%e4 : tensor<2x3x2x4xf32>) -> tensor<2x3x2x4xf32>
  return %r : tensor<2x3x2x4xf32>
}

// Two groups of one reshape.
// CHECK-LABEL: func @two_groups
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @two_groups(%x: tensor<6x8xf32>) -> tensor<2x3x2x4xf32> {
  %e2 = tensor.empty() : tensor<6x8xf32>
  %e4 = tensor.empty() : tensor<2x3x2x4xf32>
  %y = linalg.negf ins(%x : tensor<6x8xf32>) outs(%e2 : tensor<6x8xf32>) -> tensor<6x8xf32>
  %y4 = tensor.expand_shape %y [[0, 1], [2, 3]] output_shape [2, 3, 2, 4] : tensor<6x8xf32> into tensor<2x3x2x4xf32>
  %r = linalg.sqrt ins(%y4 : tensor<2x3x2x4xf32>) outs(%e4 : tensor<2x3x2x4xf32>) -> tensor<2x3x2x4xf32>
  return %r : tensor<2x3x2x4xf32>
}

// Two readers that split a dim in two ways: only one of them is fused.
// CHECK-LABEL: func @two_ways
// CHECK:         linalg.generic
// CHECK:         linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @two_ways(%x: tensor<8x5xf32>) -> (tensor<2x4x5xf32>, tensor<4x2x5xf32>) {
  %e2 = tensor.empty() : tensor<8x5xf32>
  %ea = tensor.empty() : tensor<2x4x5xf32>
  %eb = tensor.empty() : tensor<4x2x5xf32>
  %y = linalg.negf ins(%x : tensor<8x5xf32>) outs(%e2 : tensor<8x5xf32>) -> tensor<8x5xf32>
  %a = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 4, 5] : tensor<8x5xf32> into tensor<2x4x5xf32>
  %b = tensor.expand_shape %y [[0, 1], [2]] output_shape [4, 2, 5] : tensor<8x5xf32> into tensor<4x2x5xf32>
  %ra = linalg.exp ins(%a : tensor<2x4x5xf32>) outs(%ea : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  %rb = linalg.sqrt ins(%b : tensor<4x2x5xf32>) outs(%eb : tensor<4x2x5xf32>) -> tensor<4x2x5xf32>
  return %ra, %rb : tensor<2x4x5xf32>, tensor<4x2x5xf32>
}

// A reshape of a per-channel vector does not split the loops over all
// elements.
// CHECK-LABEL: func @channels_of_larger_loops
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel"]}
// CHECK-NOT:     iterator_types = ["parallel", "parallel", "parallel"]
// CHECK:         return
#rows = affine_map<(d0, d1) -> (d0, d1)>
#columns = affine_map<(d0, d1) -> (d1)>
func.func @channels_of_larger_loops(%x: tensor<6x8xf32>, %c: tensor<8xf32>) -> (tensor<6x8xf32>, tensor<2x4xf32>) {
  %e = tensor.empty() : tensor<6x8xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %e2 = tensor.empty() : tensor<2x4xf32>
  %f = linalg.exp ins(%c : tensor<8xf32>) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#rows, #columns, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : tensor<6x8xf32>, tensor<8xf32>) outs(%e : tensor<6x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<6x8xf32>
  %f2 = tensor.expand_shape %f [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  %g = linalg.negf ins(%f2 : tensor<2x4xf32>) outs(%e2 : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y, %g : tensor<6x8xf32>, tensor<2x4xf32>
}

// -----

// Programs in which a class would contain a part of itself. Splitting one
// generic after the other would not terminate.

#data = affine_map<(d0, d1) -> (d0, d1)>
#transposed = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func @unit_dims_of_a_sum
// CHECK: return
func.func @unit_dims_of_a_sum(%x: tensor<4x7xf32>, %i7: tensor<7xf32>, %i1: tensor<7xf32>) -> tensor<4x7xf32> {
  %e = tensor.empty() : tensor<4x7xf32>
  %z = linalg.negf ins(%x : tensor<4x7xf32>) outs(%e : tensor<4x7xf32>) -> tensor<4x7xf32>
  %s = linalg.generic {indexing_maps = [#transposed, #row], iterator_types = ["parallel", "reduction"]} ins(%z : tensor<4x7xf32>) outs(%i7 : tensor<7xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<7xf32>
  %s1 = tensor.expand_shape %s [[0, 1]] output_shape [1, 7] : tensor<7xf32> into tensor<1x7xf32>
  %s2 = linalg.generic {indexing_maps = [#transposed, #row], iterator_types = ["parallel", "reduction"]} ins(%s1 : tensor<1x7xf32>) outs(%i1 : tensor<7xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<7xf32>
  %b = linalg.broadcast ins(%s2 : tensor<7xf32>) outs(%e : tensor<4x7xf32>) dimensions = [0]
  %m = linalg.mul ins(%z, %b : tensor<4x7xf32>, tensor<4x7xf32>) outs(%e : tensor<4x7xf32>) -> tensor<4x7xf32>
  return %m : tensor<4x7xf32>
}

// CHECK-LABEL: func @unit_dims_of_a_producer
// CHECK: return
func.func @unit_dims_of_a_producer(%x: tensor<7xf32>) -> tensor<1x7xf32> {
  %e = tensor.empty() : tensor<7xf32>
  %e1 = tensor.empty() : tensor<1x7xf32>
  %s = linalg.sqrt ins(%x : tensor<7xf32>) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  %p = linalg.negf ins(%s : tensor<7xf32>) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  %p1 = tensor.expand_shape %p [[0, 1]] output_shape [1, 7] : tensor<7xf32> into tensor<1x7xf32>
  %r = linalg.generic {indexing_maps = [#data, #column, #data], iterator_types = ["parallel", "parallel"]} ins(%p1, %s : tensor<1x7xf32>, tensor<7xf32>) outs(%e1 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<1x7xf32>
  return %r : tensor<1x7xf32>
}

// CHECK-LABEL: func @unit_dims_beside_the_whole
// CHECK:         tensor.expand_shape %{{.+}} {{\[\[}}0, 1]] output_shape [1, 7]
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "reduction"]}
// CHECK:         return
func.func @unit_dims_beside_the_whole(%x: tensor<7xf32>, %init: tensor<7xf32>) -> tensor<7xf32> {
  %e = tensor.empty() : tensor<7xf32>
  %p = linalg.negf ins(%x : tensor<7xf32>) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  %p1 = tensor.expand_shape %p [[0, 1]] output_shape [1, 7] : tensor<7xf32> into tensor<1x7xf32>
  %s = linalg.generic {indexing_maps = [#transposed, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%p1, %p : tensor<1x7xf32>, tensor<7xf32>) outs(%init : tensor<7xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<7xf32>
  return %s : tensor<7xf32>
}

// The dim is the same on both sides of the second reshape, which splits the other one.
// CHECK-LABEL: func @unit_dims_beside_another_reshape
// CHECK:         tensor.expand_shape %{{.+}} {{\[\[}}0, 1], [2], [3]] output_shape [1, 7, 2, 2]
// CHECK:         return
func.func @unit_dims_beside_another_reshape(%x: tensor<7x4xf32>, %init: tensor<7xf32>) -> tensor<7xf32> {
  %e = tensor.empty() : tensor<7x4xf32>
  %p = linalg.negf ins(%x : tensor<7x4xf32>) outs(%e : tensor<7x4xf32>) -> tensor<7x4xf32>
  %p1 = tensor.expand_shape %p [[0, 1], [2]] output_shape [1, 7, 4] : tensor<7x4xf32> into tensor<1x7x4xf32>
  %p2 = tensor.expand_shape %p [[0], [1, 2]] output_shape [7, 2, 2] : tensor<7x4xf32> into tensor<7x2x2xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d1, d0, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0)>],
      iterator_types = ["parallel", "reduction", "reduction", "reduction", "reduction"]} ins(%p1, %p2 : tensor<1x7x4xf32>, tensor<7x2x2xf32>) outs(%init : tensor<7xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<7xf32>
  return %s : tensor<7xf32>
}
