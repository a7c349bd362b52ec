// A sum in bf16 that may be reassociated was rejected for a GPU, whose shuffles need 32 bits.

// REQUIRES: numpy
// RUN: %python %bngrad_src_root/fuzz/programs/hunt.py --bin=%bngrad_obj_root/bin --replay=%s

// WAY: cuda chip=sm_75
// PROGRAM: {"arguments": [{"shape": [1, 1, 1, 1], "element": "bf16", "dynamic": [false, false, false, false], "role": "plain", "seed": 77, "special": "", "layout": null, "by_channel": [0]}], "ops": [{"kind": "reduce", "operands": [0], "attrs": {"style": "generic", "dims": [0, 2, 3], "order": [0, 1, 2, 3], "combine": "addf", "reassoc": true, "element": "bf16", "init": 0.5}}], "returns": [1], "form": "tensor", "result_layouts": [], "joined": -1}
// SEED: 2004

func.func @f2004(%a0: tensor<1x1x1x1xbf16>) -> (tensor<1xbf16>) {
  %1 = arith.constant 5.000000e-01 : bf16
  %2 = tensor.empty() : tensor<1xbf16>
  %3 = linalg.fill ins(%1 : bf16) outs(%2 : tensor<1xbf16>) -> tensor<1xbf16>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d1)>], iterator_types = ["reduction", "parallel", "reduction", "reduction"]} ins(%a0 : tensor<1x1x1x1xbf16>) outs(%3 : tensor<1xbf16>) {
  ^bb0(%in3: bf16, %acc3: bf16):
  %wide3_sum = arith.addf %in3, %acc3 fastmath<reassoc> : bf16
  linalg.yield %wide3_sum : bf16
  } -> tensor<1xbf16>
  return %4 : tensor<1xbf16>
}
