// A workspace that a function maps is on huge pages, if it is long enough for them: 8 MB and 512 KB of a copy of input.

// UNSUPPORTED: sanitizer
// RUN: rm -rf %t && mkdir %t
// RUN: bngrad-compile %s -o %t/mixed.o --header=%t/mixed.h --threads=1
// RUN: %llvm_prefix/bin/clang -std=c11 -Wall -Wextra -pedantic -Werror -I%t -Wl,--wrap=madvise %S/Inputs/huge-pages.c \
// RUN:   %t/mixed.o -lm -o %t/mixed
// RUN: %t/mixed | FileCheck %s
// CHECK: {{^}}short: 0
// CHECK-NEXT: advice 14 for at least 4 MiB
// CHECK-NEXT: long: 0
// CHECK-NEXT: again: 0

!m = memref<32xf32>
!t = tensor<32xf32>
func.func @mixed_short(%dy: memref<16x32x256xf32>, %x: memref<16x32x256xf32, strided<[8192, 1, 32]>>, %scale: !m, %mean: !m, %variance: !m,
    %dx: memref<16x32x256xf32>) {
  %dy_t = bufferization.to_tensor %dy restrict : memref<16x32x256xf32> to tensor<16x32x256xf32>
  %x_t = bufferization.to_tensor %x restrict : memref<16x32x256xf32, strided<[8192, 1, 32]>> to tensor<16x32x256xf32>
  %scale_t = bufferization.to_tensor %scale restrict : !m to !t
  %mean_t = bufferization.to_tensor %mean restrict : !m to !t
  %variance_t = bufferization.to_tensor %variance restrict : !m to !t
  %0:3 = bngrad.batch_norm_backward grad_output(%dy_t : tensor<16x32x256xf32>) input(%x_t : tensor<16x32x256xf32>)
      scale(%scale_t : !t) mean(%mean_t : !t) variance(%variance_t : !t) : tensor<16x32x256xf32>, !t, !t
  bufferization.materialize_in_destination %0#0 in restrict writable %dx
      : (tensor<16x32x256xf32>, memref<16x32x256xf32>) -> ()
  return
}

func.func @mixed_long(%dy: memref<16x32x4096xf32>, %x: memref<16x32x4096xf32, strided<[131072, 1, 32]>>, %scale: !m, %mean: !m, %variance: !m,
    %dx: memref<16x32x4096xf32>) {
  %dy_t = bufferization.to_tensor %dy restrict : memref<16x32x4096xf32> to tensor<16x32x4096xf32>
  %x_t = bufferization.to_tensor %x restrict : memref<16x32x4096xf32, strided<[131072, 1, 32]>> to tensor<16x32x4096xf32>
  %scale_t = bufferization.to_tensor %scale restrict : !m to !t
  %mean_t = bufferization.to_tensor %mean restrict : !m to !t
  %variance_t = bufferization.to_tensor %variance restrict : !m to !t
  %0:3 = bngrad.batch_norm_backward grad_output(%dy_t : tensor<16x32x4096xf32>) input(%x_t : tensor<16x32x4096xf32>)
      scale(%scale_t : !t) mean(%mean_t : !t) variance(%variance_t : !t) : tensor<16x32x4096xf32>, !t, !t
  bufferization.materialize_in_destination %0#0 in restrict writable %dx
      : (tensor<16x32x4096xf32>, memref<16x32x4096xf32>) -> ()
  return
}
