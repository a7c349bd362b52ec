// Nontemporal stores in kernels get the cache operator of PTX for data that are not read again.

// RUN: bngrad-opt %s --pass-pipeline="builtin.module(gpu.module(bngrad-lower-streaming-stores))" | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: llvm.func @words(
  // CHECK-SAME:    %[[V:.+]]: vector<4xf32>, %[[P:.+]]: !llvm.ptr)
  // CHECK:         %[[W:.+]] = llvm.bitcast %[[V]] : vector<4xf32> to vector<4xi32>
  // CHECK:         %[[G:.+]] = llvm.addrspacecast %[[P]] : !llvm.ptr to !llvm.ptr<1>
  // CHECK:         %[[W0:.+]] = llvm.extractelement %[[W]]
  // CHECK:         %[[W1:.+]] = llvm.extractelement %[[W]]
  // CHECK:         %[[W2:.+]] = llvm.extractelement %[[W]]
  // CHECK:         %[[W3:.+]] = llvm.extractelement %[[W]]
  // CHECK:         %[[A:.+]] = llvm.getelementptr %[[G]][0]
  // CHECK:         nvvm.inline_ptx "st.global.cs.v4.b32 [$0], {$1, $2, $3, $4};" ro(%[[A]], %[[W0]], %[[W1]], %[[W2]], %[[W3]] :
  // CHECK-NOT:     llvm.store
  // CHECK:         llvm.return
  llvm.func @words(%v: vector<4xf32>, %p: !llvm.ptr) attributes {nvvm.kernel} {
    llvm.store %v, %p {alignment = 16 : i64, nontemporal} : vector<4xf32>, !llvm.ptr
    llvm.return
  }

  // Eight elements of 16 bits are four words; four are two, and two are one.
  // CHECK-LABEL: llvm.func @halves(
  // CHECK:         llvm.bitcast %{{.+}} : vector<8xbf16> to vector<4xi32>
  // CHECK:         st.global.cs.v4.b32
  // CHECK:         llvm.bitcast %{{.+}} : vector<4xbf16> to vector<2xi32>
  // CHECK:         st.global.cs.v2.b32 [$0], {$1, $2};
  // CHECK:         llvm.bitcast %{{.+}} : vector<2xbf16> to vector<1xi32>
  // CHECK:         st.global.cs.b32 [$0], $1;
  llvm.func @halves(%v: vector<8xbf16>, %w: vector<4xbf16>, %x: vector<2xbf16>, %p: !llvm.ptr<1>) {
    llvm.store %v, %p {alignment = 16 : i64, nontemporal} : vector<8xbf16>, !llvm.ptr<1>
    llvm.store %w, %p {alignment = 8 : i64, nontemporal} : vector<4xbf16>, !llvm.ptr<1>
    llvm.store %x, %p {alignment = 4 : i64, nontemporal} : vector<2xbf16>, !llvm.ptr<1>
    llvm.return
  }

  // 32 bytes are two accesses.
  // CHECK-LABEL: llvm.func @long(
  // CHECK:         %[[A:.+]] = llvm.getelementptr %{{.+}}[0]
  // CHECK:         st.global.cs.v4.b32 {{.*}} ro(%[[A]],
  // CHECK:         %[[B:.+]] = llvm.getelementptr %{{.+}}[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  // CHECK:         st.global.cs.v4.b32 {{.*}} ro(%[[B]],
  llvm.func @long(%v: vector<8xf32>, %p: !llvm.ptr<1>) {
    llvm.store %v, %p {alignment = 16 : i64, nontemporal} : vector<8xf32>, !llvm.ptr<1>
    llvm.return
  }

  // Other stores: not nontemporal, not aligned, no vector, no whole words, shared memory, scalable, volatile.
  // CHECK-LABEL: llvm.func @others(
  // CHECK-NOT:     nvvm.inline_ptx
  // CHECK-COUNT-7: llvm.store
  llvm.func @others(%v: vector<4xf32>, %e: f32, %b: vector<2xi8>, %n: vector<[4]xf32>, %p: !llvm.ptr, %s: !llvm.ptr<3>) {
    llvm.store %v, %p {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr
    llvm.store %v, %p {alignment = 8 : i64, nontemporal} : vector<4xf32>, !llvm.ptr
    llvm.store %e, %p {alignment = 4 : i64, nontemporal} : f32, !llvm.ptr
    llvm.store %b, %p {alignment = 2 : i64, nontemporal} : vector<2xi8>, !llvm.ptr
    llvm.store %v, %s {alignment = 16 : i64, nontemporal} : vector<4xf32>, !llvm.ptr<3>
    llvm.store %n, %p {alignment = 16 : i64, nontemporal} : vector<[4]xf32>, !llvm.ptr
    llvm.store volatile %v, %p {alignment = 16 : i64, nontemporal} : vector<4xf32>, !llvm.ptr
    llvm.return
  }

  // The address of an array of the caller: in a descriptor, and with an offset.
  // CHECK-LABEL: llvm.func @descriptor(
  // CHECK:         st.global.cs.v4.b32
  llvm.func @descriptor(%v: vector<4xf32>, %allocated: !llvm.ptr, %p: !llvm.ptr, %i: i64) attributes {nvvm.kernel} {
    %0 = llvm.mlir.poison : !llvm.struct<(ptr, ptr, i64)>
    %1 = llvm.insertvalue %allocated, %0[0] : !llvm.struct<(ptr, ptr, i64)>
    %2 = llvm.insertvalue %p, %1[1] : !llvm.struct<(ptr, ptr, i64)>
    %3 = llvm.insertvalue %i, %2[2] : !llvm.struct<(ptr, ptr, i64)>
    %4 = llvm.extractvalue %3[1] : !llvm.struct<(ptr, ptr, i64)>
    %5 = llvm.getelementptr %4[%i] : (!llvm.ptr, i64) -> !llvm.ptr, vector<4xf32>
    llvm.store %v, %5 {alignment = 16 : i64, nontemporal} : vector<4xf32>, !llvm.ptr
    llvm.return
  }

  // Addresses that may be in memory of the thread: of a function that a kernel calls, of an alloca, of either.
  // CHECK-LABEL: llvm.func @unknown(
  // CHECK-NOT:     nvvm.inline_ptx
  // CHECK:         llvm.store
  llvm.func @unknown(%v: vector<4xf32>, %p: !llvm.ptr) {
    llvm.store %v, %p {alignment = 16 : i64, nontemporal} : vector<4xf32>, !llvm.ptr
    llvm.return
  }
  // CHECK-LABEL: llvm.func @own_memory(
  // CHECK-NOT:     nvvm.inline_ptx
  // CHECK-COUNT-5: llvm.store
  llvm.func @own_memory(%v: vector<4xf32>, %p: !llvm.ptr, %unknown: !llvm.struct<(ptr)>, %cond: i1, %copied: !llvm.ptr {llvm.byval = vector<4xf32>}) attributes {nvvm.kernel} {
    %one = llvm.mlir.constant(1 : i64) : i64
    %own = llvm.alloca %one x vector<4xf32> : (i64) -> !llvm.ptr
    llvm.store %v, %own {alignment = 16 : i64, nontemporal} : vector<4xf32>, !llvm.ptr
    %0 = llvm.extractvalue %unknown[0] : !llvm.struct<(ptr)>
    llvm.store %v, %0 {alignment = 16 : i64, nontemporal} : vector<4xf32>, !llvm.ptr
    llvm.store %v, %copied {alignment = 16 : i64, nontemporal} : vector<4xf32>, !llvm.ptr
    // A part of the descriptor is replaced by one that was not built here.
    %1 = llvm.mlir.poison : !llvm.struct<(struct<(ptr)>)>
    %2 = llvm.insertvalue %p, %1[0, 0] : !llvm.struct<(struct<(ptr)>)>
    %3 = llvm.insertvalue %unknown, %2[0] : !llvm.struct<(struct<(ptr)>)>
    %4 = llvm.extractvalue %3[0, 0] : !llvm.struct<(struct<(ptr)>)>
    llvm.store %v, %4 {alignment = 16 : i64, nontemporal} : vector<4xf32>, !llvm.ptr
    llvm.cond_br %cond, ^next(%p : !llvm.ptr), ^next(%own : !llvm.ptr)
  ^next(%either: !llvm.ptr):
    llvm.store %v, %either {alignment = 16 : i64, nontemporal} : vector<4xf32>, !llvm.ptr
    llvm.return
  }
}
