// Results of other types than the operands. A result with the type of an operand has the wrong size; one
// that is first rounded to an operand's type exceeds the bound.

// DEFINE: %{check} = bngrad-runner %s --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5
// RUN: %{check} --entry=f32_of_bf16 | FileCheck %s
// RUN: %{check} --entry=f64_of_f16 | FileCheck %s
// RUN: %{check} --entry=f16_and_bf16_of_f32 | FileCheck %s
// RUN: %{check} --entry=mixture_of_f32 | FileCheck %s
// RUN: %{check} --entry=f16_of_f64 | FileCheck %s
// RUN: %{check} --entry=bf16_of_f64 | FileCheck %s
// RUN: %{check} --entry=mixture_of_bf16_and_f64 | FileCheck %s

// CHECK: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 1 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 2 grad_offset max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NOT: {{.}}

!df16 = tensor<5x7x3x9xf16>
!dbf16 = tensor<5x7x3x9xbf16>
!df32 = tensor<5x7x3x9xf32>
!df64 = tensor<5x7x3x9xf64>
!pf16 = tensor<7xf16>
!pbf16 = tensor<7xbf16>
!pf32 = tensor<7xf32>
!pf64 = tensor<7xf64>

func.func @f32_of_bf16(%dy: !dbf16, %x: !dbf16, %g: !pbf16, %m: !pbf16, %v: !pbf16) -> (!df32, !pf32, !pf32) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !dbf16) input(%x : !dbf16) scale(%g : !pbf16)
      mean(%m : !pbf16) variance(%v : !pbf16) {epsilon = 1.0e-3} : !df32, !pf32, !pf32
  return %0#0, %0#1, %0#2 : !df32, !pf32, !pf32
}

func.func @f64_of_f16(%dy: !df16, %x: !df16, %g: !pf16, %m: !pf16, %v: !pf16) -> (!df64, !pf64, !pf64) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !df16) input(%x : !df16) scale(%g : !pf16)
      mean(%m : !pf16) variance(%v : !pf16) {epsilon = 1.0e-3} : !df64, !pf64, !pf64
  return %0#0, %0#1, %0#2 : !df64, !pf64, !pf64
}

func.func @f16_and_bf16_of_f32(%dy: !df32, %x: !df32, %g: !pf32, %m: !pf32, %v: !pf32) -> (!df16, !pbf16, !pf16) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !df32) input(%x : !df32) scale(%g : !pf32)
      mean(%m : !pf32) variance(%v : !pf32) {epsilon = 1.0e-3} : !df16, !pbf16, !pf16
  return %0#0, %0#1, %0#2 : !df16, !pbf16, !pf16
}

func.func @mixture_of_f32(%dy: !df32, %x: !df32, %g: !pf32, %m: !pf32, %v: !pf32) -> (!dbf16, !pf64, !pf16) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !df32) input(%x : !df32) scale(%g : !pf32)
      mean(%m : !pf32) variance(%v : !pf32) {epsilon = 1.0e-3} : !dbf16, !pf64, !pf16
  return %0#0, %0#1, %0#2 : !dbf16, !pf64, !pf16
}

func.func @f16_of_f64(%dy: !df64, %x: !df64, %g: !pf64, %m: !pf64, %v: !pf64) -> (!df16, !pf16, !pf16) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !df64) input(%x : !df64) scale(%g : !pf64)
      mean(%m : !pf64) variance(%v : !pf64) {epsilon = 1.0e-3} : !df16, !pf16, !pf16
  return %0#0, %0#1, %0#2 : !df16, !pf16, !pf16
}

func.func @bf16_of_f64(%dy: !df64, %x: !df64, %g: !pf64, %m: !pf64, %v: !pf64) -> (!dbf16, !pbf16, !pbf16) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !df64) input(%x : !df64) scale(%g : !pf64)
      mean(%m : !pf64) variance(%v : !pf64) {epsilon = 1.0e-3} : !dbf16, !pbf16, !pbf16
  return %0#0, %0#1, %0#2 : !dbf16, !pbf16, !pbf16
}

func.func @mixture_of_bf16_and_f64(%dy: !dbf16, %x: !dbf16, %g: !pf64, %m: !pf64, %v: !pf64) -> (!dbf16, !pf16, !pf32) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !dbf16) input(%x : !dbf16) scale(%g : !pf64)
      mean(%m : !pf64) variance(%v : !pf64) {epsilon = 1.0e-3} : !dbf16, !pf16, !pf32
  return %0#0, %0#1, %0#2 : !dbf16, !pf16, !pf32
}
