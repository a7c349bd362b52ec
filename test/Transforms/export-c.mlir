// RUN: bngrad-opt %s --bngrad-export-c | FileCheck %s
// RUN: bngrad-opt %s --bngrad-export-c=status-function=take_status | FileCheck %s --check-prefix=STATUS
// RUN: bngrad-opt %s --bngrad-cpu-pipeline=export-c --mlir-print-local-scope | FileCheck %s --check-prefix=LLVM

// Functions get a unique name and private linkage; calls are updated.
// CHECK: func.func private @fixed.impl(%{{.+}}: memref<2x3xf32>, %{{.+}}: memref<3xf16>)
// CHECK-SAME: llvm.linkage = #llvm.linkage<internal>
// CHECK: call @exp.impl(
// CHECK: func.func private @exp.impl(
// CHECK-SAME: llvm.linkage = #llvm.linkage<internal>
// CHECK-NOT: llvm.emit_c_interface
// LLVM: llvm.func internal @fixed.impl(
func.func @fixed(%a: memref<2x3xf32>, %b: memref<3xf16>) {
  call @exp(%a) : (memref<2x3xf32>) -> ()
  return
}
func.func private @exp(%a: memref<2x3xf32>) attributes {llvm.emit_c_interface} {
  %0 = arith.constant 1.0 : f32
  linalg.fill ins(%0 : f32) outs(%a : memref<2x3xf32>)
  return
}
// Threads are passed to functions with parallel loops, and to those who call them.
// CHECK: func.func private @calls_parallel.impl(%{{.+}}: memref<8xf32>, %{{.+}}: f32, %[[THREADS:.+]]: !llvm.ptr {bngrad.threads})
// CHECK-NEXT: call @parallel.impl(%{{.+}}, %{{.+}}, %[[THREADS]])
// CHECK: func.func private @parallel.impl(%{{.+}}: memref<8xf32>, %{{.+}}: f32, %{{.+}}: !llvm.ptr {bngrad.threads})
func.func @calls_parallel(%m: memref<8xf32>, %x: f32) {
  call @parallel(%m, %x) : (memref<8xf32>, f32) -> ()
  return
}
func.func private @parallel(%m: memref<8xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    memref.store %x, %m[%i] : memref<8xf32>
  }
  return
}
func.func @dynamic(%a: memref<?xf32>) {
  return
}
func.func @scalars(%a: i1, %b: index, %c: f16, %d: f64) {
  return
}
// All pointers may be null.
func.func @empty(%a: memref<0x4xf32>) {
  return
}
// Also after an extent of 0, for which upstream has no strides.
func.func @empty_behind(%a: memref<4x0x2xf32>) {
  return
}
func.func @strided(%a: memref<2x4xf32, strided<[8, 2], offset: 3>>, %b: memref<2xf32, strided<[?]>>) {
  return
}
func.func @offset(%a: memref<2xf32, strided<[1], offset: ?>>) {
  return
}
// CHECK: memref.global "private" @data
// CHECK: llvm.mlir.global internal @more
// CHECK: llvm.func internal @helper
memref.global @data : memref<2xf32> = dense<1.0>
llvm.mlir.global external @more(1 : i32) : i32
llvm.func @helper() {
  llvm.return
}
// Calls code that is linked later.
// CHECK: func.func private @other(i32)
func.func private @other(i32)

// A pointer per buffer; none may be null.
// CHECK-LABEL: func.func @fixed(
// CHECK-SAME: %[[A:.+]]: !llvm.ptr, %[[B:.+]]: !llvm.ptr) -> i32
// CHECK: %[[A_NULL:.+]] = llvm.icmp "eq" %[[A]],
// CHECK: %[[B_NULL:.+]] = llvm.icmp "eq" %[[B]],
// CHECK: %[[ANY:.+]] = arith.ori %[[A_NULL]], %[[B_NULL]]
// CHECK: %[[RESULT:.+]] = scf.if %[[ANY]] -> (i32) {
// CHECK: %[[FAILED:.+]] = arith.constant -1 : i32
// CHECK: scf.yield %[[FAILED]]
// CHECK: } else {
// CHECK: unrealized_conversion_cast %{{.+}} : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> to memref<2x3xf32>
// CHECK: unrealized_conversion_cast %{{.+}} to memref<3xf16>
// CHECK: call @fixed.impl(
// CHECK: %[[ZERO:.+]] = arith.constant 0 : i32
// CHECK: scf.yield %[[ZERO]]
// CHECK: return %[[RESULT]]
// LLVM: llvm.func @fixed(%{{.+}}: !llvm.ptr, %{{.+}}: !llvm.ptr) -> i32

