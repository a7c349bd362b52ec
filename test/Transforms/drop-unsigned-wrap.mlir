// Indices times negative strides wrap as unsigned integers, in functions and in kernels.

// RUN: bngrad-opt %s --bngrad-drop-unsigned-wrap | FileCheck %s

// CHECK-LABEL: llvm.func @f(
// CHECK-NEXT:    llvm.mul %{{.+}}, %{{.+}} overflow<nsw> : i64
// CHECK-NEXT:    llvm.add %{{.+}}, %{{.+}} : i64
// CHECK-NEXT:    llvm.getelementptr inbounds %
llvm.func @f(%index: i64, %stride: i64, %p: !llvm.ptr) -> !llvm.ptr {
  %0 = llvm.mul %index, %stride overflow<nsw, nuw> : i64
  %1 = llvm.add %0, %stride overflow<nuw> : i64
  %2 = llvm.getelementptr inbounds|nuw %p[%1] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.return %2 : !llvm.ptr
}

gpu.module @kernels {
  // CHECK-LABEL: llvm.func @kernel(
  // CHECK-NEXT:    llvm.mul %{{.+}}, %{{.+}} overflow<nsw> : i64
  llvm.func @kernel(%index: i64, %stride: i64) -> i64 {
    %0 = llvm.mul %index, %stride overflow<nsw, nuw> : i64
    llvm.return %0 : i64
  }
}
