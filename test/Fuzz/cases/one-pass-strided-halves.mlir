// As one-pass-strided-argument, with 16-bit elements and a cluster.

// REQUIRES: numpy
// RUN: %python %bngrad_src_root/fuzz/programs/hunt.py --bin=%bngrad_obj_root/bin --replay=%s

// WAY: cuda chip=sm_90 schedule=#bngrad.schedule<one_pass,block_threads=64,access_bits=64,block_channels=4,cluster_blocks=2,fma=true>
// PROGRAM: {"arguments": [{"shape": [4, 2, 2, 8], "element": "f32", "dynamic": [false, false, false, false], "role": "plain", "seed": 2136924499, "special": "", "layout": {"says": "identity", "strides": [32, 16, 8, 1], "offset": 0}, "by_channel": [3]}, {"shape": [8], "element": "f32", "dynamic": [false], "role": "plain", "seed": 2136924500, "special": "", "layout": null, "by_channel": [0]}, {"shape": [8], "element": "f32", "dynamic": [false], "role": "positive", "seed": 2136924501, "special": "", "layout": {"says": "identity", "strides": [1], "offset": 0}, "by_channel": [0]}], "ops": [{"kind": "gradient", "operands": [0, 0, 1, 2], "attrs": {"names": ["grad_output", "input", "mean", "inv_std"], "features": [3], "epsilon": 0.0, "statistics": "batch", "elements": ["f32", "f32", "f32"]}}], "returns": [3], "form": "memref", "result_layouts": [{"says": "dynamic", "strides": [63, 756, 3, 7], "offset": 1}], "joined": -1}
// SEED: 3162

func.func @f3162(%a0: memref<4x2x2x8xf32>, %a1: memref<8xf32>, %a2: memref<8xf32>, %r0: memref<4x2x2x8xf32, strided<[?, ?, ?, ?], offset: ?>>) {
  %1 = bufferization.to_tensor %a0 restrict : memref<4x2x2x8xf32> to tensor<4x2x2x8xf32>
  %2 = bufferization.to_tensor %a1 restrict : memref<8xf32> to tensor<8xf32>
  %3 = bufferization.to_tensor %a2 restrict : memref<8xf32> to tensor<8xf32>
  %4:3 = bngrad.batch_norm_backward grad_output(%1 : tensor<4x2x2x8xf32>) input(%1 : tensor<4x2x2x8xf32>) mean(%2 : tensor<8xf32>) inv_std(%3 : tensor<8xf32>) {feature_dims = array<i64: 3>} : tensor<4x2x2x8xf32>, tensor<8xf32>, tensor<8xf32>
  bufferization.materialize_in_destination %4#0 in restrict writable %r0 : (tensor<4x2x2x8xf32>, memref<4x2x2x8xf32, strided<[?, ?, ?, ?], offset: ?>>) -> ()
  return
}
