// RUN: bngrad-opt %s --split-input-file --bngrad-prepare-bufferize | FileCheck %s

// CHECK-LABEL: func.func @two_ops_share_an_empty(
// CHECK-DAG: %[[A:.+]] = tensor.empty() : tensor<4xf32>
// CHECK-DAG: %[[B:.+]] = tensor.empty() : tensor<4xf32>
// CHECK: linalg.exp {{.*}}outs(%[[FIRST:.+]] : tensor<4xf32>)
// CHECK-NOT: linalg.abs {{.*}}outs(%[[FIRST]] : tensor<4xf32>)
// CHECK: linalg.abs
func.func @two_ops_share_an_empty(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%a : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.abs ins(%a : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Both sums start at zeros that CSE has merged.

#data = affine_map<(d0, d1) -> (d0, d1)>
#feature = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @two_sums_share_a_fill(
// CHECK-COUNT-2: tensor.empty() : tensor<4xf32>
// CHECK-COUNT-2: linalg.fill
// CHECK: linalg.generic
// CHECK-SAME: outs(%[[FIRST:[^ ,]+]], %[[SECOND:[^ ,]+]] : tensor<4xf32>, tensor<4xf32>)
func.func @two_sums_share_a_fill(%x: tensor<8x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %0:2 = linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%fill, %fill : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%e: f32, %s: f32, %t: f32):
    %1 = arith.addf %s, %e : f32
    %2 = arith.mulf %e, %e : f32
    %3 = arith.addf %t, %2 : f32
    linalg.yield %1, %3 : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// An init with other contents is not copied.

// Arguments are read-only unless they have the attribute.

// CHECK-LABEL: func.func @arguments(
// CHECK-SAME: %{{[^:]+}}: tensor<4xf32> {bufferization.writable = false}, %{{[^:]+}}: tensor<4xf32> {bufferization.writable = true}, %{{[^:]+}}: memref<4xf32>)
func.func @arguments(%a: tensor<4xf32>, %b: tensor<4xf32> {bufferization.writable = true}, %m: memref<4xf32>) {
  return
}

// -----

// Each result has its own buffer.

// CHECK-LABEL: func.func @returned_twice(
// CHECK: %[[R:.+]] = linalg.exp
// CHECK: %[[COPY:.+]] = bufferization.alloc_tensor() copy(%[[R]]) : tensor<4xf32>
// CHECK: return %[[R]], %[[COPY]]
func.func @returned_twice(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%a : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %0, %0 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @argument_as_init(
// CHECK-NOT: tensor.empty
func.func @argument_as_init(%a: tensor<4xf32>, %init: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = linalg.exp ins(%a : tensor<4xf32>) outs(%init : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.abs ins(%a : tensor<4xf32>) outs(%init : tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @does_nothing(
// CHECK: tensor.empty
// CHECK-NOT: tensor.empty
func.func @does_nothing(%a: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%a : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A constant with very many elements, or sizes, is none for LLVM.
// CHECK-LABEL: func.func @large_constants(
// CHECK: %[[LARGE:.+]] = linalg.fill
// CHECK: %[[NONE:.+]] = tensor.empty() : tensor<0x4611686018427387904xf32>
// CHECK: %[[SMALL:.+]] = arith.constant dense<1.000000e+00> : tensor<67108864xf32>
// CHECK: return %[[LARGE]], %[[NONE]], %[[SMALL]]
func.func @large_constants() -> (tensor<67108865xf32>, tensor<0x4611686018427387904xf32>, tensor<67108864xf32>) {
  %0 = arith.constant dense<1.0> : tensor<67108865xf32>
  %1 = arith.constant dense<1.0> : tensor<0x4611686018427387904xf32>
  %2 = arith.constant dense<1.0> : tensor<67108864xf32>
  return %0, %1, %2 : tensor<67108865xf32>, tensor<0x4611686018427387904xf32>, tensor<67108864xf32>
}

// -----

// The sums of a gradient: each row is written where it belongs.
// CHECK-LABEL: func.func @slices_of_a_buffer(
// CHECK-SAME: %[[A:.+]]: tensor<?xf32> {{.*}}, %[[B:.+]]: tensor<?xf32> {{.*}}, %[[TO:.+]]: memref<2x?xf32>
// CHECK-DAG: %[[FIRST:.+]] = memref.subview %[[TO]][0, 0] [1, %{{.+}}] [1, 1] : memref<2x?xf32> to memref<?xf32, strided<[1]>>
// CHECK-DAG: %[[SECOND:.+]] = memref.subview %[[TO]][1, 0] [1, %{{.+}}] [1, 1] : memref<2x?xf32> to memref<?xf32, strided<[1], offset: ?>>
// CHECK: %[[EXP:.+]] = linalg.exp
// CHECK-NOT: tensor.insert_slice
// CHECK: bufferization.materialize_in_destination %[[EXP]] in restrict writable %[[FIRST]]
// CHECK: bufferization.materialize_in_destination %[[B]] in restrict writable %[[SECOND]]
func.func @slices_of_a_buffer(%a: tensor<?xf32>, %b: tensor<?xf32>, %to: memref<2x?xf32>) {
  %c0 = arith.constant 0 : index
  %size = tensor.dim %a, %c0 : tensor<?xf32>
  %empty = tensor.empty(%size) : tensor<?xf32>
  %0 = linalg.exp ins(%a : tensor<?xf32>) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %both = tensor.empty(%size) : tensor<2x?xf32>
  %1 = tensor.insert_slice %0 into %both[0, 0] [1, %size] [1, 1] : tensor<?xf32> into tensor<2x?xf32>
  %2 = tensor.insert_slice %b into %1[1, 0] [1, %size] [1, 1] : tensor<?xf32> into tensor<2x?xf32>
  bufferization.materialize_in_destination %2 in restrict writable %to : (tensor<2x?xf32>, memref<2x?xf32>) -> ()
  return
}

// -----

// A slice that may be anywhere, one of any size, and slices of a tensor with other elements stay.
// CHECK-LABEL: func.func @slices_that_stay(
// CHECK-NOT: memref.subview
// CHECK: tensor.insert_slice
// CHECK: tensor.insert_slice
// CHECK: tensor.insert_slice
func.func @slices_that_stay(%a: tensor<4xf32>, %b: tensor<2x4xf32>, %c: tensor<?xf32>, %row: index, %size: index, %to: memref<2x4xf32>, %other: memref<2x4xf32>, %third: memref<2x4xf32>) {
  %both = tensor.empty() : tensor<2x4xf32>
  %2 = tensor.insert_slice %c into %both[0, 0] [1, %size] [1, 1] : tensor<?xf32> into tensor<2x4xf32>
  bufferization.materialize_in_destination %2 in restrict writable %third : (tensor<2x4xf32>, memref<2x4xf32>) -> ()
  %0 = tensor.insert_slice %a into %both[%row, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<2x4xf32>
  bufferization.materialize_in_destination %0 in restrict writable %to : (tensor<2x4xf32>, memref<2x4xf32>) -> ()
  %1 = tensor.insert_slice %a into %b[0, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<2x4xf32>
  bufferization.materialize_in_destination %1 in restrict writable %other : (tensor<2x4xf32>, memref<2x4xf32>) -> ()
  return
}
