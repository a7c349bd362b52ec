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
