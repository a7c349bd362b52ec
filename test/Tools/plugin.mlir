// The mlir-opt of the packages loads the dialect, the passes and the pipelines, and produces the IR that bngrad-opt does.

// The plugin has sanitizers then, and mlir-opt has none.
// UNSUPPORTED: sanitizer

// DEFINE: %{plugin} = %bngrad_obj_root/lib/libBNGradPlugin.so
// DEFINE: %{stock} = %llvm_prefix/bin/mlir-opt --load-dialect-plugin=%{plugin} --load-pass-plugin=%{plugin}
// DEFINE: %{own} = bngrad-opt
// DEFINE: %{passes} =
// DEFINE: %{compare} = %{stock} %s --pass-pipeline='%{passes}' -o %t/stock.mlir && \
// DEFINE:   %{own} %s --pass-pipeline='%{passes}' -o %t/own.mlir && diff %t/stock.mlir %t/own.mlir

// RUN: rm -rf %t && mkdir %t
// RUN: %{stock} %s --verify-roundtrip | FileCheck %s --check-prefix=OP
// OP: bngrad.batch_norm_backward

// RUN: %{stock} %s --pass-pipeline='builtin.module(func.func(bngrad-decompose))' | FileCheck %s --check-prefix=LINALG
// RUN: %{stock} %s --pass-pipeline='builtin.module(bngrad-to-linalg)' | FileCheck %s --check-prefix=LINALG
// LINALG-NOT: bngrad.
// LINALG: linalg.generic
// LINALG-NOT: bngrad.

// REDEFINE: %{passes} = builtin.module(bngrad-to-linalg{stop-after=decompose})
// RUN: %{compare}
// REDEFINE: %{passes} = builtin.module(bngrad-cpu-pipeline)
// RUN: %{compare}
// RUN: FileCheck %s --input-file=%t/stock.mlir --check-prefix=CPU
// CPU-NOT: {{bngrad|linalg}}.
// CPU: llvm.func @training(
// REDEFINE: %{passes} = builtin.module(bngrad-cpu-pipeline{vector-bits=256 threads=2 export-c=true})
// RUN: %{compare}
// RUN: FileCheck %s --input-file=%t/stock.mlir --check-prefix=C
// C: llvm.func @_mlir_ciface_training(
// REDEFINE: %{passes} = builtin.module(bngrad-cuda-pipeline{chip=sm_80 stop-after=apply})
// RUN: %{compare}

// The properties of kernels contain the time of each step.
// REDEFINE: %{passes} = builtin.module(bngrad-cuda-pipeline{chip=sm_80,sm_90 export-c=true})
// RUN: %{stock} %s --pass-pipeline='%{passes}' | sed -e 's/TimeInMs = [0-9]*//g' > %t/stock.mlir
// RUN: %{own} %s --pass-pipeline='%{passes}' | sed -e 's/TimeInMs = [0-9]*//g' > %t/own.mlir
// RUN: diff %t/stock.mlir %t/own.mlir
// RUN: FileCheck %s --input-file=%t/stock.mlir --check-prefix=CUDA
// CUDA: gpu.binary @{{.*}} <#bngrad.select_by_device>
// CUDA-SAME: .target sm_80{{.*}}.visible .entry{{.*}}.target sm_90
// CUDA: llvm.func @_mlir_ciface_training(

// Errors of options and of ops are the same.
// RUN: not %{stock} %s --pass-pipeline='builtin.module(bngrad-cuda-pipeline{chip=sm_1})' 2>&1 | FileCheck %s --check-prefix=CHIP
// CHIP: sm_1
// RUN: sed -e 's/epsilon = 1.0e-5/feature_dims = array<i64: 2>, epsilon = 1.0e-5/' %s > %t/wrong.mlir
// RUN: not %{stock} %t/wrong.mlir 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: 'bngrad.batch_norm_backward' op expected feature_dims[0] to be in [0, 2), got 2

// Gradients of dialects that mlir-opt does not have are imported as unregistered ops.
// RUN: %{stock} %S/../Transforms/import.mlir --allow-unregistered-dialect --split-input-file \
// RUN:   --pass-pipeline='builtin.module(func.func(bngrad-import))' | FileCheck %S/../Transforms/import.mlir

func.func @training(%dy: tensor<8x3xf32>, %x: tensor<8x3xf32>, %scale: tensor<3xf32>, %mean: tensor<3xf32>,
                    %variance: tensor<3xf32>) -> (tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward
      grad_output(%dy : tensor<8x3xf32>) input(%x : tensor<8x3xf32>) scale(%scale : tensor<3xf32>)
      mean(%mean : tensor<3xf32>) variance(%variance : tensor<3xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %dx, %dscale, %doffset : tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>
}
