// A mask with an element per channel is read from a table, under the schedules that have them, as any other operand of
// a channel is.

// DEFINE: %{entry} =
// DEFINE: %{schedule} =
// DEFINE: %{run} = bngrad-runner %s --entry=%{entry} --schedule='#bngrad.schedule<%{schedule}>' --check \
// DEFINE:   --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5 --arg=random:6:0.5:1.5 \
// DEFINE:   | FileCheck %s

// REDEFINE: %{entry} = rows
// REDEFINE: %{schedule} = rows, threads = 2, vector_bits = 256
// RUN: %{run}
// REDEFINE: %{entry} = tiles
// REDEFINE: %{schedule} = tiles, threads = 2, vector_bits = 256
// RUN: %{run}
// REDEFINE: %{schedule} = channels, threads = 2, vector_bits = 256
// RUN: %{run}

// CHECK: result 0 grad_input {{.*}} ok
// CHECK-NEXT: result 1 grad_scale {{.*}} ok
// CHECK-NEXT: result 2 grad_offset {{.*}} ok

!c = tensor<24xf32>
!k = tensor<24xi1>

#row = affine_map<(n, c) -> (n, c)>
#channel_of_row = affine_map<(n, c) -> (c)>
!r = tensor<70x24xf32>
func.func @rows(%dz: !r, %x: !r, %keep: !k, %scale: !c, %mean: !c, %variance: !c) -> (!r, !c, !c) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : !r
  %dy = linalg.generic {indexing_maps = [#row, #channel_of_row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%dz, %keep : !r, !k) outs(%empty : !r) {
  ^bb0(%a: f32, %k: i1, %out: f32):
    %0 = arith.select %k, %a, %zero : f32
    linalg.yield %0 : f32
  } -> !r
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !r) input(%x : !r) scale(%scale : !c) mean(%mean : !c)
      variance(%variance : !c) {epsilon = 1.0e-3 : f64} : !r, !c, !c
  return %0#0, %0#1, %0#2 : !r, !c, !c
}

#tile = affine_map<(n, c, s) -> (n, c, s)>
#channel_of_tile = affine_map<(n, c, s) -> (c)>
!t = tensor<9x24x13xf32>
func.func @tiles(%dz: !t, %x: !t, %keep: !k, %scale: !c, %mean: !c, %variance: !c) -> (!t, !c, !c) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : !t
  %dy = linalg.generic {indexing_maps = [#tile, #channel_of_tile, #tile], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%dz, %keep : !t, !k) outs(%empty : !t) {
  ^bb0(%a: f32, %k: i1, %out: f32):
    %0 = arith.select %k, %a, %zero : f32
    linalg.yield %0 : f32
  } -> !t
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) scale(%scale : !c) mean(%mean : !c)
      variance(%variance : !c) {epsilon = 1.0e-3 : f64} : !t, !c, !c
  return %0#0, %0#1, %0#2 : !t, !c, !c
}
