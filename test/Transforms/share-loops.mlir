// RUN: bngrad-opt %s --bngrad-share-loops --canonicalize --cse --split-input-file | FileCheck %s

// CHECK-LABEL: func @dynamic(
// CHECK-SAME:    %[[M:.+]]: memref<?xf32>, %[[FROM:.+]]: index, %[[TO:.+]]: index, %[[STEP:.+]]: index, %[[X:.+]]: f32)
// CHECK:         %[[SECOND:.+]] = arith.addi %[[FROM]], %[[STEP]]
// CHECK:         %[[HAS_SECOND:.+]] = arith.cmpi slt, %[[SECOND]], %[[TO]]
// CHECK:         bngrad.parallel if(%[[HAS_SECOND]]) {
// CHECK-NEXT:    ^bb0(%[[THREAD:.+]]: i32, %[[THREADS:.+]]: i32):
// CHECK-DAG:       %[[NUMBER:.+]] = arith.index_cast %[[THREAD]]
// CHECK-DAG:       %[[COUNT:.+]] = arith.index_cast %[[THREADS]]
// CHECK:           arith.divsi %{{.+}}, %[[COUNT]]
// The first part starts at the start, the last one ends at the end.
// CHECK:           %[[NEXT:.+]] = arith.addi %[[FROM]]
// CHECK:           %[[END:.+]] = arith.minsi %[[NEXT]], %[[TO]]
// CHECK:           %[[START:.+]] = arith.addi %[[FROM]]
// CHECK:           scf.for %[[I:.+]] = %[[START]] to %[[END]] step %[[STEP]] {
// CHECK-NEXT:        memref.store %[[X]], %[[M]][%[[I]]]
// CHECK:           bngrad.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    return
func.func @dynamic(%m: memref<?xf32>, %from: index, %to: index, %step: index, %x: f32) {
  scf.parallel (%i) = (%from) to (%to) step (%step) {
    memref.store %x, %m[%i] : memref<?xf32>
  }
  return
}

// -----

// Two static iterations: no test at run time.
// CHECK-LABEL: func @static(
// CHECK:         bngrad.parallel {
// CHECK-NOT:     scf.parallel
func.func @static(%m: memref<2xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.parallel (%i) = (%c0) to (%c2) step (%c1) {
    memref.store %x, %m[%i] : memref<2xf32>
  }
  return
}

// -----

// Consecutive loops: the threads are woken once, if either loop has enough work. Ops without effects between them
// are moved before.
// CHECK-LABEL: func @runs(
// CHECK-SAME:    %[[M:.+]]: memref<?xf32>, %[[N:.+]]: index, %[[K:.+]]: index
// CHECK-DAG:     %[[FIRST:.+]] = arith.cmpi sgt, %[[N]], %c1
// CHECK-DAG:     %[[SECOND:.+]] = arith.cmpi sgt, %[[K]], %c1
// CHECK:         %[[EITHER:.+]] = arith.ori %[[FIRST]], %[[SECOND]]
// CHECK:         bngrad.parallel if(%[[EITHER]]) {
// CHECK:           scf.for
// CHECK:             memref.store
// CHECK:           bngrad.yield
// CHECK-NEXT:    }, {
// CHECK:           scf.for
// CHECK:             memref.store
// CHECK:           bngrad.yield
// CHECK-NEXT:    }
// A load stays after the loop whose result it may read, and so does the next loop.
// CHECK:         memref.load
// CHECK:         bngrad.parallel
// CHECK:           bngrad.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    return
func.func @runs(%m: memref<?xf32>, %n: index, %k: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %x, %m[%i] : memref<?xf32>
  }
  %y = arith.negf %x : f32
  scf.parallel (%i) = (%c0) to (%k) step (%c1) {
    memref.store %y, %m[%i] : memref<?xf32>
  }
  %z = memref.load %m[%c0] : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%k) step (%c1) {
    memref.store %z, %m[%i] : memref<?xf32>
  }
  return
}

// -----

// The iterations of several dims are counted together. Loops with results, whose order of sums is fixed, stay, and so
// does a loop in another.
// CHECK-LABEL: func @others(
// CHECK-NOT:     scf.parallel
// CHECK:         bngrad.parallel {
// CHECK:           scf.for %[[I:.+]] = %{{.+}} to %{{.+}} step
// CHECK-DAG:         arith.remsi %[[I]], %c2
// CHECK-DAG:         arith.divsi %[[I]], %c2
// CHECK:             scf.parallel
// CHECK-NOT:       bngrad.parallel
// CHECK:           bngrad.yield
// CHECK-NEXT:    }
// CHECK:         scf.parallel {{.*}} init
// CHECK-NOT:     bngrad.parallel
// CHECK:         return
func.func @others(%m: memref<2x2xf32>, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%c2, %c2) step (%c1, %c1) {
    scf.parallel (%k) = (%c0) to (%c2) step (%c1) {
      memref.store %x, %m[%i, %j] : memref<2x2xf32>
    }
  }
  %0 = scf.parallel (%i) = (%c0) to (%c2) step (%c1) init(%x) -> f32 {
    scf.reduce(%x : f32) {
    ^bb0(%a: f32, %b: f32):
      %1 = arith.addf %a, %b : f32
      scf.reduce.return %1 : f32
    }
  }
  return %0 : f32
}

// -----

// The next loop does not run where memory ran out in the one before, which is the last phase of its op.
// CHECK-LABEL: func @temporary(
// CHECK:         bngrad.parallel
// CHECK:           memref.store
// CHECK:         }, {
// CHECK:           memref.alloc
// CHECK:           bngrad.yield
// CHECK-NEXT:    }
// CHECK:         bngrad.parallel
// CHECK-NOT:     }, {
// CHECK:         return
func.func @temporary(%m: memref<?xf32>, %n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %x, %m[%i] : memref<?xf32>
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %t = memref.alloc(%i) : memref<?xf32>
    memref.store %x, %t[%c0] : memref<?xf32>
    %y = memref.load %t[%c0] : memref<?xf32>
    memref.store %y, %m[%i] : memref<?xf32>
    memref.dealloc %t : memref<?xf32>
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %x, %m[%i] : memref<?xf32>
  }
  return
}
