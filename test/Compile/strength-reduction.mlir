// Code for x86 is generated without strength reduction of loops, as by llc without it: that takes a sixth off the time
// to compile. A pass is omitted by its name, which this test checks.

// RUN: bngrad-compile %s --mtriple=x86_64-linux-gnu --mcpu=skylake-avx512 -o %t.s
// RUN: bngrad-compile %s --mtriple=x86_64-linux-gnu --mcpu=skylake-avx512 -o %t.ll
// RUN: %llvm_prefix/bin/llc -O2 -relocation-model=pic %t.ll -o %t-with.s
// RUN: %llvm_prefix/bin/llc -O2 -relocation-model=pic -disable-lsr %t.ll -o %t-without.s
// RUN: %python %S/Inputs/closer.py %t.s %t-without.s %t-with.s

!data = tensor<32x56x56x64xf32>
!vector = tensor<64xf32>

func.func @gradient(%dy: !data, %x: !data, %scale: !vector, %mean: !vector, %variance: !vector) -> (!data, !vector) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !data) input(%x : !data) scale(%scale : !vector) mean(%mean : !vector)
      variance(%variance : !vector) {feature_dims = array<i64: 3>} : !data, !vector, !vector
  return %0#0, %0#1 : !data, !vector
}
