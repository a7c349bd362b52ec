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
