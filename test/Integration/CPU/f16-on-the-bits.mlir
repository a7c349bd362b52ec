// Without F16C, f16 is converted on the bits: every number of f16 to f32, and to f16 the midpoints between its numbers and
// their neighbours, subnormals, overflow and NaN. As scalars, and as vectors: with constant statistics and inv_std 1,
// grad_input is grad_output. numpy converts the same numbers.

// REQUIRES: numpy, x86-64-v2
// DEFINE: %{run} = env BNGRAD_ISA=x86-64-v2 bngrad-runner %s
// RUN: %python %S/f16_values.py write %t
// RUN: %{run} --entry=f16_scalars --arg=%t/f16.npy --result=%t/f16.scalars.npy
// RUN: %{run} --entry=f32_scalars --arg=%t/f32.npy --result=%t/f32.scalars.npy
// RUN: %{run} --entry=f16_vectors --arg=%t/f16.npy --arg=%t/one.npy --result=%t/f16.vectors.npy
// RUN: %{run} --entry=f32_vectors --arg=%t/f32.npy --arg=%t/one.npy --result=%t/f32.vectors.npy
// RUN: %python %S/f16_values.py compare %t

// No function is called for an element, as LLVM would do.
// RUN: bngrad-compile %s --mcpu=x86-64-v2 -o %t/out.ll
// RUN: FileCheck %s --input-file=%t/out.ll --implicit-check-not=fptrunc --implicit-check-not=fpext
// CHECK: define {{.*}}@f16_vectors

!f16 = tensor<?x1xf16>
!f32 = tensor<?x1xf32>
!p = tensor<1xf32>
func.func @f16_scalars(%x: !f16) -> !f32 {
  %0 = arith.extf %x : !f16 to !f32
  return %0 : !f32
}

func.func @f32_scalars(%x: !f32) -> !f16 {
  %0 = arith.truncf %x : !f32 to !f16
  return %0 : !f16
}

func.func @f16_vectors(%x: !f16, %one: !p) -> !f32 {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : !f16) input(%x : !f16) mean(%one : !p) inv_std(%one : !p)
      {statistics = #bngrad.statistics<global>} : !f32, !p, !p
  return %0#0 : !f32
}

func.func @f32_vectors(%x: !f32, %one: !p) -> !f16 {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : !f32) input(%x : !f32) mean(%one : !p) inv_std(%one : !p)
      {statistics = #bngrad.statistics<global>} : !f16, !p, !p
  return %0#0 : !f16
}
