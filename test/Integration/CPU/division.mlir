// Ops that may trap are executed only for elements, not for masked-off lanes.

// DEFINE: %{run} = bngrad-runner %s --check --arg=random:1:1:2 --arg=random:2 --arg=random:3 --arg=random:4:0.5:1.5
// RUN: %{run} | FileCheck %s
// RUN: %{run} --schedule='#bngrad.schedule<channels>' | FileCheck %s
// RUN: %{run} --schedule='#bngrad.schedule<tiles>' | FileCheck %s
// CHECK-COUNT-3: result {{.+}} ok

#data = affine_map<(n, c, s) -> (n, c, s)>
!t = tensor<2x9x37xf32>
!p = tensor<9xf32>
func.func @f(%a: !t, %x: !t, %mean: !p, %r: !p) -> (!t, !p, !p) {
  %c = arith.constant 2000000000 : i32
  %e = tensor.empty() : !t
  %dy = linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a : !t) outs(%e : !t) {
  ^bb0(%l: f32, %o: f32):
    %b = arith.bitcast %l : f32 to i32
    %0 = arith.divsi %c, %b : i32
    %1 = arith.sitofp %0 : i32 to f32
    linalg.yield %1 : f32
  } -> !t
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%mean : !p) inv_std(%r : !p) : !t, !p, !p
  return %0#0, %0#1, %0#2 : !t, !p, !p
}
