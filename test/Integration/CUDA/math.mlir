// Functions of the CUDA toolkit's libdevice in a kernel: the emulator computes the same results as the CPU.

// REQUIRES: libdevice, numpy
// DEFINE: %{schedule} =
// DEFINE: %{entry} =
// DEFINE: %{run} = bngrad-runner %s --entry=%{entry} --arg=random:1:-2:2 --arg=random:2 --arg=random:3:0.5:1.5 --arg=random:4
// DEFINE: %{compare} = rm -rf %t && mkdir %t && \
// DEFINE:   %{run} --result=%t/a.npy --result=%t/b.npy && \
// DEFINE:   %{run} --target=cuda-emulator --schedule='#bngrad.schedule<%{schedule}>' --result=%t/x.npy --result=%t/y.npy && \
// DEFINE:   %python %S/../CPU/compare.py %t/a.npy %t/x.npy %t/b.npy %t/y.npy

// REDEFINE: %{entry} = producer
// REDEFINE: %{schedule} = two_pass, block_threads = 64, access_bits = 128, block_accesses = 1024, sum_blocks = 16
// RUN: %{compare}
// REDEFINE: %{schedule} = one_pass, block_threads = 64, access_bits = 128, block_channels = 1, cluster_blocks = 2
// RUN: %{compare}
// REDEFINE: %{entry} = consumer
// RUN: %{compare}
// REDEFINE: %{entry} = others
// RUN: %{compare}

// The kernel contains the function.
// RUN: bngrad-opt %s --bngrad-cuda-pipeline=chip=sm_90 | FileCheck %s
// CHECK: gpu.binary @producer
// CHECK-SAME: ex2.approx
// CHECK-NOT: __nv_

!t = tensor<5x6x31xf32>
!p = tensor<6xf32>
func.func @producer(%dz: !t, %x: !t, %r: !p, %m: !p) -> (!t, !p) {
  %e = math.exp %dz : !t
  %dy = math.tanh %e : !t
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%m : !p) inv_std(%r : !p) : !t, !p, !p
  return %0#0, %0#1 : !t, !p
}

func.func @consumer(%dy: !t, %x: !t, %r: !p, %m: !p) -> (!t, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%m : !p) inv_std(%r : !p) : !t, !p, !p
  %1 = math.exp %0#0 : !t
  return %1, %0#1 : !t, !p
}

func.func @others(%dz: !t, %x: !t, %r: !p, %m: !p) -> (!t, !p) {
  %a = math.atan %dz : !t
  %c = math.erf %x : !t
  %d = math.absf %a : !t
  %sqrt = math.sqrt %d : !t
  %floor = math.floor %dz : !t
  %dy0 = arith.addf %sqrt, %c : !t
  %dy = arith.addf %dy0, %floor : !t
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%m : !p) inv_std(%r : !p) : !t, !p, !p
  return %0#0, %0#1 : !t, !p
}
