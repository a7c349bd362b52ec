// RUN: bngrad-opt %s --bngrad-lower-allocations --split-input-file | FileCheck %s

// CHECK-DAG:   llvm.func @malloc(i64) -> !llvm.ptr
// CHECK-DAG:   llvm.func @free(!llvm.ptr)
// CHECK-DAG:   llvm.func internal @bngrad_allocate(
// CHECK-DAG:   llvm.func internal @bngrad_free(
// CHECK-DAG:   llvm.func internal @bngrad_free_all(
// CHECK-NOT:   @abort
// CHECK-LABEL: func.func @status(
// CHECK-SAME:    %[[N:.+]]: index) -> i32 {
// CHECK:         %[[HEAD:.+]] = llvm.alloca
// CHECK:         llvm.store %[[HEAD]], %[[HEAD]]
// The number of bytes, or all ones if it overflows.
// CHECK:         arith.index_cast %[[N]] : index to i64
// CHECK:         arith.mului_extended
// CHECK:         %[[BYTES:.+]] = arith.select
// CHECK:         %[[DATA:.+]] = llvm.call @bngrad_allocate(%[[BYTES]], %[[HEAD]])
// CHECK:         %[[FAILED:.+]] = llvm.icmp "eq" %[[DATA]],
// CHECK:         %[[STATUS:.+]] = arith.constant -2 : i32
// CHECK:         cf.cond_br %[[FAILED]], ^[[FAIL:.+]](%[[STATUS]] : i32), ^[[NEXT:.+]]
// CHECK:       ^[[NEXT]]:
// CHECK:         %[[ALLOCATED:.+]] = llvm.extractvalue %{{.+}}[0]
// CHECK:         llvm.call @bngrad_free(%[[ALLOCATED]])
// CHECK:       ^[[FAIL]](%[[CODE:.+]]: i32):
// CHECK:         llvm.call @bngrad_free_all(%[[HEAD]])
// CHECK:         return %[[CODE]] : i32
func.func @status(%n: index) -> i32 attributes {bngrad.returns_status} {
  %0 = memref.alloc(%n) : memref<?xf32>
  memref.dealloc %0 : memref<?xf32>
  %zero = arith.constant 0 : i32
  return %zero : i32
}

// Aligned by additional bytes.
// CHECK-LABEL: func.func @aligned(
// CHECK:         %[[PAD:.+]] = arith.constant 48 : i64
// CHECK:         %[[SUM:.+]] = arith.addi %[[BYTES:.+]], %[[PAD]]
// CHECK:         arith.maxui %[[BYTES]], %[[SUM]]
// CHECK:         arith.constant 63 : i64
// CHECK:         arith.constant -64 : i64
// CHECK:         llvm.inttoptr
func.func @aligned() -> i32 attributes {bngrad.returns_status} {
  %0 = memref.alloc() {alignment = 64 : i64} : memref<3xf32>
  memref.dealloc %0 : memref<3xf32>
  %zero = arith.constant 0 : i32
  return %zero : i32
}

// A call's status is returned, unless it is used.
// CHECK-LABEL: func.func @passes_on(
// CHECK-NOT:     llvm.alloca
// CHECK:         %[[CALL:.+]] = call @status(
// CHECK:         %[[FAILED:.+]] = arith.cmpi ne, %[[CALL]],
// CHECK:         cf.cond_br %[[FAILED]], ^[[FAIL:.+]](%[[CALL]] : i32), ^
// CHECK:       ^[[FAIL]](%[[CODE:.+]]: i32):
// CHECK-NEXT:    return %[[CODE]]
func.func @passes_on(%n: index) -> i32 attributes {bngrad.returns_status} {
  %0 = call @status(%n) : (index) -> i32
  %zero = arith.constant 0 : i32
  return %zero : i32
}
// CHECK-LABEL: func.func @looks(
// CHECK-NEXT:    %[[CALL:.+]] = call @status(
// CHECK-NEXT:    return %[[CALL]]
func.func @looks(%n: index) -> i32 {
  %0 = call @status(%n) : (index) -> i32
  return %0 : i32
}

// A failure ends the phase of its thread; the function returns after the op.
// CHECK-LABEL: func.func @threads(
// CHECK:         %[[SHARED:.+]] = llvm.alloca %{{.+}} x i32
// CHECK:         %[[HEAD:.+]] = llvm.alloca
// CHECK:         llvm.store %{{.+}}, %[[SHARED]]
// CHECK:         bngrad.parallel {
// CHECK:           %[[THREAD:.+]] = llvm.alloca
// CHECK:           llvm.store %[[THREAD]], %[[THREAD]]
// CHECK:           llvm.call @bngrad_allocate(%{{.+}}, %[[THREAD]])
// CHECK:           cf.cond_br %{{.+}}, ^[[FAIL:.+]](%{{.+}} : i32), ^
// CHECK:           bngrad.yield
// CHECK:         ^[[FAIL]](%[[CODE:.+]]: i32):
// CHECK:           llvm.store %[[CODE]], %[[SHARED]] atomic monotonic
// CHECK:           llvm.call @bngrad_free_all(%[[THREAD]])
// CHECK:           bngrad.yield
// CHECK:         %[[STATUS:.+]] = llvm.load %[[SHARED]]
// CHECK:         %[[FAILED:.+]] = arith.cmpi ne, %[[STATUS]],
// CHECK:         cf.cond_br %[[FAILED]], ^[[RETURN:.+]](%[[STATUS]] : i32), ^
// CHECK:       ^[[RETURN]](
// CHECK:         llvm.call @bngrad_free_all(%[[HEAD]])
func.func @threads(%n: index) -> i32 attributes {bngrad.returns_status} {
  bngrad.parallel {
  ^bb0(%thread: i32, %threads: i32):
    %0 = memref.alloc(%n) : memref<?xf32>
    memref.dealloc %0 : memref<?xf32>
    bngrad.yield
  }
  %zero = arith.constant 0 : i32
  return %zero : i32
}

// -----

// The function cannot return a status, so it aborts.
// CHECK:       llvm.func @abort()
// CHECK-LABEL: func.func @no_status(
// CHECK:         cf.cond_br %{{.+}}, ^[[FAIL:.+]](%{{.+}} : i32), ^
// CHECK:       ^[[FAIL]](
// CHECK-NEXT:    llvm.call @abort()
// CHECK-NEXT:    llvm.unreachable
func.func @no_status() -> memref<2xf32> {
  %0 = memref.alloc() : memref<2xf32>
  return %0 : memref<2xf32>
}

// -----

// Does nothing.
// CHECK-LABEL: module
// CHECK-NEXT:    func.func @nothing(
// CHECK-NEXT:      return
func.func @nothing(%m: memref<2xf32>) {
  return
}
