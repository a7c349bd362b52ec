// The compiler crashed on a one-pass kernel with a strided result.

// REQUIRES: numpy
// RUN: %python %bngrad_src_root/fuzz/programs/hunt.py --bin=%bngrad_obj_root/bin --replay=%s

// WAY: cuda chip=sm_90 schedule=#bngrad.schedule<one_pass,block_threads=64,block_channels=2,fma=true>
// PROGRAM: {"arguments": [{"shape": [8, 3, 1, 3], "element": "f32", "dynamic": [false, false, false, false], "role": "plain", "seed": 611133815, "special": "", "layout": null, "by_channel": [2, 3]}, {"shape": [1, 3], "element": "f32", "dynamic": [false, false], "role": "plain", "seed": 611133816, "special": "", "layout": {"says": "dynamic", "strides": [6, 1], "offset": 16}, "by_channel": [0]}, {"shape": [1, 3], "element": "f32", "dynamic": [false, false], "role": "plain", "seed": 611133817, "special": "", "layout": {"says": "identity", "strides": [3, 1], "offset": 0}, "by_channel": [0]}, {"shape": [1, 3], "element": "f32", "dynamic": [false, false], "role": "positive", "seed": 611133818, "special": "", "layout": {"says": "dynamic", "strides": [1, 2], "offset": 16}, "by_channel": [0]}], "ops": [{"kind": "gradient", "operands": [0, 0, 1, 2, 3], "attrs": {"names": ["grad_output", "input", "scale", "mean", "inv_std"], "features": [2, 3], "epsilon": 0.0, "statistics": "batch", "elements": ["f32", "f32", "f32"]}}], "returns": [4], "form": "memref", "result_layouts": [{"says": "static", "strides": [27, 9, 9, 2], "offset": 0}], "joined": -1}
// SEED: 2082

func.func @f2082(%a0: memref<8x3x1x3xf32>, %a1: memref<1x3xf32, strided<[?, ?], offset: ?>>, %a2: memref<1x3xf32>, %a3: memref<1x3xf32, strided<[?, ?], offset: ?>>, %r0: memref<8x3x1x3xf32, strided<[27, 9, 9, 2], offset: 0>>) {
  %1 = bufferization.to_tensor %a0 restrict : memref<8x3x1x3xf32> to tensor<8x3x1x3xf32>
  %2 = bufferization.to_tensor %a1 restrict : memref<1x3xf32, strided<[?, ?], offset: ?>> to tensor<1x3xf32>
  %3 = bufferization.to_tensor %a2 restrict : memref<1x3xf32> to tensor<1x3xf32>
  %4 = bufferization.to_tensor %a3 restrict : memref<1x3xf32, strided<[?, ?], offset: ?>> to tensor<1x3xf32>
  %5:3 = bngrad.batch_norm_backward grad_output(%1 : tensor<8x3x1x3xf32>) input(%1 : tensor<8x3x1x3xf32>) scale(%2 : tensor<1x3xf32>) mean(%3 : tensor<1x3xf32>) inv_std(%4 : tensor<1x3xf32>) {feature_dims = array<i64: 2, 3>} : tensor<8x3x1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>
  bufferization.materialize_in_destination %5#0 in restrict writable %r0 : (tensor<8x3x1x3xf32>, memref<8x3x1x3xf32, strided<[27, 9, 9, 2], offset: 0>>) -> ()
  return
}
