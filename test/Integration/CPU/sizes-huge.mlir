// More than 2^31 elements per channel and operand: every index has 64 bits. The batch is one sample repeated
// 32769 times (stride 0, so that only grad_input takes memory, 4 GiB): its gradient is that of one sample, and
// the sums are 32769 times those.

// REQUIRES: long, numpy
// DEFINE: %{run} = bngrad-runner %s --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5:0.5:1.5
// RUN: rm -rf %t && mkdir %t
// RUN: %{run} --entry=repeated --result=%t/a.npy --result=%t/b.npy --result=%t/c.npy
// RUN: %{run} --entry=expected --result=%t/x.npy --result=%t/y.npy --result=%t/z.npy
// RUN: %python %S/compare.py --f16 %t/a.npy %t/x.npy
// RUN: %python %S/compare.py %t/b.npy %t/y.npy %t/c.npy %t/z.npy

!sample = tensor<1x1x65536xf32>
!sample_m = memref<1x1x65536xf32>
!s = memref<32769x1x65536xf32, strided<[0, 65536, 1]>>
!t = tensor<32769x1x65536xf32>
!dx_m = memref<32769x1x65536xf16>
!dx = tensor<32769x1x65536xf16>
!last_m = memref<1x1x65536xf16, strided<[65536, 65536, 1], offset: 2147483648>>
!p = tensor<1xf32>

func.func @repeated(%dy: !sample, %x: !sample, %scale: !p, %mean: !p, %inv_std: !p) -> (!sample, !p, !p) {
  %dy_m = bufferization.to_buffer %dy read_only : !sample to !sample_m
  %x_m = bufferization.to_buffer %x read_only : !sample to !sample_m
  %dy_s = memref.reinterpret_cast %dy_m to offset: [0], sizes: [32769, 1, 65536], strides: [0, 65536, 1] : !sample_m to !s
  %x_s = memref.reinterpret_cast %x_m to offset: [0], sizes: [32769, 1, 65536], strides: [0, 65536, 1] : !sample_m to !s
  %dx_m = memref.alloc() : !dx_m
  %dy_t = bufferization.to_tensor %dy_s restrict : !s to !t
  %x_t = bufferization.to_tensor %x_s restrict : !s to !t
  %0:3 = bngrad.batch_norm_backward grad_output(%dy_t : !t) input(%x_t : !t) scale(%scale : !p) mean(%mean : !p)
      inv_std(%inv_std : !p) : !dx, !p, !p
  bufferization.materialize_in_destination %0#0 in restrict writable %dx_m : (!dx, !dx_m) -> ()
  %last = memref.subview %dx_m[32768, 0, 0] [1, 1, 65536] [1, 1, 1] : !dx_m to !last_m
  %last_t = bufferization.to_tensor %last restrict : !last_m to tensor<1x1x65536xf16>
  %dx = arith.extf %last_t : tensor<1x1x65536xf16> to !sample
  return %dx, %0#1, %0#2 : !sample, !p, !p
}

func.func @expected(%dy: !sample, %x: !sample, %scale: !p, %mean: !p, %inv_std: !p) -> (!sample, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !sample) input(%x : !sample) scale(%scale : !p) mean(%mean : !p)
      inv_std(%inv_std : !p) : tensor<1x1x65536xf16>, !p, !p
  %dx = arith.extf %0#0 : tensor<1x1x65536xf16> to !sample
  %n = arith.constant dense<32769.0> : !p
  %dscale = arith.mulf %0#1, %n : !p
  %doffset = arith.mulf %0#2, %n : !p
  return %dx, %dscale, %doffset : !sample, !p, !p
}
