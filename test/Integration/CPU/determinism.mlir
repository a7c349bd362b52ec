// Results are bitwise identical from run to run and for any number of threads: the order of summation depends
// only on the schedule. A partial sum per thread, or partial sums added as they arrive, would differ.

// DEFINE: %{small} = --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4
// DEFINE: %{run} =
// DEFINE: %{threads} =
// DEFINE: %{results} = mkdir -p %t/%{run} && bngrad-runner %s --entry=layouts --threads=%{threads} \
// DEFINE:   --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5 --arg=random:6 --arg=random:7 --arg=random:8 \
// DEFINE:   --result=%t/%{run}/0.npy --result=%t/%{run}/1.npy --result=%t/%{run}/2.npy \
// DEFINE:   --result=%t/%{run}/3.npy --result=%t/%{run}/4.npy --result=%t/%{run}/5.npy \
// DEFINE:   --result=%t/%{run}/6.npy --result=%t/%{run}/7.npy --result=%t/%{run}/8.npy

// RUN: rm -rf %t
// REDEFINE: %{threads} = 1
// REDEFINE: %{run} = one
// RUN: %{results}
// REDEFINE: %{threads} = 2
// REDEFINE: %{run} = two
// RUN: %{results}
// REDEFINE: %{threads} = 3
// REDEFINE: %{run} = three
// RUN: %{results}
// REDEFINE: %{threads} = 7
// REDEFINE: %{run} = seven
// RUN: %{results}
// REDEFINE: %{run} = seven_again
// RUN: %{results}

// RUN: diff -r %t/one %t/two
// RUN: diff -r %t/one %t/three
// RUN: diff -r %t/one %t/seven
// RUN: diff -r %t/one %t/seven_again

// The same for loops that LLVM vectorizes: an element in the remainder of a loop is computed like any other.
// RUN: bngrad-runner %s --entry=small %{small} --threads=1 --schedule='#bngrad.schedule<loops>' \
// RUN:   --result=%t/a0.npy --result=%t/a1.npy --result=%t/a2.npy
// RUN: bngrad-runner %s --entry=small %{small} --threads=3 --schedule='#bngrad.schedule<loops>' \
// RUN:   --result=%t/b0.npy --result=%t/b1.npy --result=%t/b2.npy
// RUN: diff %t/a0.npy %t/b0.npy && diff %t/a1.npy %t/b1.npy && diff %t/a2.npy %t/b2.npy
// RUN: bngrad-runner %s --entry=uneven %{small} --threads=1 --result=%t/a0.npy
// RUN: bngrad-runner %s --entry=uneven %{small} --threads=2 --result=%t/b0.npy
// RUN: diff %t/a0.npy %t/b0.npy

!small = tensor<8x16xf32>
!p16 = tensor<16xf32>
func.func @small(%dy: !small, %x: !small, %m: !p16, %r: !p16) -> (!small, !p16, !p16) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !small) input(%x : !small) mean(%m : !p16) inv_std(%r : !p16)
      : !small, !p16, !p16
  return %0#0, %0#1, %0#2 : !small, !p16, !p16
}
!uneven = tensor<300x513xf64>
!p513 = tensor<513xf64>
func.func @uneven(%dy: !uneven, %x: !uneven, %m: !p513, %r: !p513) -> !uneven {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !uneven) input(%x : !uneven) mean(%m : !p513) inv_std(%r : !p513)
      : !uneven, !p513, !p513
  return %0#0 : !uneven
}

!nchw = tensor<8x16x31x33xf32>
!nhwc = tensor<9x31x33x16xbf16>
!rows = tensor<40001x16xf32>
!p = tensor<16xf32>

func.func @layouts(%dy0: !nchw, %x0: !nchw, %dy1: !nhwc, %x1: !nhwc, %dy2: !rows, %x2: !rows, %m: !p, %v: !p)
    -> (!nchw, !p, !p, !nhwc, !p, !p, !rows, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy0 : !nchw) input(%x0 : !nchw) mean(%m : !p)
      variance(%v : !p) : !nchw, !p, !p
  %1:3 = bngrad.batch_norm_backward grad_output(%dy1 : !nhwc) input(%x1 : !nhwc) mean(%m : !p)
      variance(%v : !p) {feature_dims = array<i64: 3>} : !nhwc, !p, !p
  %2:3 = bngrad.batch_norm_backward grad_output(%dy2 : !rows) input(%x2 : !rows) mean(%m : !p)
      variance(%v : !p) : !rows, !p, !p
  return %0#0, %0#1, %0#2, %1#0, %1#1, %1#2, %2#0, %2#1, %2#2 : !nchw, !p, !p, !nhwc, !p, !p, !rows, !p, !p
}

// One channel, so that only a split sum can use several threads.
// RUN: bngrad-runner %s --entry=one_channel --threads=1 --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --result=%t/channel1.npy
// RUN: bngrad-runner %s --entry=one_channel --threads=5 --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --result=%t/channel5.npy
// RUN: cmp %t/channel1.npy %t/channel5.npy

!one = tensor<300001x1xf32>
!p1 = tensor<1xf32>
func.func @one_channel(%dy: !one, %x: !one, %m: !p1, %v: !p1) -> !p1 {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !one) input(%x : !one) mean(%m : !p1)
      variance(%v : !p1) : !one, !p1, !p1
  return %0#1 : !p1
}
