// RUN: bngrad-opt %s --bngrad-expand-copies | FileCheck %s

// CHECK-LABEL: @strided
// CHECK-NOT: memref.copy
// CHECK: linalg.generic {{.*}} ins(%{{.+}} : memref<?x4xf32, strided<[8, 1], offset: ?>>) outs(%{{.+}} : memref<?x4xf32>)
func.func @strided(%a: memref<?x4xf32, strided<[8, 1], offset: ?>>, %b: memref<?x4xf32>) {
  memref.copy %a, %b : memref<?x4xf32, strided<[8, 1], offset: ?>> to memref<?x4xf32>
  return
}

// CHECK-LABEL: @strided_target
// CHECK: linalg.generic
func.func @strided_target(%a: memref<2x4xf32>, %b: memref<2x4xf32, strided<[8, 1]>>) {
  memref.copy %a, %b : memref<2x4xf32> to memref<2x4xf32, strided<[8, 1]>>
  return
}

// Becomes memcpy later.
// CHECK-LABEL: @contiguous
// CHECK: memref.copy
// CHECK: memref.copy
// CHECK-NOT: linalg
func.func @contiguous(%a: memref<?xf32>, %b: memref<?xf32>, %c: memref<2x4xf32, strided<[4, 1], offset: 3>>,
                      %d: memref<2x4xf32>) {
  memref.copy %a, %b : memref<?xf32> to memref<?xf32>
  memref.copy %c, %d : memref<2x4xf32, strided<[4, 1], offset: 3>> to memref<2x4xf32>
  return
}
