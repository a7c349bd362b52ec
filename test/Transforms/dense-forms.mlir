// RUN: bngrad-opt %s --bngrad-apply-schedule --canonicalize --mlir-print-local-scope | FileCheck %s

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// Dynamic strides: a test for each order in memory, and code for any strides last.
// CHECK-LABEL: func @unknown
// CHECK-SAME:    (%[[X:.+]]: memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>,
// CHECK:         %[[BASE:.+]], %[[OFFSET:.+]], %[[SIZES:.+]]:3, %[[STRIDES:.+]]:3 = memref.extract_strided_metadata %[[X]]
// CHECK-DAG:     arith.cmpi eq, %[[STRIDES]]#2, %c1
// CHECK-DAG:     arith.cmpi eq, %[[SIZES]]#2, %c1
// CHECK-DAG:     arith.cmpi eq, %[[STRIDES]]#1, %[[SIZES]]#2
// CHECK:         scf.if
// CHECK:           %[[BYTES:.+]] = arith.muli %[[OFFSET]], %c4
// CHECK:           memref.view %{{.+}}[%[[BYTES]]][%[[SIZES]]#0, %[[SIZES]]#1, %[[SIZES]]#2] : memref<?xi8> to memref<?x?x?xf32>
// CHECK:           scf.parallel
// CHECK:         } else {
// CHECK:           scf.if
// NHWC, by its order in memory:
// CHECK:             memref.view %{{.+}}[%{{.+}}][%[[SIZES]]#0, %[[SIZES]]#2, %[[SIZES]]#1] : memref<?xi8> to memref<?x?x?xf32>
// CHECK:             memref.collapse_shape %{{.+}} {{\[\[}}0, 1], [2]] : memref<?x?x?xf32> into memref<?x?xf32>
// CHECK:           } else {
// CHECK:             scf.if
// CNHW:
// CHECK:               memref.view %{{.+}}[%{{.+}}][%[[SIZES]]#1, %[[SIZES]]#0, %[[SIZES]]#2] : memref<?xi8> to memref<?x?x?xf32>
// CHECK:               memref.collapse_shape %{{.+}} {{\[\[}}0], [1, 2]] : memref<?x?x?xf32> into memref<?x?xf32>
// CHECK:             } else {
// CHECK:               memref.load %[[X]][%{{.+}}, %{{.+}}, %{{.+}}] : memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
func.func @unknown(%x: memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>, %sum: memref<?xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>) outs(%sum : memref<?xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// Static strides need no test.
// CHECK-LABEL: func @channels_last
// CHECK-NOT:     scf.if
// The buffer is as long as the offset and 30 elements.
// CHECK:         memref.reinterpret_cast %{{.+}} to offset: [0], sizes: [{{%c37|37}}], strides: [1]
// CHECK:         memref.view %{{.+}} : memref<?xi8> to memref<2x5x3xf32>
// CHECK-NOT:     scf.if
// CHECK:         return
func.func @channels_last(%x: memref<2x3x5xf32, strided<[15, 1, 3], offset: 7>>, %sum: memref<3xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<2x3x5xf32, strided<[15, 1, 3], offset: 7>>) outs(%sum : memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// Padded rows have no dense form; neither have two operands in different orders.
// CHECK-LABEL: func @padded
// CHECK-NOT:     memref.view
// CHECK:         return
func.func @padded(%x: memref<2x3x5xf32, strided<[24, 8, 1]>>, %sum: memref<3xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<2x3x5xf32, strided<[24, 8, 1]>>) outs(%sum : memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// CHECK-LABEL: func @mixed
// CHECK-NOT:     memref.view
// CHECK:         return
func.func @mixed(%x: memref<2x3x5xf32, strided<[15, 1, 3]>>, %y: memref<2x3x5xf32>, %sum: memref<3xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x, %y : memref<2x3x5xf32, strided<[15, 1, 3]>>, memref<2x3x5xf32>) outs(%sum : memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %f: f32, %acc: f32):
      %0 = arith.mulf %e, %f : f32
      %1 = arith.addf %acc, %0 fastmath<reassoc> : f32
      linalg.yield %1 : f32
    }
    scf.yield
  }
  return
}