// A descriptor per buffer, whose pointers to data are enough.
// CHECK-LABEL: func.func @_mlir_ciface_fixed(
// CHECK-SAME: %[[A:.+]]: !llvm.ptr, %[[B:.+]]: !llvm.ptr) -> i32 {
// CHECK: %[[A_SLOT:.+]] = llvm.getelementptr %[[A]][1]
// CHECK: %[[A_DATA:.+]] = llvm.load %[[A_SLOT]]
// CHECK: %[[B_SLOT:.+]] = llvm.getelementptr %[[B]][1]
// CHECK: %[[B_DATA:.+]] = llvm.load %[[B_SLOT]]
// CHECK: %[[CODE:.+]] = call @fixed(%[[A_DATA]], %[[B_DATA]])
// CHECK-NEXT: return %[[CODE]] : i32
// LLVM: llvm.func @_mlir_ciface_fixed(%{{.+}}: !llvm.ptr, %{{.+}}: !llvm.ptr) -> i32

// The status is taken after the call.
// STATUS: func.func private @take_status() -> i32
// STATUS-LABEL: func.func @fixed(
// STATUS: call @fixed.impl(
// STATUS: %[[STATUS:.+]] = func.call @take_status()
// STATUS: scf.yield %[[STATUS]]

// A pointer carries no sizes.
// CHECK-NOT: func.func @dynamic(
// CHECK-LABEL: func.func @_mlir_ciface_dynamic(
// CHECK-SAME: %[[A:[^:]+]]: !llvm.ptr
// CHECK: %[[LOADED:.+]] = llvm.load %[[A]] : !llvm.ptr -> !llvm.struct<
// CHECK: %[[BUFFER:.+]] = builtin.unrealized_conversion_cast %[[LOADED]]
// CHECK: call @dynamic.impl(%[[BUFFER]]
// CHECK-NEXT: %[[DONE:.+]] = arith.constant 0 : i32
// CHECK-NEXT: return %[[DONE]] : i32
// LLVM-NOT: llvm.func @dynamic(
// LLVM: llvm.func @_mlir_ciface_dynamic(

// CHECK-LABEL: func.func @scalars(
// CHECK-SAME: %[[A:.+]]: i8, %[[B:.+]]: i64, %[[C:.+]]: i16, %[[D:.+]]: f64) -> i32
// CHECK-DAG: %[[TRUTH:.+]] = arith.cmpi ne, %[[A]], %{{.+}} : i8
// CHECK-DAG: %[[INDEX:.+]] = arith.index_cast %[[B]] : i64 to index
// CHECK-DAG: %[[HALF:.+]] = arith.bitcast %[[C]] : i16 to f16
// CHECK: call @scalars.impl(%[[TRUTH]], %[[INDEX]], %[[HALF]], %[[D]])
// CHECK-LABEL: func.func @_mlir_ciface_scalars(
// CHECK-SAME: %{{.+}}: i8, %{{.+}}: i64, %{{.+}}: i16, %{{.+}}: f64) -> i32 {

// CHECK-LABEL: func.func @empty(
// CHECK-NOT: icmp
// CHECK: call @empty.impl(

// CHECK-LABEL: func.func @empty_behind(
// CHECK-SAME: %{{.+}}: !llvm.ptr) -> i32
// CHECK: [3, 0]
// CHECK-NEXT: %[[ZERO:.+]] = llvm.mlir.constant(0 : index)
// CHECK-NEXT: llvm.insertvalue %[[ZERO]], %{{.+}}[4, 0]
// CHECK: %[[TWO:.+]] = llvm.mlir.constant(2 : index)
// CHECK-NEXT: llvm.insertvalue %[[TWO]], %{{.+}}[4, 1]
// CHECK: %[[ONE:.+]] = llvm.mlir.constant(1 : index)
// CHECK-NEXT: llvm.insertvalue %[[ONE]], %{{.+}}[4, 2]
// CHECK: call @empty_behind.impl(

// CHECK-NOT: func.func @strided(
// CHECK-LABEL: func.func @_mlir_ciface_strided(
// CHECK-NOT: func.func @offset(
// CHECK-LABEL: func.func @_mlir_ciface_offset(
