// RUN: bngrad-opt %s --allow-unregistered-dialect --bngrad-lower-element-cast | FileCheck %s

// CHECK-LABEL: func @same_size(
// CHECK-SAME:    %[[A:.+]]: memref<?x8xi1, strided<[16, 1], offset: ?>>)
// CHECK-NEXT:    %[[BYTES:.+]] = builtin.unrealized_conversion_cast %[[A]] : memref<?x8xi1, strided<[16, 1], offset: ?>> to memref<?x8xi8, strided<[16, 1], offset: ?>>
// CHECK-NEXT:    return %[[BYTES]]
func.func @same_size(%a: memref<?x8xi1, strided<[16, 1], offset: ?>>) -> memref<?x8xi8, strided<[16, 1], offset: ?>> {
  %0 = bngrad.element_cast %a : memref<?x8xi1, strided<[16, 1], offset: ?>> to memref<?x8xi8, strided<[16, 1], offset: ?>>
  return %0 : memref<?x8xi8, strided<[16, 1], offset: ?>>
}

// The size counts other elements.
// CHECK-LABEL: func @other_size(
// CHECK-SAME:    %[[A:.+]]: memref<?xf32>)
// CHECK:         %[[SAME:.+]] = builtin.unrealized_conversion_cast %[[A]] : memref<?xf32> to memref<?xi64>
// CHECK:         %[[N:.+]] = memref.dim %[[A]], %c0
// CHECK:         %[[BYTES:.+]] = arith.muli %[[N]], %c4
// CHECK:         %[[SIZE:.+]] = arith.divui %[[BYTES]], %c8
// CHECK:         memref.reinterpret_cast %[[SAME]] to offset: [0], sizes: [%[[SIZE]]], strides: [1] : memref<?xi64> to memref<?xi64>
func.func @other_size(%a: memref<?xf32>) -> memref<?xi64> {
  %0 = bngrad.element_cast %a : memref<?xf32> to memref<?xi64>
  return %0 : memref<?xi64>
}

// CHECK-LABEL: func @static_size(
// CHECK-NEXT:    %[[SAME:.+]] = builtin.unrealized_conversion_cast %{{.+}} : memref<?xf32> to memref<?xi1>
// CHECK-NEXT:    memref.reinterpret_cast %[[SAME]] to offset: [0], sizes: [16], strides: [1] : memref<?xi1> to memref<16xi1>
func.func @static_size(%a: memref<?xf32>) -> memref<16xi1> {
  %0 = bngrad.element_cast %a : memref<?xf32> to memref<16xi1>
  return %0 : memref<16xi1>
}

// In kernels, too.
// CHECK-LABEL: func @kernel(
// CHECK:         gpu.launch
// CHECK:         builtin.unrealized_conversion_cast
func.func @kernel(%a: memref<8xi1>, %n: index) {
  gpu.launch blocks(%x, %y, %z) in (%sx = %n, %sy = %n, %sz = %n)
             threads(%tx, %ty, %tz) in (%ux = %n, %uy = %n, %uz = %n) {
    %0 = bngrad.element_cast %a : memref<8xi1> to memref<8xi8>
    %1 = memref.load %0[%x] : memref<8xi8>
    "test.use"(%1) : (i8) -> ()
    gpu.terminator
  }
  return
}
