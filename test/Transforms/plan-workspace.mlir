// RUN: bngrad-opt %s --bngrad-plan-workspace --cse --split-input-file | FileCheck %s
// RUN: bngrad-opt %s --bngrad-plan-workspace=device --cse --split-input-file | FileCheck %s --check-prefix=DEVICE

// Buffers one after another, at multiples of 64 bytes; one that is freed is used again.
// CHECK-LABEL: func.func @static(
// CHECK-SAME:    %[[A:.+]]: memref<20xf32>, %[[WORKSPACE:.+]]: memref<?xi8>) attributes {bngrad.workspace = @static.workspace}
// CHECK-DAG:     %[[C0:.+]] = arith.constant 0 : i64
// CHECK-DAG:     %[[C128:.+]] = arith.constant 128 : i64
// CHECK-DAG:     %[[FIRST:.+]] = arith.index_cast %[[C0]]
// CHECK-DAG:     %[[SECOND:.+]] = arith.index_cast %[[C128]]
// CHECK-DAG:     memref.view %[[WORKSPACE]][%[[FIRST]]][] : memref<?xi8> to memref<20xf32>
// CHECK-DAG:     memref.view %[[WORKSPACE]][%[[SECOND]]][] : memref<?xi8> to memref<3xi1>
// CHECK-DAG:     memref.view %[[WORKSPACE]][%[[FIRST]]][] : memref<?xi8> to memref<5xf64>
// CHECK-NOT:     memref.{{(de)?}}alloc
// CHECK-LABEL: func.func private @static.workspace(
// CHECK:         %[[BYTES:.+]] = arith.constant 192 : i64
// CHECK-NEXT:    return %[[BYTES]]
func.func @static(%a: memref<20xf32>) {
  %c0 = arith.constant 0 : index
  %x = arith.constant 1.0 : f64
  %true = arith.constant true
  %0 = memref.alloc() : memref<20xf32>
  memref.copy %a, %0 : memref<20xf32> to memref<20xf32>
  %1 = memref.alloc() : memref<3xi1>
  memref.dealloc %0 : memref<20xf32>
  %2 = memref.alloc() : memref<5xf64>
  memref.store %x, %2[%c0] : memref<5xf64>
  memref.store %true, %1[%c0] : memref<3xi1>
  memref.dealloc %1 : memref<3xi1>
  memref.dealloc %2 : memref<5xf64>
  return
}

// -----

// Sizes of arguments, and of views of them. The region's buffers start after those before it, and so do those after.
// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME:    %[[A:.+]]: memref<?x4xf32>, %[[FLAG:.+]]: i1, %[[WORKSPACE:.+]]: memref<?xi8>)
// CHECK:         memref.view %[[WORKSPACE]][%{{.+}}][%[[N:.+]]] : memref<?xi8> to memref<?xf32>
// CHECK:         scf.if %[[FLAG]] {
// CHECK:           %[[INNER:.+]] = arith.index_cast %[[END:.+]] : i64 to index
// CHECK:           memref.view %[[WORKSPACE]][%[[INNER]]][%[[N]]] : memref<?xi8> to memref<?xf64>
// CHECK:         }
// CHECK:         %[[OUTER:.+]] = arith.index_cast %[[END]] : i64 to index
// CHECK:         memref.view %[[WORKSPACE]][%[[OUTER]]][] : memref<?xi8> to memref<1xf32>
// CHECK-LABEL: func.func private @dynamic.workspace(
// CHECK-SAME:    %[[A:.+]]: memref<?x4xf32>, %[[FLAG:.+]]: i1) -> i64 {
// CHECK-NOT:     memref.{{[^dc]}}
// CHECK:         %[[FLAT:.+]] = memref.collapse_shape %[[A]]
// CHECK:         memref.dim %[[FLAT]], %c0
// CHECK:         arith.mului_extended
// CHECK:         scf.if %[[FLAG]] -> (i64) {
// CHECK:           arith.mului_extended
// CHECK:         } else {
// CHECK:         arith.maxui
// CHECK:         return
func.func @dynamic(%a: memref<?x4xf32>, %flag: i1) {
  %c0 = arith.constant 0 : index
  %x = arith.constant 1.0 : f32
  %y = arith.constant 1.0 : f64
  %flat = memref.collapse_shape %a [[0, 1]] : memref<?x4xf32> into memref<?xf32>
  %n = memref.dim %flat, %c0 : memref<?xf32>
  %0 = memref.alloc(%n) : memref<?xf32>
  memref.store %x, %0[%c0] : memref<?xf32>
  scf.if %flag {
    %1 = memref.alloc(%n) : memref<?xf64>
    memref.store %y, %1[%c0] : memref<?xf64>
    memref.dealloc %1 : memref<?xf64>
  }
  %2 = memref.alloc() : memref<1xf32>
  memref.store %x, %2[%c0] : memref<1xf32>
  memref.dealloc %2 : memref<1xf32>
  memref.dealloc %0 : memref<?xf32>
  return
}

