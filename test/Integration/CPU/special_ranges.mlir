// Values that lose some or all accuracy unless sums are formed from input - mean in the accumulator type.

// DEFINE: %{check} = bngrad-runner %s --check
// CHECK: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 1 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 2 grad_offset max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NOT: {{.}}

// |mean| is 1e4 times the spread of input: sum(dy*x) - mean*sum(dy) in place of sum(dy*(x - mean)) cancels.
// RUN: %{check} --entry=f32 --arg=random:1 --arg=random:2:9999:10001 --arg=random:3 --arg=random:4:9999.5:10000.5 --arg=random:5 | FileCheck %s

// Subnormal gradients: flushing them to zero loses everything.
// RUN: %{check} --entry=f32 --arg=random:1:-1e-39:1e-39 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5 | FileCheck %s
// RUN: %{check} --entry=bf16 --arg=random:1:-1e-39:1e-39 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5 | FileCheck %s
// RUN: %{check} --entry=f16 --arg=random:1:-6e-5:6e-5 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5 | FileCheck %s
// RUN: %{check} --entry=f64 --arg=random:1:-2e-308:2e-308 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5 | FileCheck %s

// Near the largest f16: results overflow only if the exact value does, unlike sums in f16.
// RUN: %{check} --entry=f16 --arg=random:1:-65504:65504 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5 | FileCheck %s
// RUN: %{check} --entry=f16 --arg=random:1:300:1100 --arg=random:2:-1:0.9 --arg=random:3 --arg=random:4:-0.1:0.1 --arg=random:5 | FileCheck %s

// Nearly constant input: grad_output less its mean is almost nothing.
// RUN: %{check} --entry=f32 --arg=random:1:0.1:0.1001 --arg=random:2:1:2 --arg=random:3 --arg=random:4:-2:-1 --arg=random:5:1e-6:1e-5 | FileCheck %s



!df16 = tensor<6x5x3x7xf16>
!pf16 = tensor<5xf16>
func.func @f16(%dy: !df16, %x: !df16, %g: !pf16, %m: !pf16, %v: !pf16) -> (!df16, !pf16, !pf16) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !df16) input(%x : !df16) scale(%g : !pf16) mean(%m : !pf16)
      variance(%v : !pf16) : !df16, !pf16, !pf16
  return %0#0, %0#1, %0#2 : !df16, !pf16, !pf16
}

!dbf16 = tensor<6x5x3x7xbf16>
!pbf16 = tensor<5xbf16>
func.func @bf16(%dy: !dbf16, %x: !dbf16, %g: !pbf16, %m: !pbf16, %v: !pbf16) -> (!dbf16, !pbf16, !pbf16) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !dbf16) input(%x : !dbf16) scale(%g : !pbf16) mean(%m : !pbf16)
      variance(%v : !pbf16) : !dbf16, !pbf16, !pbf16
  return %0#0, %0#1, %0#2 : !dbf16, !pbf16, !pbf16
}

!df32 = tensor<6x5x3x7xf32>
!pf32 = tensor<5xf32>
func.func @f32(%dy: !df32, %x: !df32, %g: !pf32, %m: !pf32, %v: !pf32) -> (!df32, !pf32, !pf32) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !df32) input(%x : !df32) scale(%g : !pf32) mean(%m : !pf32)
      variance(%v : !pf32) : !df32, !pf32, !pf32
  return %0#0, %0#1, %0#2 : !df32, !pf32, !pf32
}

!df64 = tensor<6x5x3x7xf64>
!pf64 = tensor<5xf64>
func.func @f64(%dy: !df64, %x: !df64, %g: !pf64, %m: !pf64, %v: !pf64) -> (!df64, !pf64, !pf64) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !df64) input(%x : !df64) scale(%g : !pf64) mean(%m : !pf64)
      variance(%v : !pf64) : !df64, !pf64, !pf64
  return %0#0, %0#1, %0#2 : !df64, !pf64, !pf64
}
