// Functions on device memory have one allocation for each group of kernels, in the branch that needs it.

// RUN: bngrad-opt %s --bngrad-merge-allocations --canonicalize --cse --split-input-file | FileCheck %s

// Buffers one after another, at multiples of 256 bytes; one free, where the last one was.
// CHECK-LABEL: func.func @static(
// CHECK-DAG:     %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:     %[[C768:.+]] = arith.constant 768 : index
// CHECK-DAG:     %[[C1024:.+]] = arith.constant 1024 : index
// CHECK:         %[[STREAM:.+]] = gpu.wait async
// CHECK-NEXT:    %[[ARENA:.+]], %{{.+}} = gpu.alloc async [%[[STREAM]]] (%[[C1024]]) : memref<?xi8>
// CHECK-NEXT:    %[[FIRST:.+]] = memref.view %[[ARENA]][%[[C0]]][] : memref<?xi8> to memref<65xf64>
// CHECK-NEXT:    %[[SECOND:.+]] = memref.view %[[ARENA]][%[[C768]]][] : memref<?xi8> to memref<3xi1>
// CHECK-NEXT:    gpu.memset async [%[[STREAM]]] %[[FIRST]]
// CHECK-NEXT:    gpu.memset async [%[[STREAM]]] %[[SECOND]]
// CHECK-NEXT:    %[[END:.+]] = gpu.dealloc async [%[[STREAM]]] %[[ARENA]]
// CHECK-NEXT:    gpu.wait [%[[END]]]
// CHECK-NEXT:    return
func.func @static(%x: f64, %flag: i1) {
  %stream = gpu.wait async
  %0, %t0 = gpu.alloc async [%stream] () : memref<65xf64>
  %1, %t1 = gpu.alloc async [%stream] () : memref<3xi1>
  %t2 = gpu.memset async [%stream] %0, %x : memref<65xf64>, f64
  %t3 = gpu.memset async [%stream] %1, %flag : memref<3xi1>, i1
  %t4 = gpu.dealloc async [%stream] %1 : memref<3xi1>
  %t5 = gpu.dealloc async [%stream] %0 : memref<65xf64>
  gpu.wait [%t5]
  return
}

// -----

// Sizes that are computed later are computed before the allocation; no product of sizes wraps.
// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME:    %[[A:.+]]: memref<?x4xf32>, %[[N:.+]]: index
// CHECK:         %[[STREAM:.+]] = gpu.wait async
// CHECK:         %[[M:.+]] = memref.dim %[[A]]
// CHECK:         %[[SHARE:.+]] = arith.muli %[[M]], %[[N]] : index
// CHECK-COUNT-3: arith.mului_extended
// CHECK:         %[[ARENA:.+]], %{{.+}} = gpu.alloc async [%[[STREAM]]] (%{{.+}}) : memref<?xi8>
// CHECK-NEXT:    memref.view %[[ARENA]][%c0][%[[N]]] : memref<?xi8> to memref<?xf32>
// CHECK:         memref.view %[[ARENA]][%{{.+}}][%[[SHARE]], %[[N]]] : memref<?xi8> to memref<?x2x?xf32>
// CHECK-NOT:     gpu.alloc
// CHECK:         return
func.func @dynamic(%a: memref<?x4xf32>, %n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %stream = gpu.wait async
  %0, %t0 = gpu.alloc async [%stream] (%n) : memref<?xf32>
  %t1 = gpu.memset async [%stream] %0, %x : memref<?xf32>, f32
  %m = memref.dim %a, %c0 : memref<?x4xf32>
  %share = arith.muli %m, %n : index
  %1, %t2 = gpu.alloc async [%stream] (%share, %n) : memref<?x2x?xf32>
  %t3 = gpu.memset async [%stream] %1, %x : memref<?x2x?xf32>, f32
  %t4 = gpu.dealloc async [%stream] %0 : memref<?xf32>
  %t5 = gpu.dealloc async [%stream] %1 : memref<?x2x?xf32>
  gpu.wait [%t5]
  return
}

// -----

