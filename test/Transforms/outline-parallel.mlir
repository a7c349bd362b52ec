// RUN: bngrad-opt %s --bngrad-outline-parallel --split-input-file --verify-diagnostics | FileCheck %s

// Values are captured by a struct, constants are copied, and each phase is a function of its own.
// CHECK-DAG:   llvm.func @dlsym(
// CHECK-DAG:   llvm.func internal @bngrad_run_phases(
// CHECK:       llvm.mlir.global internal constant @f.phases() {{.*}} : !llvm.array<2 x ptr> {
// CHECK:         llvm.mlir.addressof @f.phase : !llvm.ptr
// CHECK:         llvm.mlir.addressof @f.phase_0 : !llvm.ptr
// CHECK-LABEL: llvm.func @f(
// CHECK-SAME:    %[[A:.+]]: !llvm.ptr, %[[X:.+]]: f32, %[[IF:.+]]: i1, %[[THREADS:.+]]: !llvm.ptr
// CHECK:         %[[CAPTURES:.+]] = llvm.alloca %{{.+}} x !llvm.struct<(ptr, f32)>
// CHECK:         %[[SLOT:.+]] = llvm.getelementptr %[[CAPTURES]][0, 0]
// CHECK-NEXT:    llvm.store %[[A]], %[[SLOT]]
// CHECK:         %[[NEXT:.+]] = llvm.getelementptr %[[CAPTURES]][0, 1]
// CHECK-NEXT:    llvm.store %[[X]], %[[NEXT]]
// CHECK-DAG:     %[[COUNT:.+]] = llvm.mlir.constant(2 : i64)
// CHECK-DAG:     %[[PHASES:.+]] = llvm.mlir.addressof @f.phases
// CHECK:         llvm.call @bngrad_run_phases(%[[THREADS]], %[[IF]], %[[PHASES]], %[[CAPTURES]], %[[COUNT]])
// CHECK-NEXT:    llvm.return
// CHECK:       llvm.func internal @f.phase{{(_0)?}}(%[[DATA:.+]]: !llvm.ptr, %[[I:.+]]: i32, %[[N:.+]]: i32)
// CHECK:         llvm.load %{{.+}} invariant : !llvm.ptr -> !llvm.ptr
// CHECK:         llvm.return
llvm.func @f(%a: !llvm.ptr, %x: f32, %if: i1, %threads: !llvm.ptr {bngrad.threads}) {
  %one = llvm.mlir.constant(1 : i32) : i32
  bngrad.parallel if(%if) {
  ^bb0(%i: i32, %n: i32):
    %slot = llvm.getelementptr %a[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    llvm.store %x, %slot : f32, !llvm.ptr
    bngrad.yield
  }, {
  ^bb0(%i: i32, %n: i32):
    %next = llvm.add %n, %one : i32
    llvm.br ^end(%next : i32)
  ^end(%m: i32):
    llvm.store %m, %a : i32, !llvm.ptr
    bngrad.yield
  }
  llvm.return
}

// -----

// Nothing is captured, there is no argument for threads, and the loop always has work.
// CHECK-LABEL: llvm.func @g(
// CHECK-DAG:     %[[NULL:.+]] = llvm.mlir.zero : !llvm.ptr
// CHECK-DAG:     %[[TRUE:.+]] = llvm.mlir.constant(true) : i1
// CHECK:         llvm.call @bngrad_run_phases(%{{.+}}, %[[TRUE]],
llvm.func @g() {
  bngrad.parallel {
  ^bb0(%i: i32, %n: i32):
    bngrad.yield
  }
  llvm.return
}

// -----

// The number of threads is that of the caller's pool, or of OpenMP's.
// CHECK:       llvm.func internal @bngrad_count_threads(
// CHECK-LABEL: llvm.func @count(
// CHECK-SAME:    %[[THREADS:.+]]: !llvm.ptr {bngrad.threads})
// CHECK:         %[[MAX:.+]] = llvm.mlir.constant(64 : i32)
// CHECK:         %[[N:.+]] = llvm.call @bngrad_count_threads(%[[THREADS]], %[[MAX]])
// CHECK:         llvm.return %[[N]]
llvm.func @count(%threads: !llvm.ptr {bngrad.threads}) -> i32 {
  %0 = bngrad.num_threads max 64
  llvm.return %0 : i32
}

// CHECK-LABEL: llvm.func @count_openmp(
// CHECK:         %[[NULL:.+]] = llvm.mlir.zero : !llvm.ptr
// CHECK:         llvm.call @bngrad_count_threads(%[[NULL]],
llvm.func @count_openmp() -> i32 {
  %0 = bngrad.num_threads max 7
  llvm.return %0 : i32
}

// -----

// What is not lowered is reported later.
// CHECK-LABEL: llvm.func @casts(
// CHECK:         bngrad.parallel
llvm.func @casts(%a: !llvm.ptr) {
  %0 = builtin.unrealized_conversion_cast %a : !llvm.ptr to index
  bngrad.parallel {
  ^bb0(%i: i32, %n: i32):
    bngrad.yield
  }
  llvm.return
}

// -----

// expected-error @below {{expected no symbol called 'dlsym', the name of a function needed to run parallel loops, got 'llvm.func'}}
llvm.func @dlsym(i32)
llvm.func @h() {
  bngrad.parallel {
  ^bb0(%i: i32, %n: i32):
    bngrad.yield
  }
  llvm.return
}
