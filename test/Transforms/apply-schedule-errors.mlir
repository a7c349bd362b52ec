// RUN: bngrad-opt %s --bngrad-apply-schedule --verify-diagnostics --remark-policy=all --remark-format=emitRemark --remarks-filter-missed=bngrad-apply-schedule
func.func @f(%x: memref<8x4xf32>, %o: memref<8xf32>) {
  // expected-remark @below {{expected every result of the reduction to be a sum with fastmath<reassoc>, indexed by the parallel loops}}
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<8x4xf32>) outs(%o : memref<8xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}
