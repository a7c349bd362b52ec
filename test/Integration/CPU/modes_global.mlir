// Constant statistics with every set of optional operands: grad_input does not depend on the sums. A sum in
// it, or a dropped scale, epsilon or mask, exceeds the bound.

// DEFINE: %{check} = bngrad-runner %s --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4
// RUN: %{check} --entry=variance | FileCheck %s
// RUN: %{check} --arg=random:5 --entry=variance_mask | FileCheck %s
// RUN: %{check} --arg=random:5 --entry=variance_scale | FileCheck %s
// RUN: %{check} --arg=random:5 --arg=random:6 --entry=variance_scale_mask | FileCheck %s
// RUN: %{check} --entry=inv_std | FileCheck %s
// RUN: %{check} --arg=random:5 --entry=inv_std_mask | FileCheck %s
// RUN: %{check} --arg=random:5 --entry=inv_std_scale | FileCheck %s
// RUN: %{check} --arg=random:5 --arg=random:6 --entry=inv_std_scale_mask | FileCheck %s

// CHECK: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 1 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 2 grad_offset max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NOT: {{.}}

!d = tensor<5x7x3x9xf32>
!p = tensor<7xf32>
!k = tensor<5x7x3x9xi1>

func.func @variance(%dy: !d, %x: !d, %m: !p, %v: !p) -> (!d, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p)
      variance(%v : !p) {epsilon = 0.25, statistics = #bngrad.statistics<global>} : !d, !p, !p
  return %0#0, %0#1, %0#2 : !d, !p, !p
}

func.func @variance_mask(%dy: !d, %x: !d, %m: !p, %v: !p, %k: !k) -> (!d, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p)
      variance(%v : !p) mask(%k : !k) {epsilon = 0.25, statistics = #bngrad.statistics<global>} : !d, !p, !p
  return %0#0, %0#1, %0#2 : !d, !p, !p
}

func.func @variance_scale(%dy: !d, %x: !d, %m: !p, %v: !p, %g: !p) -> (!d, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) {epsilon = 0.25, statistics = #bngrad.statistics<global>} : !d, !p, !p
  return %0#0, %0#1, %0#2 : !d, !p, !p
}

func.func @variance_scale_mask(%dy: !d, %x: !d, %m: !p, %v: !p, %g: !p, %k: !k) -> (!d, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) mask(%k : !k) {epsilon = 0.25, statistics = #bngrad.statistics<global>} : !d, !p, !p
  return %0#0, %0#1, %0#2 : !d, !p, !p
}

func.func @inv_std(%dy: !d, %x: !d, %m: !p, %v: !p) -> (!d, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p)
      inv_std(%v : !p) {statistics = #bngrad.statistics<global>} : !d, !p, !p
  return %0#0, %0#1, %0#2 : !d, !p, !p
}

func.func @inv_std_mask(%dy: !d, %x: !d, %m: !p, %v: !p, %k: !k) -> (!d, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p)
      inv_std(%v : !p) mask(%k : !k) {statistics = #bngrad.statistics<global>} : !d, !p, !p
  return %0#0, %0#1, %0#2 : !d, !p, !p
}

func.func @inv_std_scale(%dy: !d, %x: !d, %m: !p, %v: !p, %g: !p) -> (!d, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      inv_std(%v : !p) {statistics = #bngrad.statistics<global>} : !d, !p, !p
  return %0#0, %0#1, %0#2 : !d, !p, !p
}

func.func @inv_std_scale_mask(%dy: !d, %x: !d, %m: !p, %v: !p, %g: !p, %k: !k) -> (!d, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      inv_std(%v : !p) mask(%k : !k) {statistics = #bngrad.statistics<global>} : !d, !p, !p
  return %0#0, %0#1, %0#2 : !d, !p, !p
}
