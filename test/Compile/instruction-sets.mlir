// BNGRAD_ISA restricts code for this machine to an instruction set: vectors, fused products and conversions to bf16.

// DEFINE: %{isa} =
// DEFINE: %{asm} = env BNGRAD_ISA=%{isa} bngrad-compile %s --threads=2 -o %t.s && FileCheck %s --input-file=%t.s --check-prefix
// REDEFINE: %{isa} = x86-64-v2
// RUN: %if x86-64-v2 %{ %{asm} V2 --implicit-check-not={{[yz]mm}} --implicit-check-not=vfmadd %}
// REDEFINE: %{isa} = x86-64-v3
// RUN: %if x86-64-v3 %{ %{asm} V3 --implicit-check-not=zmm --implicit-check-not=vcvtne %}
// REDEFINE: %{isa} = x86-64-v4
// RUN: %if x86-64-v4 %{ %{asm} V4 --implicit-check-not=vcvtne %}
// REDEFINE: %{isa} = x86-64-v4+avx512bf16
// RUN: %if x86-64-v4+avx512bf16 %{ %{asm} BF16 %}
// REDEFINE: %{isa} = armv8-a
// RUN: %if armv8-a %{ %{asm} ARM %}
// V2: movntps %xmm
// V3: vfmadd{{.*}} %ymm
// V3: vmovntps %ymm
// V4: vfmadd{{.*}} %zmm
// V4: vmovntps %zmm
// BF16: vfmadd{{.*}} %zmm
// BF16: vmovntps %zmm
// BF16: vcvtneps2bf16 %zmm
// ARM: stnp q

// The name of the CPU is that of the instruction set, also for native.
// DEFINE: %{ll} = bngrad-compile %s --threads=2 -o %t.ll
// RUN: %if x86-64-v2 %{ env BNGRAD_ISA=x86-64-v2 %{ll} --mcpu=native && FileCheck %s --input-file=%t.ll --check-prefix=LL %}
// LL: "target-cpu"="x86-64-v2"

// An empty value is none.
// RUN: env -u BNGRAD_ISA %{ll} && mv %t.ll %t.unset.ll && env BNGRAD_ISA= %{ll} && cmp %t.ll %t.unset.ll

// Code for a CPU that is named, or for another architecture, does not depend on the variable.
// DEFINE: %{target} =
// DEFINE: %{ignores} = env -u BNGRAD_ISA bngrad-compile %s %{target} -o %t.unset.s && \
// DEFINE:   env BNGRAD_ISA=vax bngrad-compile %s %{target} -o %t.s && cmp %t.s %t.unset.s
// REDEFINE: %{target} = --mtriple=x86_64-linux-gnu --mcpu=x86-64-v3
// RUN: %{ignores}
// REDEFINE: %{target} = --mtriple=aarch64-linux-gnu --mcpu=neoverse-n1
// RUN: %{ignores}

!f32 = tensor<64x64x112x112xf32>
!bf16 = tensor<64x64x112x112xbf16>
!c = tensor<64xf32>
func.func @gradient(%dy: !f32, %x: !f32, %mean: !c, %variance: !c) -> (!f32, !c, !c) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !f32) input(%x : !f32) mean(%mean : !c) variance(%variance : !c)
      : !f32, !c, !c
  return %0#0, %0#1, %0#2 : !f32, !c, !c
}
func.func @gradient_bf16(%dy: !bf16, %x: !bf16, %mean: !c, %variance: !c) -> (!bf16, !c, !c) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !bf16) input(%x : !bf16) mean(%mean : !c) variance(%variance : !c)
      : !bf16, !c, !c
  return %0#0, %0#1, %0#2 : !bf16, !c, !c
}