// Buffers that are not merged: memory that the host shares, that another stream allocates or frees, whose size is data,
// that is freed in another block, or that may be that of a buffer which is free.
// CHECK-LABEL:   func.func @stays(
// CHECK:           gpu.alloc async [%[[STREAM:.+]]] () : memref<4xf32>
// CHECK:           gpu.alloc async [%[[STREAM]]] host_shared () : memref<8xf32>
// CHECK:           gpu.alloc async [%[[OTHER:.+]]] () : memref<16xf32>
// CHECK:           gpu.alloc async [%[[STREAM]]] () : memref<32xf32>
// CHECK:           gpu.alloc async [%[[STREAM]]] (%{{.+}}) : memref<?xf32>
// CHECK:           gpu.alloc async [%[[STREAM]]] () : memref<64xf32>
// CHECK:           gpu.dealloc async
// CHECK:           gpu.alloc async [%[[STREAM]]] () : memref<128xf32>
// CHECK-NOT:       memref.view
// CHECK:           return
func.func @stays(%sizes: memref<index>, %flag: i1, %x: f32) {
  %stream = gpu.wait async
  %other = gpu.wait async
  %0, %t0 = gpu.alloc async [%stream] () : memref<4xf32>
  %a0 = gpu.memset async [%stream] %0, %x : memref<4xf32>, f32
  %1, %t1 = gpu.alloc async [%stream] host_shared () : memref<8xf32>
  %2, %t2 = gpu.alloc async [%other] () : memref<16xf32>
  %a2 = gpu.memset async [%other] %2, %x : memref<16xf32>, f32
  %3, %t3 = gpu.alloc async [%stream] () : memref<32xf32>
  %a3 = gpu.memset async [%stream] %3, %x : memref<32xf32>, f32
  %size = memref.load %sizes[] : memref<index>
  %4, %t4 = gpu.alloc async [%stream] (%size) : memref<?xf32>
  %a4 = gpu.memset async [%stream] %4, %x : memref<?xf32>, f32
  %5, %t5 = gpu.alloc async [%stream] () : memref<64xf32>
  %a5 = gpu.memset async [%stream] %5, %x : memref<64xf32>, f32
  scf.if %flag {
    %f5 = gpu.dealloc async [%stream] %5 : memref<64xf32>
  }
  %f4 = gpu.dealloc async [%stream] %4 : memref<?xf32>
  %6, %t6 = gpu.alloc async [%stream] () : memref<128xf32>
  %a6 = gpu.memset async [%stream] %6, %x : memref<128xf32>, f32
  %f0 = gpu.dealloc async [%stream] %0 : memref<4xf32>
  %f1 = gpu.dealloc async [%stream] %1 : memref<8xf32>
  %f2 = gpu.dealloc async [%other] %2 : memref<16xf32>
  %f3 = gpu.dealloc async [%other] %3 : memref<32xf32>
  %f6 = gpu.dealloc async [%stream] %6 : memref<128xf32>
  gpu.wait [%f2]
  gpu.wait [%f6]
  return
}

// -----

// A buffer that nothing uses goes. The wait has another token than that of a wait, which upstream folds away.
// CHECK-LABEL: func.func @unused(
// CHECK-NOT:     gpu.alloc
// CHECK:         %[[SET:.+]] = gpu.memset async
// CHECK-NEXT:    gpu.wait [%[[SET]]]
// CHECK-NEXT:    return
func.func @unused(%a: memref<4xf32>, %x: f32) {
  %stream = gpu.wait async
  %0, %t0 = gpu.alloc async [%stream] () : memref<4xf32>
  %t1 = gpu.memset async [%stream] %a, %x : memref<4xf32>, f32
  %t2 = gpu.dealloc async [%stream] %0 : memref<4xf32>
  gpu.wait [%t2]
  return
}

// -----

// Buffers that one branch alone uses are its own, with those that it allocates. The other one allocates nothing.
// CHECK-LABEL: func.func @branch(
// CHECK:         %[[STREAM:.+]] = gpu.wait async
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      %[[SET:.+]] = gpu.memset async [%[[STREAM]]]
// CHECK-NEXT:      gpu.wait [%[[SET]]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[ARENA:.+]], %{{.+}} = gpu.alloc async [%[[STREAM]]] (%c768) : memref<?xi8>
// CHECK-COUNT-3:   memref.view %[[ARENA]]
// CHECK-COUNT-3:   gpu.memset
// CHECK-NEXT:      %[[END:.+]] = gpu.dealloc async [%[[STREAM]]] %[[ARENA]]
// CHECK-NEXT:      gpu.wait [%[[END]]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return
func.func @branch(%a: memref<4xf32>, %flag: i1, %x: f32) {
  %stream = gpu.wait async
  %0, %t0 = gpu.alloc async [%stream] () : memref<4xf32>
  %1, %t1 = gpu.alloc async [%stream] () : memref<5xf32>
  scf.if %flag {
    %t2 = gpu.memset async [%stream] %a, %x : memref<4xf32>, f32
  } else {
    %2, %t3 = gpu.alloc async [%stream] () : memref<6xf32>
    %t4 = gpu.memset async [%stream] %0, %x : memref<4xf32>, f32
    %t5 = gpu.memset async [%stream] %1, %x : memref<5xf32>, f32
    %t6 = gpu.memset async [%stream] %2, %x : memref<6xf32>, f32
    %t7 = gpu.dealloc async [%stream] %2 : memref<6xf32>
  }
  %t8 = gpu.dealloc async [%stream] %0 : memref<4xf32>
  %t9 = gpu.dealloc async [%stream] %1 : memref<5xf32>
  gpu.wait [%t9]
  return
}

