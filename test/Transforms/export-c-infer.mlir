// RUN: bngrad-opt %s --bngrad-cpu-pipeline="export-c infer" --mlir-print-local-scope | FileCheck %s
// RUN: bngrad-opt %s --bngrad-cpu-pipeline="export-c" | FileCheck %s --check-prefix=WITHOUT

// NAME_infer checks the arguments, and stores the dynamic sizes of the results;
// data, threads and the workspace are not needed for that.
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