// -----

// Each iteration of a parallel loop has its own.
// CHECK-LABEL: func.func @threads(
// CHECK-SAME:    %[[N:.+]]: index, %[[WORKSPACE:.+]]: memref<?xi8>)
// CHECK:         scf.parallel (%[[I:.+]]) = (%c1) to (%[[N]]) step (%c2) {
// CHECK-DAG:       %[[FIRST:.+]] = arith.subi %[[I]], %c1
// CHECK-DAG:       %[[ITERATION:.+]] = arith.divsi %[[FIRST]], %c2
// CHECK-DAG:       %[[NUMBER:.+]] = arith.index_cast %[[ITERATION]]
// CHECK-DAG:       arith.muli {{.*}}%[[NUMBER]]
// CHECK:           memref.view %[[WORKSPACE]]
// CHECK-LABEL: func.func private @threads.workspace(
// CHECK:         arith.ceildivui
// CHECK:         arith.mului_extended
func.func @threads(%n: index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %x = arith.constant 1.0 : f32
  scf.parallel (%i) = (%c1) to (%n) step (%c2) {
    %0 = memref.alloc() : memref<4xf32>
    memref.store %x, %0[%c1] : memref<4xf32>
    memref.dealloc %0 : memref<4xf32>
  }
  return
}

// -----

// What stays: a size that is data, a buffer of a loop, one that is passed on, one in other memory, one that a function
// needs which is called.
// CHECK-LABEL: func.func @stays(
// CHECK-NOT:     memref.view
// CHECK-COUNT-5: memref.alloc
// CHECK-NOT:     memref.view
// CHECK-NOT:   @stays.workspace
// CHECK-LABEL: func.func private @called(
// CHECK:         memref.alloc
// CHECK-NOT:   @called.workspace
func.func @stays(%a: memref<?xindex>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %size = memref.load %a[%c0] : memref<?xindex>
  %0 = memref.alloc(%size) : memref<?xf32>
  scf.for %i = %c0 to %n step %c1 {
    %1 = memref.alloc(%i) : memref<?xf32>
    memref.dealloc %1 : memref<?xf32>
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %2 = memref.alloc(%i) : memref<?xf32>
    memref.dealloc %2 : memref<?xf32>
  }
  %3 = memref.alloc() : memref<4xf32>
  call @called(%3) : (memref<4xf32>) -> ()
  %4 = memref.alloc() : memref<4xf32, 1>
  memref.dealloc %4 : memref<4xf32, 1>
  memref.dealloc %3 : memref<4xf32>
  memref.dealloc %0 : memref<?xf32>
  return
}
func.func private @called(%b: memref<4xf32>) {
  %0 = memref.alloc() : memref<4xf32>
  memref.copy %0, %b : memref<4xf32> to memref<4xf32>
  memref.dealloc %0 : memref<4xf32>
  return
}

// -----

