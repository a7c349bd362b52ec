// Arithmetic on bf16 next to a gradient flushed subnormal numbers to 0.

// REQUIRES: numpy
// RUN: %python %bngrad_src_root/fuzz/programs/hunt.py --bin=%bngrad_obj_root/bin --replay=%s

// WAY: cpu threads=1
// PROGRAM: {"arguments": [{"shape": [2, 1, 1, 1], "element": "bf16", "dynamic": [false, false, false, false], "role": "plain", "seed": 1215149686, "special": "subnormal", "layout": null, "by_channel": [1, 3]}, {"shape": [2, 1, 1, 1], "element": "bf16", "dynamic": [false, false, false, false], "role": "plain", "seed": 1215149693, "special": "", "layout": null, "by_channel": [1, 3]}], "ops": [{"kind": "map", "operands": [0, 1], "attrs": {"style": "map", "maps": [[0, 1, 2, 3], [0, 1, 2, 3]], "steps": [["fma", 0, 1, 0]], "outs": [2], "flags": ""}}], "returns": [2], "form": "tensor", "result_layouts": []}
// SEED: 17

func.func @f17(%a0: tensor<2x1x1x1xbf16>, %a1: tensor<2x1x1x1xbf16>) -> (tensor<2x1x1x1xbf16>) {
  %1 = tensor.empty() : tensor<2x1x1x1xbf16>
  %2 = linalg.map ins(%a0, %a1 : tensor<2x1x1x1xbf16>, tensor<2x1x1x1xbf16>) outs(%1 : tensor<2x1x1x1xbf16>)
  (%in1_0: bf16, %in1_1: bf16, %out1_0: bf16) {
  %3 = math.fma %in1_0, %in1_1, %in1_0 : bf16
  linalg.yield %3 : bf16
  }
  return %2 : tensor<2x1x1x1xbf16>
}