// An operand whose dims are not the loops has no order that is looked for.
// CHECK-LABEL: func @turned
// CHECK-NOT:     memref.view
// CHECK:         return
func.func @turned(%x: memref<2x5x3xf32, strided<[15, 1, 5]>>, %sum: memref<3xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [affine_map<(n, c, s) -> (n, s, c)>, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<2x5x3xf32, strided<[15, 1, 5]>>) outs(%sum : memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// A view that is made beside its reader: its strides are not known before.
// CHECK-LABEL: func @view_inside
// CHECK-NOT:     memref.view
// CHECK:         memref.load %{{.+}} : memref<2x3x5xf32, strided<[30, 2, 6]>>
func.func @view_inside(%x: memref<2x5x6xf32>, %sum: memref<3xf32>) {
  scf.execute_region no_inline {
    %channels = memref.subview %x[0, 0, 0] [2, 5, 3] [1, 1, 2] : memref<2x5x6xf32> to memref<2x5x3xf32, strided<[30, 6, 2]>>
    %turned = memref.transpose %channels (n, s, c) -> (n, c, s) : memref<2x5x3xf32, strided<[30, 6, 2]>> to memref<2x3x5xf32, strided<[30, 2, 6]>>
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%turned : memref<2x3x5xf32, strided<[30, 2, 6]>>) outs(%sum : memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// Beside something else that is computed in the region, a group keeps its strides.
// CHECK-LABEL: func @beside_another_generic
// CHECK-NOT:     memref.view
// CHECK:         return
func.func @beside_another_generic(%x: memref<2x3x5xf32, strided<[15, 1, 3]>>, %y: memref<3xf32>, %sum: memref<3xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<2x3x5xf32, strided<[15, 1, 3]>>) outs(%sum : memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [affine_map<(c) -> (c)>], iterator_types = ["parallel"]} outs(%y : memref<3xf32>) {
    ^bb0(%e: f32):
      %0 = arith.negf %e : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

#image = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>

// Loops are merged if the strides of every operand allow it: here within a channel, but not across cropped rows.
// CHECK-LABEL: func @cropped_channels
// CHECK:         memref.collapse_shape %{{.+}} {{\[\[}}0], [1], [2, 3]] : memref<2x3x4x5xf32, strided<[160, 20, 5, 1], offset: 40>> into memref<2x3x20xf32, strided<[160, 20, 1], offset: 40>>
// CHECK:         return
func.func @cropped_channels(%x: memref<2x3x4x5xf32, strided<[160, 20, 5, 1], offset: 40>>, %sum: memref<3xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#image, #channel], iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
        ins(%x : memref<2x3x4x5xf32, strided<[160, 20, 5, 1], offset: 40>>) outs(%sum : memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// CHECK-LABEL: func @cropped_rows
// CHECK-NOT:     memref.collapse_shape
// CHECK:         return
func.func @cropped_rows(%x: memref<2x3x4x5xf32, strided<[84, 28, 7, 1]>>, %y: memref<2x3x4x5xf32>, %sum: memref<3xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#image, #image, #channel], iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
        ins(%x, %y : memref<2x3x4x5xf32, strided<[84, 28, 7, 1]>>, memref<2x3x4x5xf32>) outs(%sum : memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %f: f32, %acc: f32):
      %0 = arith.mulf %e, %f : f32
      %1 = arith.addf %acc, %0 fastmath<reassoc> : f32
      linalg.yield %1 : f32
    }
    scf.yield
  }
  return
}

// The index of a merged loop.
// CHECK-LABEL: func @indices
// CHECK:         memref.collapse_shape %{{.+}} {{\[\[}}0], [1], [2, 3]] : memref<2x3x4x5xf32>
// CHECK:         scf.for %[[I:.+]] = %c0
// CHECK:           %[[ROW:.+]] = arith.divsi %{{.+}}, %c5
// CHECK:           arith.remsi %{{.+}}, %c5
func.func @indices(%x: memref<2x3x4x5xf32>, %sum: memref<3xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#image, #channel], iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
        ins(%x : memref<2x3x4x5xf32>) outs(%sum : memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %acc: f32):
      %h = linalg.index 2 : index
      %w = linalg.index 3 : index
      %same = arith.cmpi eq, %h, %w : index
      %zero = arith.constant 0.0 : f32
      %term = arith.select %same, %e, %zero : f32
      %0 = arith.addf %acc, %term fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// Readers of the same data share a view, so that they see the same value.
// CHECK-LABEL: func @shared_view
// CHECK-SAME:    (%[[X:[^:]+]]: memref<2x3x4x5xf32>,
// CHECK:         memref.collapse_shape %[[X]]
// CHECK-NOT:     memref.collapse_shape %[[X]]
// CHECK:         return
func.func @shared_view(%x: memref<2x3x4x5xf32>, %sum: memref<3xf32>, %y: memref<2x3x4x5xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#image, #channel], iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
        ins(%x : memref<2x3x4x5xf32>) outs(%sum : memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#image, #channel, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%x, %sum : memref<2x3x4x5xf32>, memref<3xf32>) outs(%y : memref<2x3x4x5xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// Two dims of channels are one loop everywhere, also where there are no others.
// CHECK-LABEL: func @merged_channels
// CHECK-SAME:    (%[[X:[^:]+]]: memref<2x3x4x5xf32>, %[[SUM:[^:]+]]: memref<3x4xf32>, %[[FACTOR:[^:]+]]: memref<3x4xf32>)
// CHECK:         memref.collapse_shape %[[X]] {{\[\[}}0], [1, 2], [3]] : memref<2x3x4x5xf32> into memref<2x12x5xf32>
// CHECK:         memref.collapse_shape %[[SUM]] {{\[\[}}0, 1]] : memref<3x4xf32> into memref<12xf32>
// CHECK:         memref.collapse_shape %[[FACTOR]] {{\[\[}}0, 1]] : memref<3x4xf32> into memref<12xf32>
// CHECK:         return
func.func @merged_channels(%x: memref<2x3x4x5xf32>, %sum: memref<3x4xf32>, %factor: memref<3x4xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#image, affine_map<(n, c, d, s) -> (c, d)>], iterator_types = ["reduction", "parallel", "parallel", "reduction"]}
        ins(%x : memref<2x3x4x5xf32>) outs(%sum : memref<3x4xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [affine_map<(c, d) -> (c, d)>, affine_map<(c, d) -> (c, d)>], iterator_types = ["parallel", "parallel"]}
        ins(%sum : memref<3x4xf32>) outs(%factor : memref<3x4xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%s: f32, %out: f32):
      %0 = math.sqrt %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}
