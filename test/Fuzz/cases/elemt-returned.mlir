// The compiler crashed on a function that returns the result of batch_norm_backward_elemt.

// REQUIRES: numpy
// RUN: %python %bngrad_src_root/fuzz/programs/hunt.py --bin=%bngrad_obj_root/bin --replay=%s

// WAY: cpu threads=1
// PROGRAM: {"arguments": [{"shape": [1, 1, 1, 1], "element": "f32", "dynamic": [false, false, false, false], "role": "plain", "seed": 1928901347, "special": "", "layout": null, "by_channel": [2]}, {"shape": [1], "element": "f32", "dynamic": [false], "role": "positive", "seed": 1928901350, "special": "", "layout": null, "by_channel": [0]}, {"shape": [1], "element": "f32", "dynamic": [false], "role": "plain", "seed": 83, "special": "", "layout": null, "by_channel": [0]}, {"shape": [1, 1, 1, 1], "element": "f32", "dynamic": [false, false, false, false], "role": "plain", "seed": 81, "special": "", "layout": null, "by_channel": [0]}], "ops": [{"kind": "element", "operands": [0, 3, 2, 1], "attrs": {"names": ["grad_output", "input", "mean", "variance"], "features": [2], "epsilon": 0.0, "statistics": "batch", "elements": ["f32", "f32", "f32"]}}], "returns": [4], "form": "tensor", "result_layouts": []}
// SEED: 6

func.func @f6(%a0: tensor<1x1x1x1xf32>, %a1: tensor<1xf32>, %a2: tensor<1xf32>, %a3: tensor<1x1x1x1xf32>) -> (tensor<1x1x1x1xf32>) {
  %1 = bngrad.batch_norm_backward_elemt grad_output(%a0 : tensor<1x1x1x1xf32>) input(%a3 : tensor<1x1x1x1xf32>) mean(%a2 : tensor<1xf32>) variance(%a1 : tensor<1xf32>) {feature_dims = array<i64: 2>} : tensor<1x1x1x1xf32>
  return %1 : tensor<1x1x1x1xf32>
}
