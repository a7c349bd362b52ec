// RUN: bngrad-opt %s --pass-pipeline="builtin.module(gpu.module(bngrad-lay-out-shared-memory))" | FileCheck %s

gpu.module @kernels {
  // Dynamic shared memory is sized by the launch, external, and aligned for bulk copies.
  // CHECK: llvm.mlir.global external @dynamic() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
  llvm.mlir.global internal @dynamic() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  // Vectors are accessed as a whole.
  // CHECK: llvm.mlir.global internal @sums() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<8 x f32>
  llvm.mlir.global internal @sums() {addr_space = 3 : i32} : !llvm.array<8 x f32>
  // CHECK: llvm.mlir.global internal @aligned() {addr_space = 3 : i32, alignment = 64 : i64} : !llvm.array<8 x f32>
  llvm.mlir.global internal @aligned() {addr_space = 3 : i32, alignment = 64 : i64} : !llvm.array<8 x f32>
  // LLVM reads three elements as a vector of four, and so on: there are whole vectors.
  // CHECK: llvm.mlir.global internal @three() {{.*}} : !llvm.array<4 x f32>
  llvm.mlir.global internal @three() {addr_space = 3 : i32} : !llvm.array<3 x f32>
  // CHECK: llvm.mlir.global internal @wide() {{.*}} : !llvm.array<4 x f64>
  llvm.mlir.global internal @wide() {addr_space = 3 : i32} : !llvm.array<3 x f64>
  // CHECK: llvm.mlir.global internal @bits() {{.*}} : !llvm.array<3 x i1>
  llvm.mlir.global internal @bits() {addr_space = 3 : i32} : !llvm.array<3 x i1>
  // Other memory is unchanged.
  // CHECK: llvm.mlir.global internal @global() {addr_space = 1 : i32} : !llvm.array<0 x i8>
  llvm.mlir.global internal @global() {addr_space = 1 : i32} : !llvm.array<0 x i8>
}
