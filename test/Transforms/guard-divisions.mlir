// Divisors that CPUs trap on are replaced, but not in kernels, and constants stay.

// RUN: bngrad-opt %s --bngrad-guard-divisions | FileCheck %s

// CHECK-LABEL: llvm.func @signed(
// CHECK-SAME:    %[[X:.+]]: i32, %[[Y:.+]]: i32)
// CHECK-DAG:     %[[ZERO:.+]] = llvm.mlir.constant(0 : i32)
// CHECK-DAG:     %[[ONE:.+]] = llvm.mlir.constant(1 : i32)
// CHECK-DAG:     %[[MINUS:.+]] = llvm.mlir.constant(-1 : i32)
// CHECK:         %[[IS_ZERO:.+]] = llvm.icmp "eq" %[[Y]], %[[ZERO]]
// CHECK:         %[[NOT_ZERO:.+]] = llvm.select %[[IS_ZERO]], %[[ONE]], %[[Y]]
// CHECK:         %[[IS_MINUS:.+]] = llvm.icmp "eq" %[[Y]], %[[MINUS]]
// CHECK:         %[[SAFE:.+]] = llvm.select %[[IS_MINUS]], %[[ONE]], %[[NOT_ZERO]]
// CHECK:         %[[QUOTIENT:.+]] = llvm.sdiv %[[X]], %[[SAFE]]
// CHECK:         %[[NEGATED:.+]] = llvm.sub %[[ZERO]], %[[X]]
// CHECK:         %[[SELECTED:.+]] = llvm.select %[[IS_MINUS]], %[[NEGATED]], %[[QUOTIENT]]
// CHECK:         llvm.select %[[IS_ZERO]], %[[MINUS]], %[[SELECTED]]
// CHECK:         %[[REST:.+]] = llvm.srem %[[X]], %{{.+}}
// CHECK-NEXT:    llvm.select %{{.+}}, %[[X]], %[[REST]]
llvm.func @signed(%x: i32, %y: i32) -> i32 {
  %0 = llvm.sdiv %x, %y : i32
  %1 = llvm.srem %x, %y : i32
  %2 = llvm.add %0, %1 : i32
  llvm.return %2 : i32
}

// CHECK-LABEL: llvm.func @vectors(
// CHECK:         llvm.select %{{.+}} : vector<4xi1>, vector<4xi16>
// CHECK:         llvm.udiv
// CHECK:         llvm.urem
llvm.func @vectors(%x: vector<4xi16>, %y: vector<4xi16>) -> vector<4xi16> {
  %0 = llvm.udiv %x, %y : vector<4xi16>
  %1 = llvm.urem %0, %y : vector<4xi16>
  llvm.return %1 : vector<4xi16>
}

// CHECK-LABEL: llvm.func @constants(
// CHECK-NOT:     llvm.select
// CHECK:         llvm.return
llvm.func @constants(%x: i64, %v: vector<2xi64>) -> i64 {
  %c3 = llvm.mlir.constant(3 : i64) : i64
  %c = llvm.mlir.constant(dense<[1, -2]> : vector<2xi64>) : vector<2xi64>
  %0 = llvm.sdiv %x, %c3 : i64
  %1 = llvm.sdiv %v, %c : vector<2xi64>
  %2 = llvm.extractelement %1[%c3 : i64] : vector<2xi64>
  %3 = llvm.add %0, %2 : i64
  llvm.return %3 : i64
}

// CHECK-LABEL: llvm.func @zero(
// CHECK:         llvm.select
llvm.func @zero(%v: vector<2xi64>) -> vector<2xi64> {
  %c = llvm.mlir.constant(dense<[1, 0]> : vector<2xi64>) : vector<2xi64>
  %0 = llvm.sdiv %v, %c : vector<2xi64>
  llvm.return %0 : vector<2xi64>
}

gpu.module @kernels {
  // CHECK-LABEL: llvm.func @kernel(
  // CHECK-NEXT:    llvm.udiv
  llvm.func @kernel(%x: i64, %y: i64) -> i64 {
    %0 = llvm.udiv %x, %y : i64
    llvm.return %0 : i64
  }
}
