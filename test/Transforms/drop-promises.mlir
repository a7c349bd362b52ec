// RUN: bngrad-opt %s --bngrad-drop-promises --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @attributes(
// CHECK-SAME:    %{{[^:]+}}: index, %{{[^:]+}}: memref<?xf32> {bufferization.writable = false})
// CHECK-SAME:    -> (index {a.b}) attributes {c.d} {
func.func @attributes(%i: index {llvm.range = #llvm.constant_range<i64, 0, 10>},
                      %m: memref<?xf32> {llvm.noalias, bufferization.writable = false}) -> (index {llvm.noundef, a.b})
    attributes {c.d, no_inline, passthrough = ["willreturn"], llvm.emit_c_interface, no_unwind} {
  return %i : index
}

// -----

// CHECK-LABEL: func.func @flags(
// CHECK-NEXT:    arith.addi %{{.+}}, %{{.+}} : index
// CHECK-NEXT:    arith.shli %{{.+}}, %{{.+}} : index
// CHECK-NEXT:    arith.trunci %{{.+}} : i64 to i32
// CHECK-NEXT:    arith.divsi %{{.+}}, %{{.+}} : index
// CHECK-NEXT:    arith.divui %{{.+}}, %{{.+}} : index
// CHECK-NEXT:    arith.shrsi %{{.+}}, %{{.+}} : index
// CHECK-NEXT:    arith.shrui %{{.+}}, %{{.+}} : index
// CHECK-NEXT:    return
func.func @flags(%i: index, %k: index, %x: i64) {
  %0 = arith.addi %i, %k overflow<nsw> : index
  %1 = arith.shli %i, %k overflow<nsw, nuw> : index
  %2 = arith.trunci %x overflow<nuw> : i64 to i32
  %3 = arith.divsi %i, %k exact : index
  %4 = arith.divui %i, %k exact : index
  %5 = arith.shrsi %i, %k exact : index
  %6 = arith.shrui %i, %k exact : index
  return
}

// -----

// Poison has all bits set. No lane is poison, and no other type of poison is replaced.
// CHECK-LABEL: func.func @poison(
// CHECK-DAG:     %[[INDEX:.+]] = arith.constant -1 : index
// CHECK-DAG:     %[[INT:.+]] = arith.constant dense<-1> : vector<2xi32>
// CHECK-DAG:     %[[FLOAT:.+]] = arith.constant 0xFFFFFFFF : f32
// CHECK-DAG:     %[[POINTER:.+]] = ub.poison : memref<?xf32>
// CHECK-DAG:     vector.shuffle %{{.+}}, %{{.+}} [0, 2] : vector<2xi32>, vector<2xi32>
// CHECK-DAG:     %[[EXTRACTED:.+]] = arith.constant -1 : i32
// CHECK-DAG:     %[[INSERTED:.+]] = arith.constant dense<-1> : vector<2xi32>
// CHECK:         return %[[INDEX]], %[[INT]], %[[FLOAT]], %[[POINTER]], %{{.+}}, %[[EXTRACTED]], %[[INSERTED]] :
func.func @poison(%v: vector<2xi32>, %x: i32)
    -> (index, vector<2xi32>, f32, memref<?xf32>, vector<2xi32>, i32, vector<2xi32>) {
  %0 = ub.poison : index
  %1 = ub.poison : vector<2xi32>
  %2 = ub.poison : f32
  %3 = ub.poison : memref<?xf32>
  %4 = vector.shuffle %v, %v [-1, 2] : vector<2xi32>, vector<2xi32>
  %5 = vector.extract %v[-1] : i32 from vector<2xi32>
  %6 = vector.insert %x, %v[-1] : i32 into vector<2xi32>
  return %0, %1, %2, %3, %4, %5, %6 : index, vector<2xi32>, f32, memref<?xf32>, vector<2xi32>, i32, vector<2xi32>
}

// -----

// Affine ops are lowered, without a promise not to overflow; dead code stays.
// CHECK-LABEL: func.func @affine(
// CHECK-NOT:     affine
// CHECK-NOT:     overflow
// CHECK:         arith.muli
// CHECK:         memref.load
// CHECK:         return
func.func @affine(%m: memref<?xf32>, %i: index) {
  %0 = affine.apply affine_map<(d0) -> (d0 * 4)>(%i)
  %1 = affine.linearize_index disjoint [%0, %i] by (3, 5) : index
  %2:2 = affine.delinearize_index %1 into (3, 5) : index, index
  %3 = affine.load %m[%2#0] : memref<?xf32>
  return
}
