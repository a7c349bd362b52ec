// Data for which an unsuitable order of operations loses accuracy: each line
// fails for an implementation that random numbers around 0 would not tell from
// this one. --check compares every element with its bound (docs/numerics.md).

// REQUIRES: numpy
// DEFINE: %{write} = %python %S/../../Inputs/npy.py write
// DEFINE: %{run} = bngrad-runner %s --check --entry

!nchw = tensor<8x3x31x33xf32>
!nchw64 = tensor<8x3x31x33xf64>
!p = tensor<3xf32>
!p64 = tensor<3xf64>

// The mean is 1e4 times the standard deviation: sum(dy * x) - mean * sum(dy)
// would have no correct digit, nor would x * slope - mean * slope.
// RUN: %{run}=batch --arg=random:1 --arg=random:2:9998.5:10001.5 \
// RUN:   --arg=random:3 --arg=random:4:9999.9:10000.1 --arg=random:5:0.5:1
// RUN: %{run}=batch64 --arg=random:1 --arg=random:2:99999998.5:100000001.5 \
// RUN:   --arg=random:3 --arg=random:4:99999999.9:100000000.1 --arg=random:5:0.5:1

// A tiny or subnormal variance without epsilon, with data as small as its
// deviation: r*r is up to 1e40 and must not be computed.
// RUN: %{run}=batch --arg=random:1 --arg=random:2:-2e-6:2e-6 \
// RUN:   --arg=random:3 --arg=random:4:-1e-8:1e-8 --arg=random:5:1e-12:2e-12
// RUN: %{run}=batch --arg=random:1:-1e-9:1e-9 --arg=random:2:-2e-20:2e-20 \
// RUN:   --arg=random:3 --arg=random:4:-1e-22:1e-22 --arg=random:5:1e-40:4e-40
// A variance so large that r*r would be subnormal.
// RUN: %{run}=batch --arg=random:1 --arg=random:2:-1e18:1e18 \
// RUN:   --arg=random:3 --arg=random:4 --arg=random:5:1e36:3e38

// A huge scale, and one that brings small gradients back.
// RUN: %{run}=batch --arg=random:1:-0.01:0.01 --arg=random:2 \
// RUN:   --arg=random:3:1e37:9e37 --arg=random:4 --arg=random:5:1:2
// RUN: %{run}=batch --arg=random:1:-1e-30:1e-30 --arg=random:2:-1e3:1e3 \
// RUN:   --arg=random:3:-1e33:1e33 --arg=random:4 --arg=random:5:1e5:1e6
func.func @batch(%dy: !nchw, %x: !nchw, %s: !p, %m: !p, %v: !p)
    -> (!nchw, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !nchw) input(%x : !nchw)
      scale(%s : !p) mean(%m : !p) variance(%v : !p) : !nchw, !p, !p
  return %0#0, %0#1, %0#2 : !nchw, !p, !p
}
func.func @batch64(%dy: !nchw64, %x: !nchw64, %s: !p64, %m: !p64, %v: !p64)
    -> (!nchw64, !p64, !p64) {
  %0:3 = bngrad.batch_norm_backward
      grad_output(%dy : !nchw64) input(%x : !nchw64)
      scale(%s : !p64) mean(%m : !p64) variance(%v : !p64)
      : !nchw64, !p64, !p64
  return %0#0, %0#1, %0#2 : !nchw64, !p64, !p64
}

// 10^7 elements of one sign, in one row. The errors of a running sum do not
// cancel: if all elements are equal (the only f32 in [0.1, 0.1000000015)), the
// errors between two powers of two are equal.
// RUN: %{run}=one_channel --arg=random:1:0.1:0.1000000015 --arg=random:2 \
// RUN:   --arg=random:3 --arg=random:4
!one = tensor<1x1x10000000xf32>
!p1 = tensor<1xf32>
func.func @one_channel(%dy: !one, %x: !one, %m: !p1, %v: !p1)
    -> (!one, !p1, !p1) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !one) input(%x : !one)
      mean(%m : !p1) variance(%v : !p1) : !one, !p1, !p1
  return %0#0, %0#1, %0#2 : !one, !p1, !p1
}

// The same in 3 channels, in rows without a whole last block. numerics-long.mlir runs it.
!three = tensor<4x3x1001x999xf32>
func.func @three_channels(%dy: !three, %x: !three, %m: !p, %v: !p)
    -> (!p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !three) input(%x : !three)
      mean(%m : !p) variance(%v : !p) : !three, !p, !p
  return %0#1, %0#2 : !p, !p
}

