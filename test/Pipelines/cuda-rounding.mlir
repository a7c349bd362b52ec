// Kernels round to bf16 by an instruction that takes two numbers, if all chips have one; else in integer arithmetic. f64
// goes through an f32 that is rounded to odd.

// DEFINE: %{chip} =
// DEFINE: %{ptx} = bngrad-opt %s --bngrad-cuda-pipeline="chip=%{chip}" | sed -e "s/.0A/\n/g" -e "s/.09/ /g"
// REDEFINE: %{chip} = sm_75
// RUN: %{ptx} | FileCheck %s --check-prefixes=CHECK,INTEGER
// REDEFINE: %{chip} = sm_80
// RUN: %{ptx} | FileCheck %s --check-prefixes=CHECK,CONVERT
// REDEFINE: %{chip} = sm_90
// RUN: %{ptx} | FileCheck %s --check-prefixes=CHECK,CONVERT
// REDEFINE: %{chip} = sm_75,sm_90
// RUN: %{ptx} | FileCheck %s --check-prefixes=CHECK,INTEGER

// CHECK-LABEL: gpu.binary @f32_group_0
// INTEGER-NOT: cvt.rn.bf16
// INTEGER:     add.s32 {{.*}}, 32767;
// INTEGER-NOT: cvt.rn.bf16
// CONVERT-NOT: 32767
// CONVERT-NOT: cvt.rn.bf16.f32
// CONVERT:     cvt.rn.bf16x2.f32
// CONVERT-NOT: 32767
func.func @f32(%x: tensor<16x8x64xbf16>, %s: tensor<8xf32>) -> tensor<16x8x64xbf16> {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%x : tensor<16x8x64xbf16>) input(%x : tensor<16x8x64xbf16>)
      mean(%s : tensor<8xf32>) inv_std(%s : tensor<8xf32>) : tensor<16x8x64xbf16>, tensor<8xf32>, tensor<8xf32>
  return %dx : tensor<16x8x64xbf16>
}

// CHECK-LABEL: gpu.binary @f64_group_0
// INTEGER-NOT: cvt.rn.bf16
// INTEGER:     cvt.rn.f32.f64
// INTEGER-NOT: cvt.rn.bf16
// INTEGER:     add.s32 {{.*}}, 32767;
// INTEGER-NOT: cvt.rn.bf16
// CONVERT-NOT: cvt.rn.bf16.f64
// CONVERT-NOT: 32767
// CONVERT:     cvt.rn.f32.f64
// CONVERT:     or.b32 {{.*}}, 1;
// CONVERT:     cvt.rn.bf16x2.f32
// CONVERT-NOT: cvt.rn.bf16.f64
// CONVERT-NOT: 32767
func.func @f64(%x: tensor<16x8x64xf64>, %s: tensor<8xf64>) -> tensor<16x8x64xbf16> {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%x : tensor<16x8x64xf64>) input(%x : tensor<16x8x64xf64>)
      mean(%s : tensor<8xf64>) inv_std(%s : tensor<8xf64>) : tensor<16x8x64xbf16>, tensor<8xf64>, tensor<8xf64>
  return %dx : tensor<16x8x64xbf16>
}
