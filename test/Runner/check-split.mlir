// --check supports the halves of a gradient: the sums of a reduce, added or not, have errors, which
// propagate through elemt and through the per-channel ops for grad_scale and grad_offset.

// DEFINE: %{data} = --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5

// RUN: bngrad-opt %s --bngrad-split -o %t
// RUN: grep -q 'elemt.*sums' %t
// RUN: bngrad-runner %t --entry=batch --check %{data} --arg=random:6 | FileCheck %s
// RUN: bngrad-runner %t --entry=global --check %{data} | FileCheck %s
// RUN: bngrad-runner %t --entry=dynamic --check --arg=random:1@7x3x5 --arg=random:2@7x3x5 --arg=random:3 --arg=random:4 \
// RUN:   | FileCheck %s
// RUN: bngrad-runner %t --entry=dynamic --check --arg=random:1@7x3x0 --arg=random:2@7x3x0 --arg=random:3 --arg=random:4 \
// RUN:   | FileCheck %s
// CHECK: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 1 value max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 2 value max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NOT: {{.}}

!d = tensor<8x3x5xf32>
!p = tensor<3xf32>
func.func @batch(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p, %k: tensor<8x3x5xi1>) -> (!d, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) mask(%k : tensor<8x3x5xi1>) {epsilon = 1.0e-5 : f64} : !d, !p, !p
  return %0#0, %0#1, %0#2 : !d, !p, !p
}

func.func @global(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> (!d, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) {statistics = #bngrad.statistics<global>} : !d, !p, !p
  return %0#0, %0#1, %0#2 : !d, !p, !p
}

!any = tensor<?x3x?xbf16>
func.func @dynamic(%dy: !any, %x: !any, %m: !p, %r: !p) -> (!any, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !any) input(%x : !any) mean(%m : !p) inv_std(%r : !p)
      : !any, !p, !p
  return %0#0, %0#1, %0#2 : !any, !p, !p
}

// Two uneven shards: sums and counts are added, each shard has its part of grad_input.
// RUN: bngrad-runner %s --entry=shards --check %{data} | FileCheck %s --check-prefix=SHARDS
// SHARDS: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// SHARDS-NEXT: result 1 value max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// SHARDS-NEXT: result 2 value max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// SHARDS-NEXT: result 3 value max_error 0 bound 0 ok
// SHARDS-NOT: {{.}}
!d0 = tensor<3x3x5xf32>
!d1 = tensor<5x3x5xf32>
!s = tensor<2x3xf32>
!n = tensor<i64>
func.func @shards(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> (!d0, !d, !s, !n) {
  %dy0 = tensor.extract_slice %dy[0, 0, 0] [3, 3, 5] [1, 1, 1] : !d to !d0
  %dy1 = tensor.extract_slice %dy[3, 0, 0] [5, 3, 5] [1, 1, 1] : !d to !d1
  %x0 = tensor.extract_slice %x[0, 0, 0] [3, 3, 5] [1, 1, 1] : !d to !d0
  %x1 = tensor.extract_slice %x[3, 0, 0] [5, 3, 5] [1, 1, 1] : !d to !d1
  %s0, %n0 = bngrad.batch_norm_backward_reduce grad_output(%dy0 : !d0) input(%x0 : !d0) mean(%m : !p) : !s, !n
  %s1, %n1 = bngrad.batch_norm_backward_reduce grad_output(%dy1 : !d1) input(%x1 : !d1) mean(%m : !p) : !s, !n
  %s = arith.addf %s0, %s1 : !s
  %n = arith.addi %n0, %n1 : !n
  %dx0 = bngrad.batch_norm_backward_elemt grad_output(%dy0 : !d0) input(%x0 : !d0) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) sums(%s : !s) count(%n : !n) : !d0
  %dx1 = bngrad.batch_norm_backward_elemt grad_output(%dy1 : !d1) input(%x1 : !d1) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) sums(%s : !s) count(%n : !n) : !d1
  %dx_first = tensor.insert_slice %dx0 into %x[0, 0, 0] [3, 3, 5] [1, 1, 1] : !d0 into !d
  %dx = tensor.insert_slice %dx1 into %dx_first[3, 0, 0] [5, 3, 5] [1, 1, 1] : !d1 into !d
  return %dx0, %dx, %s, %n : !d0, !d, !s, !n
}
