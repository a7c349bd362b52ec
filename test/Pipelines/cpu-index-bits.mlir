// Indices, sizes and counts have 64 bits; 2^33 elements per channel here.

// RUN: bngrad-opt %s --bngrad-cpu-pipeline="schedule=#bngrad.schedule<loops>" | FileCheck %s --implicit-check-not="llvm.trunc" --implicit-check-not="llvm.mul {{.*}} : i32"
// Vectors compare lanes, at most 2^16 of them, in 32 bits; all other integers are wider.
// RUN: bngrad-opt %s --bngrad-cpu-pipeline=vector-bits=512 | FileCheck %s --check-prefix=VECTORS --implicit-check-not="llvm.{{mul|sub|add|getelementptr}} {{.*}} : i32"

// CHECK-LABEL: llvm.func @f
// CHECK-DAG:     llvm.mlir.constant(8589934592 : index) : i64
// M as an f32:
// CHECK-DAG:     llvm.mlir.constant(8.58993459E+9 : f32) : f32
// VECTORS-LABEL: llvm.func @f
// VECTORS-DAG:     llvm.mlir.constant(25769803776 : index) : i64
// VECTORS-DAG:     llvm.mlir.constant(dense<8.58993459E+9> : vector<16xf32>) : vector<16xf32>
func.func @f(%dy: tensor<8589934592x3xf32>, %x: tensor<8589934592x3xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>)
    -> tensor<8589934592x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8589934592x3xf32>) input(%x : tensor<8589934592x3xf32>)
      mean(%m : tensor<3xf32>) variance(%v : tensor<3xf32>) : tensor<8589934592x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<8589934592x3xf32>
}
