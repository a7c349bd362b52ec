// What would be poison has a value, in functions and in kernels.

// RUN: bngrad-opt %s --bngrad-define-values | FileCheck %s

// Indices times negative strides wrap as unsigned integers.
// CHECK-LABEL: llvm.func @addresses(
// CHECK-NEXT:    llvm.mul %{{.+}}, %{{.+}} : i64
// CHECK-NEXT:    llvm.add %{{.+}}, %{{.+}} : i64
// CHECK-NEXT:    llvm.getelementptr inbounds %
llvm.func @addresses(%index: i64, %stride: i64, %p: !llvm.ptr) -> !llvm.ptr {
  %0 = llvm.mul %index, %stride overflow<nsw, nuw> : i64
  %1 = llvm.add %0, %stride overflow<nuw> : i64
  %2 = llvm.getelementptr inbounds|nuw %p[%1] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.return %2 : !llvm.ptr
}

// CHECK-LABEL: llvm.func @flags(
// CHECK-NEXT:    llvm.sub %{{.+}}, %{{.+}} : i64
// CHECK-NEXT:    llvm.udiv %{{.+}}, %{{.+}} : i64
// CHECK-NEXT:    llvm.or %{{.+}}, %{{.+}} : i64
// CHECK-NEXT:    llvm.trunc %{{.+}} : i64 to i32
// CHECK-NEXT:    llvm.zext %{{.+}} : i32 to i64
// CHECK-NEXT:    llvm.fadd %{{.+}}, %{{.+}} {fastmathFlags = #llvm.fastmath<nsz, arcp, contract, afn, reassoc>} : f32
// CHECK-NEXT:    llvm.fadd %{{.+}}, %{{.+}} : f32
// CHECK-NEXT:    llvm.return
llvm.func @flags(%a: i64, %b: i64, %x: f32, %known: i1) -> f32 {
  %0 = llvm.sub %a, %b overflow<nsw> : i64
  %1 = llvm.udiv exact %0, %b : i64
  %2 = llvm.or disjoint %1, %b : i64
  %3 = llvm.trunc %2 overflow<nsw> : i64 to i32
  %4 = llvm.zext nneg %3 : i32 to i64
  llvm.intr.assume %known : i1
  %5 = llvm.fadd %x, %x {fastmathFlags = #llvm.fastmath<fast>} : f32
  %6 = llvm.fadd %5, %x {fastmathFlags = #llvm.fastmath<nnan, ninf>} : f32
  llvm.return %6 : f32
}

// CHECK-LABEL: llvm.func @shifts(
// CHECK-SAME:    %[[X:.+]]: i64, %[[AMOUNT:.+]]: i64, %[[V:.+]]: vector<4xi16>)
// CHECK:         %[[MOST:.+]] = llvm.mlir.constant(63 : i64)
// CHECK-NEXT:    %[[IS_LESS:.+]] = llvm.icmp "ule" %[[AMOUNT]], %[[MOST]]
// CHECK:         %[[LEFT:.+]] = llvm.shl %[[X]], %[[AMOUNT]]
// CHECK:         llvm.select %[[IS_LESS]], %{{.+}}, %{{.+}} : i1, i64
// CHECK:         llvm.lshr
// CHECK:         llvm.select %{{.+}} : i1, i64
// CHECK:         %[[BITS:.+]] = llvm.select %{{.+}}, %[[AMOUNT]], %{{.+}} : i1, i64
// CHECK-NEXT:    llvm.ashr %{{.+}}, %[[BITS]]
// CHECK:         llvm.mlir.constant(dense<15> : vector<4xi16>)
// CHECK:         llvm.select %{{.+}} : vector<4xi1>, vector<4xi16>
// CHECK-NOT:     llvm.select
// CHECK:         llvm.return
llvm.func @shifts(%x: i64, %amount: i64, %v: vector<4xi16>) -> i64 {
  %0 = llvm.shl %x, %amount : i64
  %1 = llvm.lshr %0, %amount : i64
  %2 = llvm.ashr %1, %amount : i64
  %3 = llvm.shl %v, %v : vector<4xi16>
  %c63 = llvm.mlir.constant(63 : i64) : i64
  %4 = llvm.ashr %2, %c63 : i64
  %c3 = llvm.mlir.constant(dense<[0, 1, 2, 15]> : vector<4xi16>) : vector<4xi16>
  %5 = llvm.lshr %3, %c3 : vector<4xi16>
  llvm.return %4 : i64
}

// A constant that is too many bits is one more case.
// CHECK-LABEL: llvm.func @too_many(
// CHECK:         llvm.select
llvm.func @too_many(%x: i64) -> i64 {
  %c64 = llvm.mlir.constant(64 : i64) : i64
  %0 = llvm.shl %x, %c64 : i64
  llvm.return %0 : i64
}

// CHECK-LABEL: llvm.func @boolean(
// CHECK-NEXT:    %[[BYTE:.+]] = llvm.load %{{.+}} {alignment = 1 : i64} : !llvm.ptr -> i8
// CHECK-NEXT:    %[[ZERO:.+]] = llvm.mlir.constant(0 : i8)
// CHECK-NEXT:    %[[IS_TRUE:.+]] = llvm.icmp "ne" %[[BYTE]], %[[ZERO]]
// CHECK-NEXT:    llvm.return %[[IS_TRUE]]
llvm.func @boolean(%p: !llvm.ptr) -> i1 {
  %0 = llvm.load %p {alignment = 1 : i64} : !llvm.ptr -> i1
  llvm.return %0 : i1
}

// Structs of values that follow stay.
// CHECK-LABEL: llvm.func @poison(
// CHECK-NEXT:    %[[ZERO:.+]] = llvm.mlir.zero : i64
// CHECK-NEXT:    %[[STRUCT:.+]] = llvm.mlir.poison : !llvm.struct<(i64)>
// CHECK-NEXT:    llvm.insertvalue %[[ZERO]], %[[STRUCT]][0]
llvm.func @poison() -> !llvm.struct<(i64)> {
  %0 = llvm.mlir.poison : i64
  %1 = llvm.mlir.poison : !llvm.struct<(i64)>
  %2 = llvm.insertvalue %0, %1[0] : !llvm.struct<(i64)>
  llvm.return %2 : !llvm.struct<(i64)>
}

// CHECK-LABEL: llvm.func @lanes(
// CHECK:         llvm.mlir.zero : vector<2xi64>
// CHECK-NOT:     poison
llvm.func @lanes(%x: i64) -> vector<2xi64> {
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %0 = llvm.mlir.poison : vector<2xi64>
  %1 = llvm.insertelement %x, %0[%c0 : i64] : vector<2xi64>
  llvm.return %1 : vector<2xi64>
}

// CHECK-LABEL: llvm.func @intrinsics(
// CHECK-NEXT:    "llvm.intr.ctlz"(%{{.+}}) <{is_zero_poison = false}>
// CHECK-NEXT:    "llvm.intr.cttz"(%{{.+}}) <{is_zero_poison = false}>
// CHECK-NEXT:    "llvm.intr.abs"(%{{.+}}) <{is_int_min_poison = false}>
llvm.func @intrinsics(%x: i64) -> i64 {
  %0 = "llvm.intr.ctlz"(%x) <{is_zero_poison = true}> : (i64) -> i64
  %1 = "llvm.intr.cttz"(%0) <{is_zero_poison = true}> : (i64) -> i64
  %2 = "llvm.intr.abs"(%1) <{is_int_min_poison = true}> : (i64) -> i64
  llvm.return %2 : i64
}

gpu.module @kernels {
  // CHECK-LABEL: llvm.func @kernel(
  // CHECK-NEXT:    llvm.mul %{{.+}}, %{{.+}} : i64
  llvm.func @kernel(%index: i64, %stride: i64) -> i64 {
    %0 = llvm.mul %index, %stride overflow<nsw, nuw> : i64
    llvm.return %0 : i64
  }
}