// Rows of one element, so that each block has one. numerics-long.mlir runs it.
!rows = tensor<5000000x1x1xf32>
func.func @short_rows(%dy: !rows, %x: !rows, %m: !p1, %v: !p1) -> (!p1, !p1) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !rows) input(%x : !rows)
      mean(%m : !p1) variance(%v : !p1) : !rows, !p1, !p1
  return %0#1, %0#2 : !p1, !p1
}

// Rows of 5 elements, several of which share a chain, read by channel. numerics-long.mlir runs it.
!fives = tensor<500000x2x5xf32>
!pair = tensor<2xf32>
func.func @rows_of_5(%dy: !fives, %x: !fives, %m: !pair, %v: !pair) -> (!pair, !pair) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !fives) input(%x : !fives)
      mean(%m : !pair) variance(%v : !pair) : !fives, !pair, !pair
  return %0#1, %0#2 : !pair, !pair
}

// Results that are subnormal in bf16 are rounded like others, not set to 0:
// their bounds are below the smallest normal number.
// RUN: %{run}=global_bf16 --arg=random:1:-1e-37:1e-37 --arg=random:2 \
// RUN:   --arg=random:3:0.005:0.05 --arg=random:4 --arg=random:5
// RUN: %{run}=batch_bf16 --arg=random:1:-1e-37:1e-37 --arg=random:2 \
// RUN:   --arg=random:3:0.005:0.05 --arg=random:4 --arg=random:5
!bf16 = tensor<5x3x7xbf16>
func.func @global_bf16(%dy: !bf16, %x: !bf16, %s: !p, %m: !p, %v: !p)
    -> !bf16 {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !bf16) input(%x : !bf16)
      scale(%s : !p) mean(%m : !p) variance(%v : !p)
      {statistics = #bngrad.statistics<global>} : !bf16, !p, !p
  return %0#0 : !bf16
}
func.func @batch_bf16(%dy: !bf16, %x: !bf16, %s: !p, %m: !p, %v: !p)
    -> (!bf16, tensor<3xbf16>, tensor<3xbf16>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !bf16) input(%x : !bf16)
      scale(%s : !p) mean(%m : !p) variance(%v : !p)
      : !bf16, tensor<3xbf16>, tensor<3xbf16>
  return %0#0, %0#1, %0#2 : !bf16, tensor<3xbf16>, tensor<3xbf16>
}

// The largest f16 as grad_output and input: input - mean and the products need
// a wider type. A result is infinite if and only if it rounds to infinity, from
// 65520 on.
// RUN: mkdir -p %t
// RUN: %{write} %t/dy.npy f16 2x5 65504 65504 -65504 65504 65504 \
// RUN:   16 15.9921875 -16 65504 -65504
// RUN: %{write} %t/x.npy f16 2x5 65504 65504 65504 65504 65504 \
// RUN:   -65504 -65504 -65504 -65504 -65504
// 32 times 1, 1 + 2^-12, 1 + 2^-11, 1, -1 - 2^-11
// RUN: %{write} %t/scale.npy f32 5 32 32.0078125 32.015625 32 -32.015625
// RUN: %{write} %t/mean.npy f32 5 65504 65504 65504 65504 65504
// RUN: %{write} %t/inv_std.npy f32 5 0.03125 0.03125 0.03125 0.03125 0.03125
// DEFINE: %{f16} = --arg=%t/dy.npy --arg=%t/x.npy --arg=%t/scale.npy \
// DEFINE:   --arg=%t/mean.npy --arg=%t/inv_std.npy
// RUN: %{run}=batch_f16 %{f16}
// RUN: %{run}=global_f16 %{f16} --result=%t/grad_input.npy \
// RUN:   --result=%t/grad_scale.npy --result=%t/grad_offset.npy
// RUN: %python %S/../../Inputs/npy.py print %t/grad_input.npy \
// RUN:   %t/grad_scale.npy %t/grad_offset.npy | FileCheck %s
// CHECK: 65504 65504 -inf 65504 -inf 16 15.9921875 -16 65504 inf
// CHECK-NEXT: -65504 -65472 65504 -inf inf
// CHECK-NEXT: inf 65504 -inf inf 0
!f16 = tensor<2x5xf16>
!pf16 = tensor<5xf16>
!p5 = tensor<5xf32>
func.func @batch_f16(%dy: !f16, %x: !f16, %s: !p5, %m: !p5, %r: !p5)
    -> (!f16, !pf16, !pf16) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !f16) input(%x : !f16)
      scale(%s : !p5) mean(%m : !p5) inv_std(%r : !p5) : !f16, !pf16, !pf16
  return %0#0, %0#1, %0#2 : !f16, !pf16, !pf16
}
func.func @global_f16(%dy: !f16, %x: !f16, %s: !p5, %m: !p5, %r: !p5)
    -> (!f16, !pf16, !pf16) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !f16) input(%x : !f16)
      scale(%s : !p5) mean(%m : !p5) inv_std(%r : !p5)
      {statistics = #bngrad.statistics<global>} : !f16, !pf16, !pf16
  return %0#0, %0#1, %0#2 : !f16, !pf16, !pf16
}

