// Functions of f16 and bf16 with PTX instructions: rounded as on a CPU, whose results --check compares with.

// DEFINE: %{entry} =
// DEFINE: %{chip} =
// DEFINE: %{run} = bngrad-runner %s --entry=%{entry} --target=cuda-emulator --chip=%{chip} --check \
// DEFINE:   --arg=random:1:0.1:9 --arg=random:2:-9:9 --arg=random:3:0.5:1.5 --arg=random:4 | FileCheck %s
// CHECK: grad_input {{.*}} ok
// CHECK: grad_scale {{.*}} ok

// REDEFINE: %{entry} = f16
// REDEFINE: %{chip} = sm_75
// RUN: %{run}
// REDEFINE: %{chip} = sm_90
// RUN: %{run}
// REDEFINE: %{entry} = bf16
// REDEFINE: %{chip} = sm_75
// RUN: %{run}
// REDEFINE: %{chip} = sm_90
// RUN: %{run}

!p = tensor<6xf32>
!f16 = tensor<5x6x31xf16>
func.func @f16(%dz: !f16, %x: !f16, %r: !p, %m: !p) -> (!f16, !p) {
  %rsqrt = math.rsqrt %dz : !f16
  %sqrt = math.sqrt %dz : !f16
  %fma = math.fma %rsqrt, %sqrt, %x : !f16
  %copysign = math.copysign %fma, %x : !f16
  %floor = math.floor %dz : !f16
  %ceil = math.ceil %copysign : !f16
  %trunc = math.trunc %fma : !f16
  %even = math.roundeven %x : !f16
  %abs = math.absf %x : !f16
  %0 = arith.addf %rsqrt, %floor : !f16
  %1 = arith.mulf %0, %ceil : !f16
  %2 = arith.addf %1, %trunc : !f16
  %3 = arith.mulf %2, %even : !f16
  %4 = arith.addf %3, %abs : !f16
  %dy = arith.addf %4, %fma : !f16
  %5:3 = bngrad.batch_norm_backward grad_output(%dy : !f16) input(%x : !f16) mean(%m : !p) inv_std(%r : !p)
      : !f16, !p, !p
  return %5#0, %5#1 : !f16, !p
}


!bf16 = tensor<5x6x31xbf16>
func.func @bf16(%dz: !bf16, %x: !bf16, %r: !p, %m: !p) -> (!bf16, !p) {
  %rsqrt = math.rsqrt %dz : !bf16
  %sqrt = math.sqrt %dz : !bf16
  %fma = math.fma %rsqrt, %sqrt, %x : !bf16
  %copysign = math.copysign %fma, %x : !bf16
  %floor = math.floor %dz : !bf16
  %ceil = math.ceil %copysign : !bf16
  %trunc = math.trunc %fma : !bf16
  %even = math.roundeven %x : !bf16
  %abs = math.absf %x : !bf16
  %0 = arith.addf %rsqrt, %floor : !bf16
  %1 = arith.mulf %0, %ceil : !bf16
  %2 = arith.addf %1, %trunc : !bf16
  %3 = arith.mulf %2, %even : !bf16
  %4 = arith.addf %3, %abs : !bf16
  %dy = arith.addf %4, %fma : !bf16
  %5:3 = bngrad.batch_norm_backward grad_output(%dy : !bf16) input(%x : !bf16) mean(%m : !p) inv_std(%r : !p)
      : !bf16, !p, !p
  return %5#0, %5#1 : !bf16, !p
}
