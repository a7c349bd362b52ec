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

// The other outputs are equivalent.
// RUN: bngrad-compile %{source} -o %t/gradients.s
// RUN: %{cc} -std=c11 %S/Inputs/check.c %t/gradients.s -lm -o %t/assembled
// RUN: %t/assembled | FileCheck %s
// RUN: bngrad-compile %{source} -o %t/gradients.ll
// RUN: %{cc} -std=c11 -Wno-override-module %S/Inputs/check.c %t/gradients.ll -lm -o %t/compiled
// RUN: %t/compiled | FileCheck %s

// From standard input, in bytecode.
// RUN: bngrad-opt %{source} --allow-unregistered-dialect --emit-bytecode | bngrad-compile - -o %t/bytecode.so
// RUN: %t/loading %t/bytecode.so | FileCheck %s

// The LLVM dialect is compiled further by LLVM's tools, and needs a compiler's library for bf16.
// RUN: bngrad-compile %{source} -o %t/dialect.mlir
// RUN: mlir-translate --mlir-to-llvmir %t/dialect.mlir -o %t/dialect.ll
// RUN: %{cc} -std=c11 -Wno-override-module %S/Inputs/check.c %t/dialect.ll --rtlib=compiler-rt -lm -o %t/translated
// RUN: %t/translated | FileCheck %s

// The program detects errors.
// RUN: sed -e 's/1.0e-3 : f64}/1.0e-2 : f64}/' %{source} > %t/wrong.mlir
// RUN: bngrad-compile %t/wrong.mlir -o %t/wrong.so
// RUN: not %t/loading %t/wrong.so | FileCheck %s --check-prefix=WRONG
// WRONG: FAILED: nchw grad_input: expected {{.*}}, got