// Many random ones.
// RUN: %{run}=many_f16 --arg=random:1:-65504:65504 --arg=random:2:-65504:65504 \
// RUN:   --arg=random:3:0.5:2 --arg=random:4 --arg=random:5:1e-5:1
!many = tensor<9x3x37xf16>
func.func @many_f16(%dy: !many, %x: !many, %s: !p, %m: !p, %r: !p)
    -> (!many, tensor<3xf16>, tensor<3xf16>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !many) input(%x : !many)
      scale(%s : !p) mean(%m : !p) inv_std(%r : !p)
      : !many, tensor<3xf16>, tensor<3xf16>
  return %0#0, %0#1, %0#2 : !many, tensor<3xf16>, tensor<3xf16>
}

// NaN and infinity stay in their channel (docs/numerics.md, section 6). The
// first of two channels has r = 1/0 and no deviation from its mean; then a
// masked NaN in grad_output and in input; then no elements.
// RUN: %{write} %t/mean.npy f32 2 0.5 0.25
// RUN: %{write} %t/variance.npy f32 2 0 4
// RUN: %{write} %t/one.npy f32 2 4 4
// RUN: %{write} %t/dy.npy f32 2x2 1 2 4 8
// RUN: %{write} %t/dynan.npy f32 2x2 nan 2 4 8
// RUN: %{write} %t/x.npy f32 2x2 0.5 1.25 0.5 0.75
// RUN: %{write} %t/xnan.npy f32 2x2 nan 1.25 0.5 0.75
// RUN: %{write} %t/mask.npy i1 2x2 0 1 1 1
// RUN: %{write} %t/empty.npy f32 0x2
// RUN: %{write} %t/none.npy i1 0x2
// DEFINE: %{results} = --result=%t/0.npy --result=%t/1.npy --result=%t/2.npy
// DEFINE: %{print} = %python %S/../../Inputs/npy.py print \
// DEFINE:   %t/0.npy %t/1.npy %t/2.npy | FileCheck %s --check-prefix
// RUN: %{run}=masked --arg=%t/dy.npy --arg=%t/x.npy --arg=%t/mean.npy \
// RUN:   --arg=%t/variance.npy --arg=%t/mask.npy %{results}
// RUN: %{print}=NOVARIANCE
// NOVARIANCE: nan -1.875 nan 1.3125
// NOVARIANCE-NEXT: nan 3
// NOVARIANCE-NEXT: 4 10
// RUN: %{run}=masked --arg=%t/dynan.npy --arg=%t/x.npy --arg=%t/mean.npy \
// RUN:   --arg=%t/one.npy --arg=%t/mask.npy %{results}
// RUN: %{print}=MASKED
// MASKED: -1 -1.875 1 1.3125
// MASKED-NEXT: 0 3
// MASKED-NEXT: 4 10
// RUN: %{run}=masked --arg=%t/dy.npy --arg=%t/xnan.npy --arg=%t/mean.npy \
// RUN:   --arg=%t/one.npy --arg=%t/mask.npy %{results}
// RUN: %{print}=INPUT
// INPUT: nan -1.875 nan 1.3125
// INPUT-NEXT: nan 3
// INPUT-NEXT: 4 10
// RUN: %{run}=masked --arg=%t/empty.npy --arg=%t/empty.npy \
// RUN:   --arg=%t/mean.npy --arg=%t/variance.npy --arg=%t/none.npy %{results}
// RUN: %{print}=EMPTY
// EMPTY: 0 0
// EMPTY-NEXT: 0 0
!any = tensor<?x2xf32>
!any_mask = tensor<?x2xi1>
!p2 = tensor<2xf32>
func.func @masked(%dy: !any, %x: !any, %m: !p2, %v: !p2, %k: !any_mask)
    -> (!any, !p2, !p2) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !any) input(%x : !any)
      mean(%m : !p2) variance(%v : !p2) mask(%k : !any_mask) : !any, !p2, !p2
  return %0#0, %0#1, %0#2 : !any, !p2, !p2
}
