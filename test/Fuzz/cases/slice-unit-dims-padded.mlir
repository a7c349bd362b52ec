// As slice-unit-dims, padded, for a GPU: the lowering exhausted memory.

// REQUIRES: numpy
// RUN: %python %bngrad_src_root/fuzz/programs/hunt.py --bin=%bngrad_obj_root/bin --replay=%s

// WAY: cuda chip=sm_75 schedule=#bngrad.schedule<two_pass,block_threads=64,block_accesses=1,sum_blocks=4,fma=true>
// PROGRAM: {"arguments": [{"shape": [2, 3, 2, 1], "element": "f32", "dynamic": [false, false, false, false], "role": "plain", "seed": 77, "special": "", "layout": null, "by_channel": [0]}], "ops": [{"kind": "slice", "operands": [0], "attrs": {"offsets": [1, 0, 1, 0], "sizes": [1, 2, 1, 1], "strides": [2, 2, 2, 1], "dropped": [2], "unknown": [false, false, false, false], "moving": [false, false, false, false]}}, {"kind": "pad", "operands": [1], "attrs": {"low": [0, 1, 0], "high": [1, 0, 0], "value": 2.0}}], "returns": [2], "form": "tensor", "result_layouts": []}
// SEED: 98

func.func @f98(%a0: tensor<2x3x2x1xf32>) -> (tensor<2x3x1xf32>) {
  %1 = tensor.extract_slice %a0[1, 0, 1, 0] [1, 2, 1, 1] [2, 2, 2, 1] : tensor<2x3x2x1xf32> to tensor<1x2x1xf32>
  %2 = arith.constant 2.000000e+00 : f32
  %3 = tensor.pad %1 low[0, 1, 0] high[1, 0, 0] {
  ^bb0(%p3_0: index, %p3_1: index, %p3_2: index):
    tensor.yield %2 : f32
  } : tensor<1x2x1xf32> to tensor<2x3x1xf32>
  return %3 : tensor<2x3x1xf32>
}
