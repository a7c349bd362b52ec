// As link.mlir, with every output of all functions.

// REQUIRES: long
// DEFINE: %{source} = %S/Inputs/gradients.mlir
// DEFINE: %{cc} = %llvm_prefix/bin/clang -Wall -Wextra -pedantic -Werror -O1 -I%t -std=c11

// RUN: rm -rf %t && mkdir %t
// RUN: bngrad-compile %{source} -o %t/gradients.s --header=%t/gradients.h
// RUN: %{cc} %S/Inputs/check.c %t/gradients.s -lm -o %t/assembled
// RUN: %t/assembled | FileCheck %s
// RUN: bngrad-compile %{source} -o %t/gradients.ll
// RUN: %{cc} -Wno-override-module %S/Inputs/check.c %t/gradients.ll -lm -o %t/compiled
// RUN: %t/compiled | FileCheck %s
// CHECK: {{^}}0 failed{{$}}

// From standard input, in bytecode.
// RUN: bngrad-opt %{source} --allow-unregistered-dialect --emit-bytecode | bngrad-compile - -o %t/bytecode.so
// RUN: %{cc} -DBNGRAD_DLOPEN %S/Inputs/check.c -lm -o %t/loading
// RUN: %t/loading %t/bytecode.so | FileCheck %s

// The LLVM dialect is compiled further by LLVM's tools, and needs a compiler's library for bf16.
// RUN: bngrad-compile %{source} -o %t/dialect.mlir
// RUN: mlir-translate --mlir-to-llvmir %t/dialect.mlir -o %t/dialect.ll
// RUN: %{cc} -Wno-override-module %S/Inputs/check.c %t/dialect.ll --rtlib=compiler-rt -lm -o %t/translated
// RUN: %t/translated | FileCheck %s
