// RUN: bngrad-opt %s --split-input-file --bngrad-return-allocs | FileCheck %s

// CHECK-LABEL: func.func @forgotten_size(
// CHECK: %[[C8:.+]] = arith.constant 8 : index
// CHECK: %[[ALLOC:.+]] = memref.alloc(%[[C8]]) {alignment = 64 : i64} : memref<?x6xf32>
// CHECK: %[[STATIC:.+]] = memref.cast %[[ALLOC]] : memref<?x6xf32> to memref<8x6xf32>
// CHECK: linalg.fill {{.*}} outs(%[[STATIC]] : memref<8x6xf32>)
// CHECK: return %[[ALLOC]] : memref<?x6xf32>
func.func @forgotten_size(%x: f32) -> memref<?x6xf32> {
  %alloc = memref.alloc() {alignment = 64 : i64} : memref<8x6xf32>
  linalg.fill ins(%x : f32) outs(%alloc : memref<8x6xf32>)
  %cast = memref.cast %alloc : memref<8x6xf32> to memref<?x6xf32>
  return %cast : memref<?x6xf32>
}

// -----

// The type of a buffer that is not allocated here cannot change.

// CHECK-LABEL: func.func @does_nothing(
// CHECK: memref.cast %{{.+}} : memref<8xf32> to memref<?xf32>
func.func @does_nothing(%a: memref<8xf32>) -> memref<?xf32> {
  %cast = memref.cast %a : memref<8xf32> to memref<?xf32>
  return %cast : memref<?xf32>
}
