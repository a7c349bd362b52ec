// The functions that the header declares for arrays without elements exist, for every position of the 0; other results
// are those of an empty batch.

// UNSUPPORTED: sanitizer
// DEFINE: %{cc} = %llvm_prefix/bin/clang -std=c11 -Wall -Wextra -pedantic -Werror -I%t
// DEFINE: %{rpath} = -Wl,-rpath,%t -Wl,-rpath,%bngrad_obj_root/lib

// RUN: rm -rf %t && mkdir %t && cp %s %t/input.mlir
// RUN: sed -n 's@^// C: @@p' %s > %t/use.c
// RUN: bngrad-compile %t/input.mlir -o %t/cpu.so --header=%t/zero.h
// RUN: %{cc} %t/use.c %t/cpu.so %{rpath} -o %t/cpu
// RUN: %t/cpu
// RUN: bngrad-compile %t/input.mlir -o %t/cuda.so --target=cuda --header=%t/zero.h
// RUN: %{cc} %t/use.c %t/cuda.so -L%bngrad_obj_root/lib -Wl,--no-as-needed -lBNGradCudaEmulator %{rpath} -o %t/cuda
// RUN: %t/cuda

// C: #include "zero.h"
// C: int main(void) {
// C:   float p[4] = {1, 2, 3, 4}, sums[4] = {5, 5, 5, 5};
// C:   if (last(0, 0, p, p, 0, sums) || sums[0] != 0 || sums[3] != 0)
// C:     return 1;
// C:   return middle(0, 0, 0, 0, 0) || first(0, 0, 0, 0, 0) || buffer(0);
// C: }

!l = tensor<2x4x0xf32>
!c = tensor<4xf32>
func.func @last(%a: !l, %b: !l, %m: !c, %v: !c) -> (!l, !c) {
  %0:3 = bngrad.batch_norm_backward grad_output(%a : !l) input(%b : !l) mean(%m : !c) variance(%v : !c) : !l, !c, !c
  return %0#0, %0#1 : !l, !c
}
!m = tensor<4x0x4xf32>
!n = tensor<0xf32>
func.func @middle(%a: !m, %b: !m, %m: !n, %v: !n) -> !m {
  %0:3 = bngrad.batch_norm_backward grad_output(%a : !m) input(%b : !m) mean(%m : !n) variance(%v : !n) : !m, !n, !n
  return %0#0 : !m
}
!f = tensor<0x0x0xf32>
func.func @first(%a: !f, %b: !f, %m: !n, %v: !n) -> !f {
  %0:3 = bngrad.batch_norm_backward grad_output(%a : !f) input(%b : !f) mean(%m : !n) variance(%v : !n) : !f, !n, !n
  return %0#0 : !f
}
func.func @buffer(%a: memref<4x0x4xf32>) {
  %c = arith.constant 1.0 : f32
  linalg.fill ins(%c : f32) outs(%a : memref<4x0x4xf32>)
  return
}
