// The target CPU, not this machine, determines the vector length in schedules and code.

// DEFINE: %{cpu} =
// DEFINE: %{asm} = bngrad-compile %s -o %t.s --mcpu=%{cpu} && FileCheck %s --input-file=%t.s --check-prefix=%{cpu}
// REDEFINE: %{cpu} = x86-64
// RUN: %{asm}
// x86-64-NOT: {{[yz]mm}}
// x86-64: movntps %xmm
// x86-64-NOT: {{[yz]mm}}
// REDEFINE: %{cpu} = x86-64-v3
// RUN: %{asm}
// x86-64-v3-NOT: zmm
// x86-64-v3: vmovntps %ymm
// x86-64-v3-NOT: zmm
// REDEFINE: %{cpu} = x86-64-v4
// RUN: %{asm}
// x86-64-v4: vmovntps %zmm

// RUN: bngrad-compile %s -o %t.s --mtriple=aarch64-linux-gnu
// RUN: FileCheck %s --input-file=%t.s --check-prefix=AARCH64
// AARCH64: stnp q{{[0-9]+}}, q
// RUN: bngrad-compile %s -o %t.o --mtriple=aarch64-linux-gnu --mcpu=neoverse-n1
// RUN: %llvm_prefix/bin/llvm-readelf -h %t.o | FileCheck %s --check-prefix=ELF
// ELF: Machine: AArch64

// SVE where the CPU says the length of its registers.
// REDEFINE: %{asm} = bngrad-compile %s -o %t.ll --mtriple=aarch64-linux-gnu --mcpu=%{cpu} && FileCheck %s --input-file=%t.ll --check-prefix=%{cpu}
// REDEFINE: %{cpu} = a64fx
// RUN: %{asm}
// a64fx: store <64 x float>
// a64fx: vscale_range(4,4)
// REDEFINE: %{cpu} = neoverse-v1
// RUN: %{asm}
// neoverse-v1: store <32 x float>
// neoverse-v1: vscale_range(2,2)
// REDEFINE: %{cpu} = neoverse-v2
// RUN: %{asm}
// neoverse-v2: store <16 x float>
// neoverse-v2-NOT: vscale_range
// RUN: bngrad-compile %s -o %t.s --mtriple=aarch64-linux-gnu --mcpu=a64fx
// RUN: FileCheck %s --input-file=%t.s --check-prefix=SVE
// SVE: stnt1w { z
// RUN: bngrad-compile %s -o %t.s --mtriple=aarch64-linux-gnu --mcpu=a64fx --mattr=-sve
// RUN: FileCheck %s --input-file=%t.s --check-prefix=AARCH64

// Text outputs name their target.
// RUN: bngrad-compile %s -o %t.ll --mcpu=x86-64-v3
// RUN: FileCheck %s --input-file=%t.ll --check-prefix=LL
// LL: target triple = "x86_64-{{.*}}linux{{.*}}"
// LL: "target-cpu"="x86-64-v3"
// RUN: bngrad-compile %s -o %t.mlir --mtriple=aarch64-linux-gnu
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=MLIR
// MLIR: llvm.target_triple = "aarch64-unknown-linux-gnu"

// A triple of this architecture still means this machine.
// RUN: bngrad-compile %s -o %t.ll --mtriple=x86_64-linux-gnu && FileCheck %s --input-file=%t.ll --check-prefix=HOST
// HOST-NOT: "target-cpu"="generic"
// HOST: "target-cpu"=

!d = tensor<64x64x112x112xf32>
!c = tensor<64xf32>
func.func @gradient(%dy: !d, %x: !d, %mean: !c, %variance: !c) -> (!d, !c, !c) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !c) variance(%variance : !c)
      : !d, !c, !c
  return %0#0, %0#1, %0#2 : !d, !c, !c
}
