// RUN: bngrad-opt %s --bngrad-cpu-pipeline="export-c infer" --mlir-print-local-scope | FileCheck %s
// RUN: bngrad-opt %s --bngrad-cpu-pipeline="export-c" | FileCheck %s --check-prefix=WITHOUT

// NAME_infer checks the arguments, not the results, and stores the dynamic sizes
// of the results; data of results, threads and the workspace are not needed.
// CHECK:         llvm.mlir.global internal constant @join.infer.buffers.texts(
// CHECK-SAME:    arg0: expected size of dim 1 to be %lld, got %lld
// CHECK-SAME:    arg1: expected size of dim 1 to be %lld, got %lld
// CHECK-SAME:    arg1: expected an address that is a multiple of %lld, got a remainder of %lld
// CHECK-NOT:     result0
// CHECK-SAME:    "
// CHECK-LABEL: llvm.func @_mlir_ciface_join(
// CHECK-LABEL: llvm.func @join_infer(
// CHECK-SAME:    %[[X:.+]]: !llvm.ptr, %[[Y:.+]]: !llvm.ptr, %[[RESULT:.+]]: !llvm.ptr, %{{.+}}: !llvm.ptr, %{{.+}}: !llvm.ptr, %{{.+}}: i64) -> i32
// CHECK:         %[[SLOT:.+]] = llvm.getelementptr %[[RESULT]][0, 3, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)>
// CHECK-NEXT:    llvm.store %{{.+}}, %[[SLOT]] : i64, !llvm.ptr
// CHECK-NOT:     llvm.getelementptr %[[RESULT]]
// CHECK:         llvm.return
// WITHOUT-NOT: _infer
func.func @join(%x: tensor<?x2xf32>, %y: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = tensor.concat dim(0) %x, %y : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
