// The checked entries: results are those of the plain ones bit for bit, for every pool of threads, also in place;
// each misuse of each argument is an error that names it, and nothing is written.

// UNSUPPORTED: sanitizer
// DEFINE: %{cc} = %llvm_prefix/bin/clang -std=c11 -Wall -Wextra -pedantic -Werror -I%t -fsanitize=undefined -fno-sanitize-recover

// RUN: rm -rf %t && mkdir %t
// RUN: bngrad-compile %s -o %t/functions.o --header=%t/functions.h --threads=4
// RUN: %{cc} %S/Inputs/checked.c %t/functions.o -lm -o %t/checked
// RUN: env OMP_NUM_THREADS=4 %t/checked | FileCheck %s
// Without OpenMP, and with the one of gcc.
// RUN: env BNGRAD_OPENMP= %t/checked | FileCheck %s
// RUN: env BNGRAD_OPENMP=libgomp.so.1 OMP_NUM_THREADS=3 %t/checked | FileCheck %s
// RUN: env BNGRAD_OPENMP=/none/libomp.so %t/checked | FileCheck %s
// CHECK: nchw: 8 shapes, 144 calls
// CHECK-NEXT: nhwc: 8 shapes, 144 calls
// CHECK-NEXT: fixed: 1 shapes, 18 calls
// CHECK-NEXT: 1002 misuses
// CHECK-NEXT: nchw: input: expected stride of dim 1 to be 20, got 21
// CHECK-NEXT: right

// GPUs: the same checks; there is no workspace, and threads are not used.
// RUN: bngrad-compile %s -o %t/kernels.o --header=%t/functions.h --target=cuda
// RUN: %llvm_prefix/bin/clang -std=c11 -I%t %S/Inputs/checked.c %t/kernels.o -L%bngrad_obj_root/lib \
// RUN:   -Wl,-rpath,%bngrad_obj_root/lib -lBNGradCudaEmulator -lm -DSMALL -o %t/launches
// RUN: %t/launches | FileCheck %s --check-prefix=CUDA
// CUDA: nchw: 2 shapes, 36 calls
// CUDA-NEXT: nhwc: 2 shapes, 36 calls
// CUDA-NEXT: fixed: 1 shapes, 18 calls
// CUDA-NEXT: {{[0-9]+}} misuses
// CUDA: right

!d = tensor<?x?x?x?xf32>
!c = tensor<?xf32>
func.func @nchw(%dy: !d, %x: !d, %g: !c, %m: !c, %v: !c) -> (!d, !c, !c) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !c) mean(%m : !c) variance(%v : !c)
      {epsilon = 1.0e-5 : f64} : !d, !c, !c
  return %0#0, %0#1, %0#2 : !d, !c, !c
}
func.func @nhwc(%dy: !d, %x: !d, %g: !c, %m: !c, %v: !c) -> (!d, !c, !c) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !c) mean(%m : !c) variance(%v : !c)
      {feature_dims = array<i64: 3>, epsilon = 1.0e-5 : f64} : !d, !c, !c
  return %0#0, %0#1, %0#2 : !d, !c, !c
}
!s = tensor<2x3x4x5xf32>
!t = tensor<3xf32>
func.func @fixed(%dy: !s, %x: !s, %g: !t, %m: !t, %v: !t) -> (!s, !t, !t) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !s) input(%x : !s) scale(%g : !t) mean(%m : !t) variance(%v : !t)
      {epsilon = 1.0e-5 : f64} : !s, !t, !t
  return %0#0, %0#1, %0#2 : !s, !t, !t
}
