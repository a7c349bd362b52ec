// A C program calls compiled functions, linked from an object file and loaded from a shared object, and compares with
// its own computation in float64.

// DEFINE: %{source} = %S/Inputs/gradients.mlir
// DEFINE: %{cc} = %llvm_prefix/bin/clang -Wall -Wextra -pedantic -Werror -O1 -I%t

// RUN: rm -rf %t && mkdir %t
// RUN: bngrad-compile %{source} -o %t/gradients.o --header=%t/gradients.h
// RUN: %{cc} -std=c11 %S/Inputs/check.c %t/gradients.o -lm -o %t/linked
// RUN: %t/linked | FileCheck %s
// RUN: env OMP_NUM_THREADS=3 %t/linked | FileCheck %s
// RUN: bngrad-compile %{source} -o %t/gradients.so --threads=1
// RUN: %{cc} -std=c11 -DBNGRAD_DLOPEN %S/Inputs/check.c -lm -o %t/loading
// RUN: %t/loading %t/gradients.so | FileCheck %s
// CHECK: {{^}}0 failed{{$}}

// The other outputs are equivalent; link-long.mlir has them for all functions.
// RUN: sed -e '/^!b/,$d' %{source} > %t/first.mlir
// DEFINE: %{kind} =
// DEFINE: %{share} = %llvm_prefix/bin/clang -shared -fPIC -Wno-override-module -O0 %t/first.%{kind} -o %t/%{kind}.so -lm
// RUN: bngrad-compile %t/first.mlir -o %t/first.s
// REDEFINE: %{kind} = s
// RUN: %{share} && %t/loading %t/s.so first | FileCheck %s
// RUN: bngrad-compile %t/first.mlir -o %t/first.ll
// REDEFINE: %{kind} = ll
// RUN: %{share} && %t/loading %t/ll.so first | FileCheck %s

// From standard input, in bytecode.
// RUN: bngrad-opt %t/first.mlir --emit-bytecode | bngrad-compile - -o %t/bytecode.so
// RUN: %t/loading %t/bytecode.so first | FileCheck %s

// The LLVM dialect is compiled further by LLVM's tools.
// RUN: bngrad-compile %t/first.mlir -o %t/dialect.mlir
// RUN: mlir-translate --mlir-to-llvmir %t/dialect.mlir -o %t/first.dialect.ll
// REDEFINE: %{kind} = dialect.ll
// RUN: %{share} && %t/loading %t/dialect.ll.so first | FileCheck %s

// The program detects errors.
// RUN: sed -e 's/1.0e-3 : f64}/1.0e-2 : f64}/' %t/first.mlir > %t/wrong.mlir
// RUN: bngrad-compile %t/wrong.mlir -o %t/wrong.so
// RUN: not %t/loading %t/wrong.so first | FileCheck %s --check-prefix=WRONG
// WRONG: FAILED: nchw grad_input: expected {{.*}}, got
