// RUN: bngrad-opt %s --split-input-file --bngrad-expand-views --verify-diagnostics | FileCheck %s
// RUN: bngrad-opt %s --split-input-file --bngrad-expand-views=reshapes=false --verify-diagnostics \
// RUN:   | FileCheck %s --check-prefix=SLICES

// A slice with steps: the kept dims are those whose strides, times the steps, are in the type.

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[M:.+]]: memref<4x1x2x8xf32>, %[[N:.+]]: index)
// CHECK: %[[FULL:.+]] = memref.subview %[[M]][0, 0, 0, 0] [%[[N]], 1, 1, 8] [1, 2, 1, 1] : memref<4x1x2x8xf32> to memref<?x1x1x8xf32, strided<[16, 32, 8, 1]>>
// CHECK: %[[VIEW:.+]] = memref.reinterpret_cast %[[FULL]] to offset: [0], sizes: [%[[N]], 1, 8], strides: [16, 32, 1]
// CHECK: return %[[VIEW]]
// SLICES-LABEL: func.func @step(
// SLICES: memref.reinterpret_cast
func.func @step(%m: memref<4x1x2x8xf32>, %n: index) -> memref<?x1x8xf32, strided<[16, 32, 1]>> {
  %0 = memref.subview %m[0, 0, 0, 0] [%n, 1, 1, 8] [1, 2, 1, 1]
      : memref<4x1x2x8xf32> to memref<?x1x8xf32, strided<[16, 32, 1]>>
  return %0 : memref<?x1x8xf32, strided<[16, 32, 1]>>
}

// -----

// Dynamic strides: sizes decide, and offset and strides are those of the slice.

// CHECK-LABEL: func.func @sizes(
// CHECK-SAME: %{{.+}}: memref<{{.+}}>, %[[N:.+]]: index, %[[K:.+]]: index)
// CHECK: %[[FULL:.+]] = memref.subview
// CHECK: %{{.+}}, %[[OFFSET:.+]], %{{.+}}:4, %[[STRIDES:.+]]:4 = memref.extract_strided_metadata %[[FULL]]
// CHECK: memref.reinterpret_cast %[[FULL]] to offset: [%[[OFFSET]]], sizes: [1, %[[N]], %[[K]]], strides: [%[[STRIDES]]#0, %[[STRIDES]]#1, %[[STRIDES]]#2]
// CHECK: memref.reinterpret_cast %{{.+}} to offset: [%{{.+}}], sizes: [%[[N]], %[[K]], 1], strides: [%[[LAST:.+]]#1, %[[LAST]]#2, %[[LAST]]#3]
!m = memref<6x?x?x6xf32, strided<[?, ?, ?, ?], offset: ?>>
!first = memref<1x?x?xf32, strided<[?, ?, ?], offset: ?>>
!last = memref<?x?x1xf32, strided<[?, ?, ?], offset: ?>>
func.func @sizes(%m: !m, %n: index, %k: index) -> (!first, !last) {
  %0 = memref.subview %m[1, 0, 0, 2] [1, %n, %k, 1] [1, 1, 1, 1] : !m to !first
  %1 = memref.subview %m[1, 0, 0, 2] [1, %n, %k, 1] [1, 1, 1, 1] : !m to !last
  return %0, %1 : !first, !last
}

// -----

// All sizes of a group, and the strides that follow from them.

// CHECK-LABEL: func.func @groups(
// CHECK-SAME: %[[M:.+]]: memref<{{.+}}>, %[[A:.+]]: index, %[[B:.+]]: index, %[[C:.+]]: index)
// CHECK: %{{.+}}, %[[OFFSET:.+]], %{{.+}}:2, %[[STRIDES:.+]]:2 = memref.extract_strided_metadata %[[M]]
// CHECK: %[[C3:.+]] = arith.constant 3 : index
// CHECK: %[[S1:.+]] = arith.muli %[[STRIDES]]#0, %[[C3]]
// CHECK: %[[S0:.+]] = arith.muli %[[S1]], %[[B]]
// CHECK: memref.reinterpret_cast %[[M]] to offset: [%[[OFFSET]]], sizes: [%[[A]], %[[B]], 3, %[[C]]], strides: [%[[S0]], %[[S1]], %[[STRIDES]]#0, %[[STRIDES]]#1]
// SLICES-LABEL: func.func @groups(
// SLICES-NEXT: memref.expand_shape
func.func @groups(%m: memref<?x?xf32, strided<[?, ?], offset: ?>>, %a: index, %b: index, %c: index)
    -> memref<?x?x3x?xf32, strided<[?, ?, ?, ?], offset: ?>> {
  %0 = memref.expand_shape %m [[0, 1, 2], [3]] output_shape [%a, %b, 3, %c]
      : memref<?x?xf32, strided<[?, ?], offset: ?>> into memref<?x?x3x?xf32, strided<[?, ?, ?, ?], offset: ?>>
  return %0 : memref<?x?x3x?xf32, strided<[?, ?, ?, ?], offset: ?>>
}

// -----

// Views that upstream lowers correctly are unchanged: sizes determine the dropped dims, none dropped, one size to infer.

