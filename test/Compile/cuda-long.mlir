// As cuda.mlir, with LLVM IR and several chips for all functions.

// REQUIRES: long
// UNSUPPORTED: sanitizer

// DEFINE: %{source} = %S/Inputs/gradients.mlir
// DEFINE: %{cc} = %llvm_prefix/bin/clang -std=c11 -Wall -Wextra -pedantic -Werror -O1 -I%t
// DEFINE: %{emulator} = -L%bngrad_obj_root/lib -lBNGradCudaEmulator -Wl,-rpath,%bngrad_obj_root/lib -lm

// RUN: rm -rf %t && mkdir %t
// RUN: bngrad-compile %{source} -o %t/gradients.ll --header=%t/gradients.h --target=cuda
// RUN: %{cc} -Wno-override-module %S/Inputs/check.c %t/gradients.ll %{emulator} -o %t/compiled
// RUN: %t/compiled | FileCheck %s
// CHECK: {{^}}0 failed{{$}}

// RUN: bngrad-compile %{source} -o %t/several.so --target=cuda --chip=sm_80,sm_90,sm_100
// RUN: %{cc} -DBNGRAD_DLOPEN %S/Inputs/check.c -Wl,--no-as-needed %{emulator} -o %t/loading
// RUN: env PTX_EMULATOR_CHIP=sm_80 %t/loading %t/several.so | FileCheck %s
// RUN: env PTX_EMULATOR_CHIP=sm_90 %t/loading %t/several.so | FileCheck %s
// RUN: env PTX_EMULATOR_CHIP=sm_100 %t/loading %t/several.so | FileCheck %s
