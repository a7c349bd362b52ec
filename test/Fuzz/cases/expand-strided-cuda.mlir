// An expanded strided memref was rejected for a GPU.

// REQUIRES: numpy
// RUN: %python %bngrad_src_root/fuzz/programs/hunt.py --bin=%bngrad_obj_root/bin --replay=%s

// WAY: cuda chip=sm_120 schedule=#bngrad.schedule<two_pass,access_bits=64,block_accesses=1,sum_blocks=64,fma=true>
// PROGRAM: {"arguments": [{"shape": [9, 64], "element": "f32", "dynamic": [false, false], "role": "plain", "seed": 2018639887, "special": "", "layout": {"says": "static", "strides": [67, 1], "offset": 3}, "by_channel": [0, 1]}, {"shape": [9, 8, 1, 8], "element": "f32", "dynamic": [false, false, false, false], "role": "plain", "seed": 2018639888, "special": "", "layout": null, "by_channel": [0, 1]}, {"shape": [9, 8], "element": "f32", "dynamic": [false, false], "role": "plain", "seed": 2018639889, "special": "", "layout": null, "by_channel": [0, 1]}], "ops": [{"kind": "expand", "operands": [0], "attrs": {"groups": [[0], [1, 2, 3]], "shape": [9, 8, 1, 8], "unknown": [true, true, true, true]}}, {"kind": "sums", "operands": [3, 1, 2], "attrs": {"names": ["grad_output", "input", "mean"], "features": [0, 1]}}], "returns": [4], "form": "memref", "result_layouts": [null]}
// SEED: 22

func.func @f22(%a0: memref<9x64xf32, strided<[67, 1], offset: 3>>, %a1: memref<9x8x1x8xf32>, %a2: memref<9x8xf32>, %r0: memref<2x9x8xf32>) {
  %1 = bufferization.to_tensor %a0 restrict : memref<9x64xf32, strided<[67, 1], offset: 3>> to tensor<9x64xf32>
  %2 = bufferization.to_tensor %a1 restrict : memref<9x8x1x8xf32> to tensor<9x8x1x8xf32>
  %3 = bufferization.to_tensor %a2 restrict : memref<9x8xf32> to tensor<9x8xf32>
  %4 = tensor.expand_shape %1 [[0], [1, 2, 3]] output_shape [9, 8, 1, 8] : tensor<9x64xf32> into tensor<9x8x1x8xf32>
  %5:2 = bngrad.batch_norm_backward_reduce grad_output(%4 : tensor<9x8x1x8xf32>) input(%2 : tensor<9x8x1x8xf32>) mean(%3 : tensor<9x8xf32>) {feature_dims = array<i64: 0, 1>} : tensor<2x9x8xf32>, tensor<i64>
  bufferization.materialize_in_destination %5#0 in restrict writable %r0 : (tensor<2x9x8xf32>, memref<2x9x8xf32>) -> ()
  return
}
