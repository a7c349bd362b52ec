// With an infinite scale, the output of training was NaN instead of infinite.

// REQUIRES: numpy
// RUN: %python %bngrad_src_root/fuzz/programs/hunt.py --bin=%bngrad_obj_root/bin --replay=%s

// WAY: cpu threads=1
// WAY: cuda chip=sm_90
// PROGRAM: {"arguments": [{"shape": [2, 2], "element": "f32", "dynamic": [false, false], "role": "varied", "seed": 587336679, "special": "subnormal", "layout": null, "by_channel": [0]}, {"shape": [2, 2], "element": "f32", "dynamic": [false, false], "role": "varied", "seed": 587336681, "special": "", "layout": null, "by_channel": [0]}, {"shape": [2, 2], "element": "f32", "dynamic": [false, false], "role": "plain", "seed": 79, "special": "", "layout": null, "by_channel": [0]}], "ops": [{"kind": "training", "operands": [0], "attrs": {"names": ["input"], "features": [0], "epsilon": 0.0, "elements": ["f32", "f32", "f32", "f32"]}}, {"kind": "training", "operands": [1, 6], "attrs": {"names": ["input", "scale"], "features": [0], "epsilon": 0.0, "elements": ["f32", "f32", "f32", "f32"]}}, {"kind": "concat", "operands": [7, 2], "attrs": {"dim": 0}}], "returns": [11], "form": "tensor", "result_layouts": [], "joined": -1}
// SEED: 730605

func.func @f730605(%a0: tensor<2x2xf32>, %a1: tensor<2x2xf32>, %a2: tensor<2x2xf32>) -> (tensor<4x2xf32>) {
  %1:4 = bngrad.batch_norm_training input(%a0 : tensor<2x2xf32>) {feature_dims = array<i64: 0>} : tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  %2:4 = bngrad.batch_norm_training input(%a1 : tensor<2x2xf32>) scale(%1#3 : tensor<2xf32>) {feature_dims = array<i64: 0>} : tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  %3 = tensor.concat dim(0) %2#0, %a2 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  return %3 : tensor<4x2xf32>
}
