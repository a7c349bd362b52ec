// A pad was refused whose result has no room for its source of dynamic size.

// REQUIRES: numpy
// RUN: %python %bngrad_src_root/fuzz/programs/hunt.py --bin=%bngrad_obj_root/bin --replay=%s

// WAY: cpu threads=1
// PROGRAM: {"arguments": [{"shape": [0, 64, 1], "element": "f32", "dynamic": [true, false, false], "role": "plain", "seed": 565395973, "special": "", "layout": null, "by_channel": [0, 1, 2]}, {"shape": [1, 65, 1], "element": "f32", "dynamic": [false, false, false], "role": "plain", "seed": 77, "special": "", "layout": null, "by_channel": [0]}], "ops": [{"kind": "pad", "operands": [0], "attrs": {"low": [1, 1, 0], "high": [0, 0, 0], "value": 0.75}}, {"kind": "sums", "operands": [1, 1, 2], "attrs": {"names": ["grad_output", "input", "mean"], "features": [0, 1, 2]}}], "returns": [3], "form": "tensor", "result_layouts": [], "joined": -1}
// SEED: 710293

func.func @f710293(%a0: tensor<?x64x1xf32>, %a1: tensor<1x65x1xf32>) -> (tensor<2x?x65x1xf32>) {
  %1 = arith.constant 7.500000e-01 : f32
  %2 = tensor.pad %a0 low[1, 1, 0] high[0, 0, 0] {
  ^bb0(%p2_0: index, %p2_1: index, %p2_2: index):
    tensor.yield %1 : f32
  } : tensor<?x64x1xf32> to tensor<?x65x1xf32>
  %3:2 = bngrad.batch_norm_backward_reduce grad_output(%a1 : tensor<1x65x1xf32>) input(%a1 : tensor<1x65x1xf32>) mean(%2 : tensor<?x65x1xf32>) {feature_dims = array<i64: 0, 1, 2>} : tensor<2x?x65x1xf32>, tensor<i64>
  return %3#0 : tensor<2x?x65x1xf32>
}
