// A gradient whose data are a per-channel result of another one: every dim is a feature dim, so that each channel has one
// element. Threads without a channel must not read what the others write.

// DEFINE: %{run} = bngrad-runner %s --target=cuda-emulator --check
// RUN: %{run} --arg=random:1@16x5x7 --arg=random:2@16 --arg=random:3:0.5:1@16 --arg=random:4@16 | FileCheck %s
// RUN: %{run} --arg=random:1@17x5x7 --arg=random:2@17 --arg=random:3:0.5:1@17 --arg=random:4@17 | FileCheck %s
// RUN: %{run} --arg=random:1@33x5x7 --arg=random:2@33 --arg=random:3:0.5:1@33 --arg=random:4@33 | FileCheck %s
// RUN: %{run} --arg=random:1@64x5x7 --arg=random:2@64 --arg=random:3:0.5:1@64 --arg=random:4@64 | FileCheck %s
// CHECK: result 0 grad_input {{.*}} ok

!d = tensor<?x?x?xf32>
!p = tensor<?xf32>

func.func @chain(%x: !d, %s: !p, %m: !p, %v: !p) -> !p {
  %a, %b, %c = bngrad.batch_norm_backward grad_output(%x : !d) input(%x : !d) scale(%s : !p) mean(%s : !p)
      inv_std(%m : !p) {feature_dims = array<i64: 0>} : !d, !p, !p
  %d, %e, %g = bngrad.batch_norm_backward grad_output(%b : !p) input(%v : !p) mean(%m : !p) variance(%m : !p)
      {feature_dims = array<i64: 0>, epsilon = 1.0e-5 : f64} : !p, !p, !p
  return %d : !p
}
