// Readers of a sum, or of a value computed from it, that do not belong to its group: another shape, another index,
// another order of loops. None of them may run inside the gradient's loops.

// DEFINE: %{entry} =
// DEFINE: %{schedule} =
// DEFINE: %{check} = bngrad-runner %s --check --entry=%{entry} --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4:0.5:1.5 \
// DEFINE:   --arg=random:5 %{schedule} | FileCheck %s --implicit-check-not=FAILED
// CHECK: result 0 {{.+}} ok

// REDEFINE: %{entry} = other_size
// RUN: %{check}
// REDEFINE: %{entry} = other_channel
// RUN: %{check}
// REDEFINE: %{entry} = other_order
// RUN: %{check}
// REDEFINE: %{entry} = dynamic
// RUN: bngrad-runner %s --check --entry=%{entry} --arg=random:1@5x16x9 --arg=random:2@5x16x9 --arg=random:3@16 --arg=random:4:0.5:1.5@16 \
// RUN:   --arg=random:5@3x16x40 | FileCheck %s --implicit-check-not=FAILED

// REDEFINE: %{schedule} = --schedule='#bngrad.schedule<channels>'
// REDEFINE: %{entry} = other_size
// RUN: %{check}
// REDEFINE: %{entry} = other_channel
// RUN: %{check}
// REDEFINE: %{schedule} = --schedule='#bngrad.schedule<rows>'
// RUN: %{check}
// REDEFINE: %{schedule} = --schedule='#bngrad.schedule<tiles>'
// RUN: %{check}

!t = tensor<16x16x600xf32>
!w = tensor<2x16x33xf32>
!p = tensor<16xf32>
func.func @other_size(%dy: !t, %x: !t, %mean: !p, %r: !p, %w: !w) -> (!t, !w) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%mean : !p) inv_std(%r : !p) : !t, !p, !p
  %e = tensor.empty() : !w
  %b = linalg.broadcast ins(%0#1 : !p) outs(%e : !w) dimensions = [0, 2]
  %1 = arith.mulf %w, %b : !w
  return %0#0, %1 : !t, !w
}

func.func @other_channel(%dy: !t, %x: !t, %mean: !p, %r: !p, %w: !w) -> !t {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%mean : !p) inv_std(%r : !p) : !t, !p, !p
  %e = tensor.empty() : !t
  %b = linalg.broadcast ins(%0#2 : !p) outs(%e : !t) dimensions = [1, 2]
  %1 = arith.addf %0#0, %b : !t
  return %1 : !t
}

#data = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#swapped = affine_map<(d0, d1, d2, d3) -> (d2, d1)>
#identity = affine_map<(d0, d1) -> (d0, d1)>
!d = tensor<4x3x50x7xf32>
!c = tensor<50x3xf32>
func.func @other_order(%x: !d, %s: !c, %unused0: !p, %unused1: !p, %unused2: !p) -> !d {
  %e = tensor.empty() : !d
  %ce = tensor.empty() : !c
  %c = linalg.generic {indexing_maps = [#identity, #identity], iterator_types = ["parallel", "parallel"]}
      ins(%s : !c) outs(%ce : !c) {
  ^bb0(%l: f32, %o: f32):
    %0 = arith.addf %l, %l : f32
    linalg.yield %0 : f32
  } -> !c
  %y = linalg.generic {indexing_maps = [#data, #swapped, #data], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %c : !d, !c) outs(%e : !d) {
  ^bb0(%l: f32, %k: f32, %o: f32):
    %0 = arith.mulf %l, %k : f32
    linalg.yield %0 : f32
  } -> !d
  return %y : !d
}

// Dynamic sizes are equal only if both read the same data.
!td = tensor<?x?x?xf32>
!pd = tensor<?xf32>
func.func @dynamic(%dy: !td, %x: !td, %mean: !pd, %r: !pd, %w: !td) -> (!td, !td) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !td) input(%x : !td) mean(%mean : !pd) inv_std(%r : !pd) : !td, !pd, !pd
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %w, %c0 : !td
  %c = tensor.dim %w, %c1 : !td
  %s = tensor.dim %w, %c2 : !td
  %e = tensor.empty(%n, %c, %s) : !td
  %b = linalg.broadcast ins(%0#1 : !pd) outs(%e : !td) dimensions = [0, 2]
  %1 = arith.mulf %w, %b : !td
  return %0#0, %1 : !td, !td
}