// -----

// Both branches use the first buffer, and a merged one stays outside.
// CHECK-LABEL: func.func @both(
// CHECK:         %[[ARENA:.+]], %{{.+}} = gpu.alloc
// CHECK:         scf.if
// CHECK-NOT:       gpu.{{alloc|wait|dealloc}}
// CHECK:         } else {
// CHECK-COUNT-2:   gpu.memset
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[END:.+]] = gpu.dealloc async [%{{.+}}] %[[ARENA]]
// CHECK-NEXT:    gpu.wait [%[[END]]]
// CHECK-NEXT:    return
func.func @both(%flag: i1, %x: f32) {
  %stream = gpu.wait async
  %0, %t0 = gpu.alloc async [%stream] () : memref<4xf32>
  %1, %t1 = gpu.alloc async [%stream] () : memref<5xf32>
  scf.if %flag {
    %t2 = gpu.memset async [%stream] %0, %x : memref<4xf32>, f32
  } else {
    %t3 = gpu.memset async [%stream] %0, %x : memref<4xf32>, f32
    %t4 = gpu.memset async [%stream] %1, %x : memref<5xf32>, f32
  }
  %t5 = gpu.dealloc async [%stream] %0 : memref<4xf32>
  %t6 = gpu.dealloc async [%stream] %1 : memref<5xf32>
  gpu.wait [%t6]
  return
}

// -----

// A branch that ends without an op of the stream could not wait; nor can one before other ops of the stream, or before
// those of the host.
// CHECK-LABEL: func.func @no_branch(
// CHECK-COUNT-2: gpu.wait async
// CHECK:         scf.if
// CHECK-NOT:       gpu.wait
// CHECK:         gpu.wait [
// CHECK:         gpu.wait async
// CHECK:         scf.if
// CHECK-NOT:       gpu.wait
// CHECK:         memref.store
// CHECK-NEXT:    %[[END:.+]] = gpu.dealloc
// CHECK-NEXT:    gpu.wait [%[[END]]]
// CHECK-NEXT:    return
func.func @no_branch(%a: memref<4xf32>, %flag: i1, %x: f32, %host: memref<f32>) {
  %stream = gpu.wait async
  %s = gpu.wait async
  %0, %t0 = gpu.alloc async [%stream] () : memref<4xf32>
  scf.if %flag {
    %t1 = gpu.memset async [%s] %a, %x : memref<4xf32>, f32
    gpu.wait [%t1]
  } else {
    %t2 = gpu.memset async [%stream] %0, %x : memref<4xf32>, f32
  }
  %t3 = gpu.dealloc async [%stream] %0 : memref<4xf32>
  gpu.wait [%t3]
  %next = gpu.wait async
  %1, %t4 = gpu.alloc async [%next] () : memref<4xf32>
  scf.if %flag {
    %t5 = gpu.memset async [%next] %a, %x : memref<4xf32>, f32
  } else {
    %t6 = gpu.memset async [%next] %1, %x : memref<4xf32>, f32
  }
  memref.store %x, %host[] : memref<f32>
  %t7 = gpu.dealloc async [%next] %1 : memref<4xf32>
  gpu.wait [%t7]
  return
}

// A size that is not computed safely before its guard stays where it is, and so does its buffer.
// CHECK-LABEL: func.func @guarded_size(
// CHECK:         gpu.alloc
// CHECK:         cf.assert
// CHECK:         arith.divui
// CHECK:         gpu.alloc
// CHECK:         return
func.func @guarded_size(%n: index, %z: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %stream = gpu.wait async
  %0, %t0 = gpu.alloc async [%stream] (%n) : memref<?xf32>
  %t1 = gpu.memset async [%stream] %0, %x : memref<?xf32>, f32
  %fine = arith.cmpi ne, %z, %c0 : index
  cf.assert %fine, "expected a size"
  %share = arith.divui %n, %z : index
  %1, %t2 = gpu.alloc async [%stream] (%share) : memref<?xf32>
  %t3 = gpu.memset async [%stream] %1, %x : memref<?xf32>, f32
  %t4 = gpu.dealloc async [%stream] %0 : memref<?xf32>
  %t5 = gpu.dealloc async [%stream] %1 : memref<?xf32>
  gpu.wait [%t5]
  return
}
