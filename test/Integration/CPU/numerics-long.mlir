// Sums of 10^7 and more elements of one sign; see numerics.mlir.

// REQUIRES: long
// DEFINE: %{run} = bngrad-runner %s --check --entry

// Functions of numerics.mlir.
// DEFINE: %{quick} = bngrad-runner %S/numerics.mlir --check --entry
// RUN: %{quick}=one_channel --arg=random:1:0:1 --arg=random:2:1:2 \
// RUN:   --arg=random:3 --arg=random:4
// RUN: %{quick}=three_channels --arg=random:1:0.70000002:0.7000001 --arg=random:2 \
// RUN:   --arg=random:3 --arg=random:4
// RUN: %{quick}=three_channels --arg=random:1:0:1 --arg=random:2:1:2 \
// RUN:   --arg=random:3 --arg=random:4
// RUN: %{quick}=short_rows --arg=random:1:0.1:0.1000000015 --arg=random:2 \
// RUN:   --arg=random:3 --arg=random:4
// RUN: %{quick}=rows_of_5 --schedule="#bngrad.schedule<channels>" \
// RUN:   --arg=random:1:0.1:0.1000000015 --arg=random:2 --arg=random:3 --arg=random:4

!p = tensor<3xf32>
!p1 = tensor<1xf32>

// RUN: %{run}=three_channels --arg=random:1:0.1:0.1000000015 --arg=random:2 \
// RUN:   --arg=random:3 --arg=random:4
// RUN: %{run}=three_channels --arg=random:1:0:1 --arg=random:2:1:2 \
// RUN:   --arg=random:3 --arg=random:4
!three = tensor<10x3x1000x1000xf32>
func.func @three_channels(%dy: !three, %x: !three, %m: !p, %v: !p)
    -> (!p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !three) input(%x : !three)
      mean(%m : !p) variance(%v : !p) : !three, !p, !p
  return %0#1, %0#2 : !p, !p
}

// The channel last, and f16 data.
// RUN: %{run}=rows --arg=random:1:0.7:0.7005 --arg=random:2 \
// RUN:   --arg=random:3 --arg=random:4
!rows = tensor<40000000x1xf16>
func.func @rows(%dy: !rows, %x: !rows, %m: !p1, %v: !p1) -> (!p1, !p1) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !rows) input(%x : !rows)
      mean(%m : !p1) variance(%v : !p1) : !rows, !p1, !p1
  return %0#1, %0#2 : !p1, !p1
}
