// A rank-reducing slice with a strided unit dim and other unit dims crashed the lowering of views.

// REQUIRES: numpy
// RUN: %python %bngrad_src_root/fuzz/programs/hunt.py --bin=%bngrad_obj_root/bin --replay=%s

// WAY: cpu threads=1
// PROGRAM: {"arguments": [{"shape": [3, 1, 1, 1], "element": "f32", "dynamic": [false, false, false, false], "role": "plain", "seed": 1912609408, "special": "", "layout": null, "by_channel": [0]}, {"shape": [5, 1, 1, 3, 1], "element": "f32", "dynamic": [false, false, false, false, false], "role": "plain", "seed": 1912609411, "special": "", "layout": null, "by_channel": [0]}, {"shape": [3], "element": "f32", "dynamic": [false], "role": "plain", "seed": 1912609412, "special": "", "layout": null, "by_channel": [0]}, {"shape": [3], "element": "f32", "dynamic": [false], "role": "positive", "seed": 1912609413, "special": "", "layout": null, "by_channel": [0]}], "ops": [{"kind": "slice", "operands": [1], "attrs": {"offsets": [2, 0, 0, 2, 0], "sizes": [3, 1, 1, 1, 1], "strides": [1, 3, 2, 1, 1], "dropped": [2], "unknown": [false, false, false, false, false], "moving": [false, false, false, false, false]}}, {"kind": "gradient", "operands": [0, 4, 2, 3], "attrs": {"names": ["grad_output", "input", "mean", "variance"], "features": [0], "epsilon": 0.0, "statistics": "batch", "elements": ["f32", "f32", "f32"]}}], "returns": [5], "form": "tensor", "result_layouts": []}
// SEED: 60

func.func @f60(%a0: tensor<3x1x1x1xf32>, %a1: tensor<5x1x1x3x1xf32>, %a2: tensor<3xf32>, %a3: tensor<3xf32>) -> (tensor<3x1x1x1xf32>) {
  %1 = tensor.extract_slice %a1[2, 0, 0, 2, 0] [3, 1, 1, 1, 1] [1, 3, 2, 1, 1] : tensor<5x1x1x3x1xf32> to tensor<3x1x1x1xf32>
  %2:3 = bngrad.batch_norm_backward grad_output(%a0 : tensor<3x1x1x1xf32>) input(%1 : tensor<3x1x1x1xf32>) mean(%a2 : tensor<3xf32>) variance(%a3 : tensor<3xf32>) {feature_dims = array<i64: 0>} : tensor<3x1x1x1xf32>, tensor<3xf32>, tensor<3xf32>
  return %2#0 : tensor<3x1x1x1xf32>
}
