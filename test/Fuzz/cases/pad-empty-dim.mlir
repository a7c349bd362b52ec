// A pad of a dim of size 0 was rejected: an empty insertion at its end.

// REQUIRES: numpy
// RUN: %python %bngrad_src_root/fuzz/programs/hunt.py --bin=%bngrad_obj_root/bin --replay=%s

// WAY: cpu threads=1
// PROGRAM: {"arguments": [{"shape": [0, 7, 1, 1], "element": "f32", "dynamic": [false, false, false, false], "role": "plain", "seed": 1336108309, "special": "", "layout": null, "by_channel": [0, 1, 2, 3]}, {"shape": [1, 8, 3, 1], "element": "f32", "dynamic": [false, false, false, false], "role": "plain", "seed": 1336108310, "special": "", "layout": null, "by_channel": [0, 1, 2, 3]}, {"shape": [1, 8, 3, 1], "element": "f32", "dynamic": [false, false, false, false], "role": "plain", "seed": 1336108311, "special": "", "layout": null, "by_channel": [0, 1, 2, 3]}, {"shape": [1, 8, 3, 1], "element": "f32", "dynamic": [false, false, false, false], "role": "positive", "seed": 1336108312, "special": "", "layout": null, "by_channel": [0, 1, 2, 3]}], "ops": [{"kind": "pad", "operands": [0], "attrs": {"low": [1, 1, 1, 0], "high": [0, 0, 1, 0], "value": 2.0}}, {"kind": "gradient", "operands": [4, 1, 2, 3], "attrs": {"names": ["grad_output", "input", "mean", "variance"], "features": [0, 1, 2, 3], "epsilon": 0.0, "statistics": "batch", "elements": ["f32", "f32", "f32"]}}], "returns": [7], "form": "tensor", "result_layouts": [], "joined": -1}
// SEED: 86

func.func @f86(%a0: tensor<0x7x1x1xf32>, %a1: tensor<1x8x3x1xf32>, %a2: tensor<1x8x3x1xf32>, %a3: tensor<1x8x3x1xf32>) -> (tensor<1x8x3x1xf32>) {
  %1 = arith.constant 2.000000e+00 : f32
  %2 = tensor.pad %a0 low[1, 1, 1, 0] high[0, 0, 1, 0] {
  ^bb0(%p2_0: index, %p2_1: index, %p2_2: index, %p2_3: index):
    tensor.yield %1 : f32
  } : tensor<0x7x1x1xf32> to tensor<1x8x3x1xf32>
  %3:3 = bngrad.batch_norm_backward grad_output(%2 : tensor<1x8x3x1xf32>) input(%a1 : tensor<1x8x3x1xf32>) mean(%a2 : tensor<1x8x3x1xf32>) variance(%a3 : tensor<1x8x3x1xf32>) {feature_dims = array<i64: 0, 1, 2, 3>} : tensor<1x8x3x1xf32>, tensor<1x8x3x1xf32>, tensor<1x8x3x1xf32>
  return %3#2 : tensor<1x8x3x1xf32>
}