// CHECK-LABEL: func.func @does_nothing(
// CHECK-NOT: reinterpret_cast
func.func @does_nothing(%m: memref<4x1x2x8xf32>, %d: memref<?x8xf32>, %n: index)
    -> (memref<4x8xf32, strided<[16, 1]>>, memref<?x1x1x8xf32, strided<[16, 32, 8, 1]>>, memref<?x2x8xf32>) {
  %0 = memref.subview %m[0, 0, 0, 0] [4, 1, 1, 8] [1, 2, 1, 1] : memref<4x1x2x8xf32> to memref<4x8xf32, strided<[16, 1]>>
  %1 = memref.subview %m[0, 0, 0, 0] [%n, 1, 1, 8] [1, 2, 1, 1]
      : memref<4x1x2x8xf32> to memref<?x1x1x8xf32, strided<[16, 32, 8, 1]>>
  %2 = memref.expand_shape %d [[0, 1], [2]] output_shape [%n, 2, 8] : memref<?x8xf32> into memref<?x2x8xf32>
  return %0, %1, %2 : memref<4x8xf32, strided<[16, 1]>>, memref<?x1x1x8xf32, strided<[16, 32, 8, 1]>>, memref<?x2x8xf32>
}

// -----

// A step has no effect on one element.
// CHECK-LABEL: func.func @tensors(
// CHECK: tensor.extract_slice %{{.+}}[0, 0, 0, 0] [8, 1, 1, 1] [1, 1, 1, 1]
// CHECK: tensor.insert_slice %{{.+}}[0, 0, 0, 0] [4, 1, 1, 1] [2, 1, 1, %{{.+}}]
func.func @tensors(%t: tensor<8x1x1x1xf32>, %u: tensor<4xf32>, %n: index) -> (tensor<8x1x1xf32>, tensor<8x1x1x1xf32>) {
  %0 = tensor.extract_slice %t[0, 0, 0, 0] [8, 1, 1, 1] [1, 1, 2, 1] : tensor<8x1x1x1xf32> to tensor<8x1x1xf32>
  %1 = tensor.insert_slice %u into %t[0, 0, 0, 0] [4, 1, 1, 1] [2, 3, 1, %n] : tensor<4xf32> into tensor<8x1x1x1xf32>
  return %0, %1 : tensor<8x1x1xf32>, tensor<8x1x1x1xf32>
}

// -----

// Two dims have size 1, of which a slice drops one: a reshape drops them, as %n may become a constant.
// CHECK-LABEL: func.func @dropped(
// CHECK: %[[SLICE:.+]] = tensor.extract_slice %{{.+}}[0, 0, 0, 0] [1, 5, 1, %{{.+}}] [1, 2, 1, 1] : tensor<1x9x1x6xf32> to tensor<1x5x1x?xf32>
// CHECK: %[[REDUCED:.+]] = tensor.collapse_shape %[[SLICE]] {{\[\[}}0], [1, 2], [3]] : tensor<1x5x1x?xf32> into tensor<1x5x?xf32>
// CHECK: %[[FULL:.+]] = tensor.expand_shape %[[REDUCED]] {{\[\[}}0], [1, 2], [3]] output_shape [1, 5, 1, %{{.+}}] : tensor<1x5x?xf32> into tensor<1x5x1x?xf32>
// CHECK: tensor.insert_slice %[[FULL]] into
// With constants, nothing is chosen again.
// CHECK: tensor.extract_slice %{{.+}} : tensor<1x9x1x6xf32> to tensor<1x5x4xf32>
func.func @dropped(%t: tensor<1x9x1x6xf32>, %n: index) -> (tensor<1x9x1x6xf32>, tensor<1x5x4xf32>) {
  %0 = tensor.extract_slice %t[0, 0, 0, 0] [1, 5, 1, %n] [1, 2, 1, 1] : tensor<1x9x1x6xf32> to tensor<1x5x?xf32>
  %1 = tensor.insert_slice %0 into %t[0, 1, 0, 0] [1, 5, 1, %n] [1, 1, 1, 1] : tensor<1x5x?xf32> into tensor<1x9x1x6xf32>
  %2 = tensor.extract_slice %t[0, 0, 0, 0] [1, 5, 1, 4] [1, 2, 1, 1] : tensor<1x9x1x6xf32> to tensor<1x5x4xf32>
  return %1, %2 : tensor<1x9x1x6xf32>, tensor<1x5x4xf32>
}

// -----

// CHECK-LABEL: func.func @reshape(
// CHECK: %[[RANKED:.+]] = memref.reshape %{{.+}}(%{{.+}}) : (memref<?xf32, 1>, memref<2xi32>) -> memref<?x?xf32, 1>
// CHECK: memref.cast %[[RANKED]] : memref<?x?xf32, 1> to memref<*xf32, 1>
// CHECK: memref.reshape %{{.+}}(%{{.+}}) : (memref<?xf32, 1>, memref<?xi32>) -> memref<*xf32, 1>
func.func @reshape(%m: memref<?xf32, 1>, %n: memref<2xi32>, %k: memref<?xi32>) -> (memref<*xf32, 1>, memref<*xf32, 1>) {
  %0 = memref.reshape %m(%n) : (memref<?xf32, 1>, memref<2xi32>) -> memref<*xf32, 1>
  %1 = memref.reshape %m(%k) : (memref<?xf32, 1>, memref<?xi32>) -> memref<*xf32, 1>
  return %0, %1 : memref<*xf32, 1>, memref<*xf32, 1>
}

// -----

func.func @mixed(%m: memref<6x4x6x8xf32>) -> memref<1x4x8xf32, strided<[48, 8, 1]>> {
  // expected-error @below {{expected sizes and strides of the result to be those of the same dims of 'memref<1x4x1x8xf32, strided<[192, 48, 8, 1]>>', got 'memref<1x4x8xf32, strided<[48, 8, 1]>>'}}
  %0 = memref.subview %m[0, 0, 0, 0] [1, 4, 1, 8] [1, 1, 1, 1]
      : memref<6x4x6x8xf32> to memref<1x4x8xf32, strided<[48, 8, 1]>>
  return %0 : memref<1x4x8xf32, strided<[48, 8, 1]>>
}