// A loop that has as many iterations as there are threads gets memory for the most there can be.
// CHECK-LABEL: func.func @threads(
// CHECK:         bngrad.num_threads max 64
// CHECK:         memref.view
// CHECK-LABEL: func.func private @threads.workspace(
// CHECK-NOT:     bngrad.num_threads
// CHECK:         arith.constant 64 : i32
// CHECK:         return
func.func @threads(%a: memref<20xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = bngrad.num_threads max 64
  %shares = arith.index_cast %n : i32 to index
  scf.parallel (%i) = (%c0) to (%shares) step (%c1) {
    %0 = memref.alloc() : memref<20xf32>
    memref.copy %a, %0 : memref<20xf32> to memref<20xf32>
    memref.copy %0, %a : memref<20xf32> to memref<20xf32>
    memref.dealloc %0 : memref<20xf32>
  }
  return
}

// -----

// Memory of the device is planned alone, if it is asked for. What waited for it waits for what it waited for.
// CHECK-LABEL:  func.func @device(
// CHECK-COUNT-2:  gpu.alloc async
// DEVICE-LABEL: func.func @device(
// DEVICE-SAME:    %[[A:.+]]: memref<?xf32>, %[[WORKSPACE:.+]]: memref<?xi8>)
// DEVICE:         memref.alloc() : memref<4xf32>
// DEVICE:         %[[START:.+]] = gpu.wait async
// DEVICE:         %[[FIRST:.+]] = memref.view %[[WORKSPACE]]
// DEVICE:         %[[SECOND:.+]] = memref.view %[[WORKSPACE]]
// DEVICE:         %[[COPIED:.+]] = gpu.memcpy async [%[[START]]] %[[FIRST]], %[[A]]
// DEVICE:         gpu.memcpy async [%[[COPIED]]] %[[SECOND]], %[[FIRST]]
// DEVICE-NOT:     gpu.{{(de)?}}alloc
// DEVICE:         gpu.wait [%[[START]]]
func.func @device(%a: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?xf32>
  %host = memref.alloc() : memref<4xf32>
  memref.dealloc %host : memref<4xf32>
  %start = gpu.wait async
  %0, %t0 = gpu.alloc async [%start] (%n) : memref<?xf32>
  %1, %t1 = gpu.alloc async [%start] (%n) : memref<?xf32>
  %t2 = gpu.memcpy async [%t1] %0, %a : memref<?xf32>, memref<?xf32>
  %t3 = gpu.memcpy async [%t2] %1, %0 : memref<?xf32>, memref<?xf32>
  %t4 = gpu.dealloc async [%start] %0 : memref<?xf32>
  %t5 = gpu.dealloc async [%t4] %1 : memref<?xf32>
  gpu.wait [%t5]
  return
}

// -----

// Memory that the host shares, or that two ops wait for, stays.
// DEVICE-LABEL: func.func @stays(
// DEVICE-NOT:     memref<?xi8>
// DEVICE:         gpu.alloc host_shared
// DEVICE:         gpu.alloc async [%{{.+}}, %{{.+}}]
func.func @stays() {
  %0 = gpu.alloc host_shared () : memref<4xf32>
  gpu.dealloc %0 : memref<4xf32>
  %s = gpu.wait async
  %t = gpu.wait async
  %1, %a = gpu.alloc async [%s, %t] () : memref<4xf32>
  %b = gpu.dealloc async [%a] %1 : memref<4xf32>
  gpu.wait [%b]
  return
}

// -----

// A choice between a buffer and an argument, whose condition the size depends on.
// CHECK-LABEL: func.func @choice(
// CHECK-NOT:     memref.{{(de)?}}alloc
// CHECK-LABEL: func.func private @choice.workspace(
// CHECK:         arith.select
// CHECK:         return
func.func @choice(%a: memref<?xf32>, %flag: i1, %n: index) {
  %c0 = arith.constant 0 : index
  %x = arith.constant 1.0 : f32
  %size = arith.select %flag, %c0, %n : index
  %0 = memref.alloc(%size) : memref<?xf32>
  %1 = arith.select %flag, %a, %0 : memref<?xf32>
  memref.store %x, %1[%c0] : memref<?xf32>
  memref.dealloc %0 : memref<?xf32>
  return
}
