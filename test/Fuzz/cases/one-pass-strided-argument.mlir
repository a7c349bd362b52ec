// A one-pass kernel accessed shared memory out of bounds if an argument was strided.

// REQUIRES: numpy
// RUN: %python %bngrad_src_root/fuzz/programs/hunt.py --bin=%bngrad_obj_root/bin --replay=%s

// WAY: cuda chip=sm_90 schedule=#bngrad.schedule<one_pass,block_threads=64,block_channels=2,fma=true>
// PROGRAM: {"arguments": [{"shape": [6, 1, 1, 4, 1, 5], "element": "f32", "dynamic": [false, false, false, false, false, false], "role": "plain", "seed": 678321955, "special": "", "layout": null, "by_channel": [3]}, {"shape": [6, 1, 1, 4, 1, 5], "element": "f32", "dynamic": [false, false, false, false, false, false], "role": "plain", "seed": 678321956, "special": "", "layout": {"says": "dynamic", "strides": [54, 54, -54, 12, 6, 1], "offset": 3}, "by_channel": [3]}, {"shape": [4], "element": "f32", "dynamic": [false], "role": "plain", "seed": 678321957, "special": "", "layout": null, "by_channel": [0]}, {"shape": [4], "element": "f32", "dynamic": [false], "role": "positive", "seed": 678321958, "special": "", "layout": null, "by_channel": [0]}], "ops": [{"kind": "gradient", "operands": [0, 1, 2, 3], "attrs": {"names": ["grad_output", "input", "mean", "inv_std"], "features": [3], "epsilon": 0.0, "statistics": "batch", "elements": ["f32", "f32", "f32"]}}], "returns": [4], "form": "memref", "result_layouts": [{"says": "identity", "strides": [20, 20, 20, 5, 5, 1], "offset": 0}], "joined": -1}
// SEED: 2083

func.func @f2083(%a0: memref<6x1x1x4x1x5xf32>, %a1: memref<6x1x1x4x1x5xf32, strided<[?, ?, ?, ?, ?, ?], offset: ?>>, %a2: memref<4xf32>, %a3: memref<4xf32>, %r0: memref<6x1x1x4x1x5xf32>) {
  %1 = bufferization.to_tensor %a0 restrict : memref<6x1x1x4x1x5xf32> to tensor<6x1x1x4x1x5xf32>
  %2 = bufferization.to_tensor %a1 restrict : memref<6x1x1x4x1x5xf32, strided<[?, ?, ?, ?, ?, ?], offset: ?>> to tensor<6x1x1x4x1x5xf32>
  %3 = bufferization.to_tensor %a2 restrict : memref<4xf32> to tensor<4xf32>
  %4 = bufferization.to_tensor %a3 restrict : memref<4xf32> to tensor<4xf32>
  %5:3 = bngrad.batch_norm_backward grad_output(%1 : tensor<6x1x1x4x1x5xf32>) input(%2 : tensor<6x1x1x4x1x5xf32>) mean(%3 : tensor<4xf32>) inv_std(%4 : tensor<4xf32>) {feature_dims = array<i64: 3>} : tensor<6x1x1x4x1x5xf32>, tensor<4xf32>, tensor<4xf32>
  bufferization.materialize_in_destination %5#0 in restrict writable %r0 : (tensor<6x1x1x4x1x5xf32>, memref<6x1x1x4x1x5xf32>) -> ()
  return
}
