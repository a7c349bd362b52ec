// The header documents the interface, and compiles as C11 and C++17, with other headers (names.test: in every version).

// RUN: rm -rf %t && mkdir %t
// RUN: bngrad-compile %s -o %t/a.o --header=%t/a.h
// RUN: bngrad-compile %S/Inputs/gradients.mlir -o %t/gradients.o --header=%t/2-more.h
// RUN: FileCheck %s --input-file=%t/a.h
// RUN: echo '#include "a.h"' > %t/use.c && echo '#include "2-more.h"' >> %t/use.c && echo '#include "a.h"' >> %t/use.c
// RUN: %llvm_prefix/bin/clang -std=c11 -Wall -Wextra -pedantic -Werror -fsyntax-only %t/use.c
// RUN: cp %t/use.c %t/use.cpp
// RUN: %llvm_prefix/bin/clang++ -std=c++17 -Wall -Wextra -pedantic -Werror -fsyntax-only %t/use.cpp

// Another header of the same name can also be included.
// RUN: mkdir %t/other && bngrad-compile %S/errors-options.mlir -o %t/other/a.o --header=%t/other/a.h
// RUN: echo '#include "a.h"' > %t/both.c && echo '#include "other/a.h"' >> %t/both.c && echo 'void *f = (void *)&negated;' >> %t/both.c
// RUN: %llvm_prefix/bin/clang -std=c11 -Wall -Wextra -Werror -fsyntax-only %t/both.c

// CHECK: Made by bngrad-compile
// CHECK: #ifndef BNGRAD_GENERATED_A_H_[[GUARD:[0-9A-F]+$]]
// CHECK-NEXT: #define BNGRAD_GENERATED_A_H_[[GUARD]]
// CHECK: extern "C" {

// CHECK-NOT: _mlir_ciface
// CHECK: * roles
// CHECK: * [in] grad_output: 8x4xbf16
// CHECK-NEXT: * [in] input: 8x4xbf16
// CHECK-NEXT: * [in] scale: 4xf32
// CHECK-NEXT: * [in] mean: 4xf32
// CHECK-NEXT: * [in] inv_std: 4xf32
// CHECK-NEXT: * [in] mask: 8x4xi1
// CHECK-NEXT: * [out] grad_input: 8x4xbf16
// CHECK-NEXT: * [out] grad_scale: 4xf32
// CHECK-NEXT: * [out] result2: 8x4xbf16
// CHECK-NEXT: */
// CHECK-NEXT: int32_t roles(const uint16_t *grad_output, const uint16_t *input,
// CHECK-NEXT: const float *scale, const float *mean, const float *inv_std,
// CHECK-NEXT: const uint8_t *mask, uint16_t *grad_input, float *grad_scale,
// CHECK-NEXT: uint16_t *result2);
// CHECK-NOT: _mlir_ciface
!d = tensor<8x4xbf16>
!c = tensor<4xf32>
func.func @roles(%a: !d, %b: !d, %c: !c, %d: !c, %e: !c, %f: tensor<8x4xi1>) -> (!d, !c, !d) {
  %0:3 = bngrad.batch_norm_backward grad_output(%a : !d) input(%b : !d) scale(%c : !c) mean(%d : !c) inv_std(%e : !c)
      mask(%f : tensor<8x4xi1>) : !d, !c, !c
  %1 = arith.negf %a : !d
  return %0#0, %0#1, %1 : !d, !c, !d
}

// Names of the IR are kept, unless C reserves them; duplicates and unused arguments are numbered.
// CHECK: int32_t names(const float *rows, const float *arg1, const float *arg2,
// CHECK-NEXT: const float *arg3, float arg4, float *result0);
func.func @names(%a: tensor<4xf32> loc("rows"), %b: tensor<4xf32> loc("double"), %c: tensor<4xf32> loc("same"),
                 %d: tensor<4xf32> loc("same"), %e: f32) -> tensor<4xf32> {
  %0 = arith.addf %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Sizes of results in terms of the arguments' sizes; no form with pointers.
// CHECK-NOT: of_any_size
!u = tensor<?x4xf32>
func.func @of_any_size(%a: !u, %b: !u, %m: !c, %v: !c) -> !u {
  %0:3 = bngrad.batch_norm_backward grad_output(%a : !u) input(%b : !u) mean(%m : !c) variance(%v : !c) : !u, !c, !c
  return %0#0 : !u
}

// Strided buffers of the caller.
// CHECK: [in,out] arg0: 2x3xf32, strides [4, 1], offset 1
// CHECK: int32_t buffers(float *arg0, const int64_t *arg1, int64_t *result0);
func.func @buffers(%a: memref<2x3xf32, strided<[4, 1], offset: 1>>, %b: tensor<index>) -> tensor<index> {
  %c = arith.constant 1.0 : f32
  linalg.fill ins(%c : f32) outs(%a : memref<2x3xf32, strided<[4, 1], offset: 1>>)
  return %b : tensor<index>
}

// No arguments and no results.
// CHECK: int32_t nothing(void);
// CHECK-NOT: _mlir_ciface
func.func @nothing() {
  return
}

// Entries for every shape, with the structs that they take.
// CHECK: /*
// CHECK-NEXT: * Checked entries
// CHECK: #ifndef BNGRAD_THREADS_T_DEFINED
// CHECK: } bngrad_threads_t;
// CHECK: #ifndef BNGRAD_MEMREF_BF16_2_T_DEFINED
// CHECK: typedef struct {
// CHECK-NEXT: uint16_t *allocated; /* not read */
// CHECK-NEXT: uint16_t *aligned;
// CHECK-NEXT: int64_t offset;
// CHECK-NEXT: int64_t sizes[2];
// CHECK-NEXT: int64_t strides[2];
// CHECK-NEXT: } bngrad_memref_bf16_2_t;

// CHECK: size_t roles_workspace(const bngrad_memref_bf16_2_t *grad_output,
// CHECK: int32_t roles_checked(const bngrad_memref_bf16_2_t *grad_output,
// CHECK: const bngrad_threads_t *threads);
// CHECK: int32_t roles_diagnose(const bngrad_memref_bf16_2_t *grad_output,
// CHECK: * of_any_size
// CHECK: [out] grad_input: ?x4xf32
// CHECK-NEXT: sizes[0] = [[INPUT:.*]]->sizes[0]
// CHECK: int32_t of_any_size_checked(
// CHECK: size_t nothing_workspace(void);
// CHECK: int32_t nothing_checked(void *workspace, size_t workspace_size,

// Entries that check nothing come last.
// CHECK: /*
// CHECK-NEXT: * Unchecked entries
// CHECK: int32_t _mlir_ciface_roles(const bngrad_memref_bf16_2_t *grad_output,
// CHECK: int32_t _mlir_ciface_names(
// CHECK: int32_t _mlir_ciface_of_any_size(
// CHECK: int32_t _mlir_ciface_nothing(void);
