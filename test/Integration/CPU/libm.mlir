// A fused function without an intrinsic: a call of libm for each element of a vector; and one that upstream lowers to
// other ops.

// REQUIRES: numpy
// DEFINE: %{run} = bngrad-runner %s --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4:0.5:1.5
// RUN: rm -rf %t && mkdir %t
// RUN: %{run} --schedule='#bngrad.schedule<loops>' --result=%t/a.npy --result=%t/b.npy
// RUN: %{run} --schedule='#bngrad.schedule<channels>' --result=%t/x.npy --result=%t/y.npy
// RUN: %python %S/compare.py %t/a.npy %t/x.npy %t/b.npy %t/y.npy
// RUN: %{run} --schedule='#bngrad.schedule<tiles>' --result=%t/x.npy --result=%t/y.npy
// RUN: %python %S/compare.py %t/a.npy %t/x.npy %t/b.npy %t/y.npy

!t = tensor<3x9x37xf32>
!p = tensor<9xf32>
func.func @f(%dz: !t, %x: !t, %mean: !p, %r: !p) -> (!t, !p) {
  %erf = math.erf %dz : !t
  %low = arith.constant dense<-0.5> : !t
  %high = arith.constant dense<0.25> : !t
  %dy = math.clampf %erf to [%low, %high] : !t
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%mean : !p) inv_std(%r : !p) : !t, !p, !p
  return %0#0, %0#1 : !t, !p
}
