// A result that is returned twice is written twice: to each caller's buffer.

// RUN: bngrad-runner %s --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 | FileCheck %s
// CHECK: result 0 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 1 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 2 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 3 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok

!d = tensor<5x7xf32>
!p = tensor<7xf32>
func.func @twice(%dy: !d, %x: !d, %m: !p, %v: !p) -> (!p, !d, !p, !d) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  return %0#1, %0#0, %0#1, %0#0 : !p, !d, !p, !d
}
