// RUN: bngrad-opt %s --bngrad-apply-schedule="device-arguments=true" --canonicalize | FileCheck %s

// The wait for the stream stays, where every launch is inside a test of alignment and the group needs no buffer of its
// own: a wait for the token of another wait would be folded away.
// CHECK-LABEL: func.func @no_buffers(
// CHECK:         gpu.wait async
// CHECK:         scf.if
// CHECK:           gpu.launch async {{.*}} function(@one_pass)
// CHECK:         } else {
// CHECK:           gpu.launch async {{.*}} function(@reduce)
// CHECK:         gpu.wait [%{{.+}}]
// CHECK-NEXT:    return
#id = affine_map<(n, c, s) -> (n, c, s)>
#channel = affine_map<(n, c, s) -> (c)>
!t = memref<4x8x32xf32>
!p = memref<8xf32>
func.func @no_buffers(%x: !t, %sum: !p, %o: !t) {
  scf.execute_region no_inline {
  linalg.generic {indexing_maps = [#id, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : !t) outs(%sum : !p)
      attrs = {bngrad.schedule = #bngrad.schedule<one_pass, threads = 64, vector_bits = 128, columns = 1, cluster = 2>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %sum : !t, !p) outs(%o : !t)
      attrs = {bngrad.schedule = #bngrad.schedule<one_pass, threads = 64, vector_bits = 128, columns = 1, cluster = 2>} {
  ^bb0(%e: f32, %s: f32, %u: f32):
    %0 = arith.subf %e, %s : f32
    linalg.yield %0 : f32
  }
    scf.yield
  }
  return
}
