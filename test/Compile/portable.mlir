// Baseline x86-64: f16 is converted in software, by our own code.

// DEFINE: %{cc} = %llvm_prefix/bin/clang -Wall -Wextra -pedantic -Werror -O1 -I%t
// RUN: rm -rf %t && mkdir %t
// RUN: bngrad-compile %S/Inputs/gradients.mlir -o %t/gradients.so --header=%t/gradients.h --mcpu=x86-64
// RUN: %{cc} -std=c11 -DBNGRAD_DLOPEN %S/Inputs/check.c -lm -o %t/loading
// RUN: %t/loading %t/gradients.so | FileCheck %s
// CHECK: {{^}}0 failed{{$}}

// Every f16, and every kind of rounding to f16 and bf16.
// RUN: %if numpy %{ %python %S/Inputs/conversions.py %t bngrad-compile | FileCheck %s --check-prefix=CONVERSIONS %}
// CONVERSIONS: {{^}}0 of {{[1-9][0-9]*}} conversions differ
