// bf16 is rounded without a selection of bf16, which most CPUs would make a jump for each element: channels innermost,
// long and short rows of channels, and a neighbour that compares and selects bf16.

// DEFINE: %{cpu} = x86-64-v3
// DEFINE: %{check} = bngrad-compile %s --mcpu=%{cpu} -o %t.ll && FileCheck %s --input-file=%t.ll
// RUN: %{check}
// REDEFINE: %{cpu} = x86-64-v2
// RUN: %{check}
// REDEFINE: %{cpu} = x86-64-v4
// RUN: %{check}

// CHECK-NOT: select {{.*}} x bfloat>
// CHECK: define {{.*}}@rows
// CHECK-NOT: select {{.*}} x bfloat>
// CHECK: define {{.*}}@channels
// CHECK-NOT: select {{.*}} x bfloat>
// CHECK: define {{.*}}@tiles
// CHECK-NOT: select {{.*}} x bfloat>
// CHECK: define {{.*}}@neighbour
// CHECK-NOT: {{select|fcmp}} {{.*}} x bfloat>

!p = tensor<256xf32>
!rows = tensor<784x256xbf16>
func.func @rows(%dy: !rows, %x: !rows, %m: !p, %v: !p) -> (!rows, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !rows) input(%x : !rows) mean(%m : !p) variance(%v : !p) : !rows, !p, !p
  return %0#0, %0#1, %0#2 : !rows, !p, !p
}

!channels = tensor<16x256x56x56xbf16>
func.func @channels(%dy: !channels, %x: !channels, %m: !p, %v: !p) -> (!channels, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !channels) input(%x : !channels) mean(%m : !p) variance(%v : !p)
      : !channels, !p, !p
  return %0#0, %0#1, %0#2 : !channels, !p, !p
}

!tiles = tensor<64x256x7x7xbf16>
func.func @tiles(%dy: !tiles, %x: !tiles, %m: !p, %v: !p) -> (!tiles, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !tiles) input(%x : !tiles) mean(%m : !p) variance(%v : !p) : !tiles, !p, !p
  return %0#0, %0#1, %0#2 : !tiles, !p, !p
}

func.func @neighbour(%dy: !rows, %x: !rows, %m: !p, %v: !p) -> (!rows, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !rows) input(%x : !rows) mean(%m : !p) variance(%v : !p) : !rows, !p, !p
  %zero = arith.constant dense<0.0> : !rows
  %1 = arith.cmpf ogt, %x, %zero : !rows
  %2 = arith.select %1, %0#0, %zero : tensor<784x256xi1>, !rows
  %3 = arith.maximumf %2, %x : !rows
  return %3, %0#1, %0#2 : !rows, !p, !p
}
