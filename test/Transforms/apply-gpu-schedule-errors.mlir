// A schedule of a GPU, set by hand on loops that it cannot have: a remark, and loops of the host.

// RUN: bngrad-opt %s --bngrad-apply-schedule --split-input-file --verify-diagnostics --remark-policy=all --remark-format=emitRemark --remarks-filter-missed=bngrad-apply-schedule -o %t
// RUN: FileCheck %s --input-file=%t
// CHECK-NOT: gpu.launch
// RUN: not bngrad-opt %s --bngrad-apply-schedule=chip=sm_80 --split-input-file 2>&1 | FileCheck %s --check-prefix=OLD
// OLD: error: 'linalg.generic' op expected schedule 'one_pass' on sm_90 or newer, got sm_80

#data = affine_map<(d0, d1) -> (d0, d1)>
#feature = affine_map<(d0, d1) -> (d1)>
func.func @ordered(%a: memref<8x4xf32>, %b: memref<4xf32>) {
  // expected-remark @below {{loops of the host instead of kernels: expected every result of the reduction to be a sum with fastmath<reassoc>, indexed by the parallel loops}}
  // expected-remark @below {{left to upstream's loops: expected every result of the reduction to be a sum with fastmath<reassoc>, indexed by the parallel loops}}
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%a : memref<8x4xf32>) outs(%b : memref<4xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 64, block_accesses = 1024, sum_blocks = 16>} {
  ^bb0(%x: f32, %acc: f32):
    %0 = arith.addf %x, %acc : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(d0, d1) -> (d0, d1)>
#feature = affine_map<(d0, d1) -> (d1)>
func.func @maximum(%a: memref<8x4xf32>, %b: memref<4xf32>) {
  // expected-remark @below {{loops of the host instead of kernels: expected every result of the reduction to be a sum}}
  // expected-remark @below {{left to upstream's loops: expected every result of the reduction to be a sum}}
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%a : memref<8x4xf32>) outs(%b : memref<4xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 4>} {
  ^bb0(%x: f32, %acc: f32):
    %0 = arith.maximumf %x, %acc : f32
    linalg.yield %0 : f32
  }
  return
}
