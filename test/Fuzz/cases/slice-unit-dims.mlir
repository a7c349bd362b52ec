// Upstream chose other dims of size 1 of a slice to drop, and the call crashed.

// REQUIRES: numpy
// RUN: %python %bngrad_src_root/fuzz/programs/hunt.py --bin=%bngrad_obj_root/bin --replay=%s

// WAY: cpu threads=1
// PROGRAM: {"arguments": [{"shape": [1, 1031, 1, 1, 1, 6], "element": "f32", "dynamic": [true, false, false, false, false, false], "role": "varied", "seed": 1646673441, "special": "", "layout": null, "by_channel": [0, 3, 4]}, {"shape": [1, 1, 1], "element": "f64", "dynamic": [false, false, false], "role": "plain", "seed": 1646673442, "special": "", "layout": null, "by_channel": [0]}, {"shape": [1, 1, 1], "element": "f64", "dynamic": [true, false, false], "role": "plain", "seed": 1646673443, "special": "", "layout": null, "by_channel": [0]}, {"shape": [1, 1, 1], "element": "f64", "dynamic": [false, false, false], "role": "positive", "seed": 1646673444, "special": "", "layout": null, "by_channel": [0]}, {"shape": [1, 1031, 1, 1, 1, 6], "element": "f32", "dynamic": [true, false, false, false, false, true], "role": "plain", "seed": 1646673445, "special": "", "layout": null, "by_channel": [0, 3, 4]}], "ops": [{"kind": "inference", "operands": [0, 1, 2, 1, 3], "attrs": {"names": ["input", "scale", "offset", "mean", "variance"], "features": [0, 3, 4], "epsilon": 0.0, "elements": ["f32"]}}, {"kind": "map", "operands": [5], "attrs": {"style": "generic", "maps": [[0, 1, 2, 3, 4, 5]], "steps": [["const", 0.0, "f32"], ["cmpf", "ogt", 0, 1], ["select", 2, 0, 1]], "outs": [3], "flags": ""}}, {"kind": "map", "operands": [5], "attrs": {"style": "arith", "maps": [[0, 1, 2, 3, 4, 5]], "steps": [["const", 0.0, "f32"], ["cmpf", "ogt", 0, 1]], "outs": [2], "flags": ""}}, {"kind": "gradient", "operands": [4, 0, 1, 1, 3, 7], "attrs": {"names": ["grad_output", "input", "scale", "mean", "variance", "mask"], "features": [0, 3, 4], "epsilon": 0.0, "statistics": "global", "elements": ["f32", "bf16", "f16"]}}, {"kind": "slice", "operands": [6], "attrs": {"offsets": [0, 0, 0, 0, 0, 0], "sizes": [1, 515, 1, 1, 1, 5], "strides": [1, 2, 1, 1, 2, 1], "dropped": [2, 4], "unknown": [false, false, false, false, false, true], "moving": [false, false, false, false, false, false]}}], "returns": [5, 6, 9, 10, 11], "form": "tensor", "result_layouts": [], "joined": -1}
// SEED: 900150

func.func @f900150(%a0: tensor<?x1031x1x1x1x6xf32>, %a1: tensor<1x1x1xf64>, %a2: tensor<?x1x1xf64>, %a3: tensor<1x1x1xf64>, %a4: tensor<?x1031x1x1x1x?xf32>) -> (tensor<?x1031x1x1x1x6xf32>, tensor<?x1031x1x1x1x6xf32>, tensor<1x1x1xbf16>, tensor<1x1x1xf16>, tensor<1x515x1x?xf32>) {
  %1 = bngrad.batch_norm_inference input(%a0 : tensor<?x1031x1x1x1x6xf32>) scale(%a1 : tensor<1x1x1xf64>) offset(%a2 : tensor<?x1x1xf64>) mean(%a1 : tensor<1x1x1xf64>) variance(%a3 : tensor<1x1x1xf64>) {feature_dims = array<i64: 0, 3, 4>} : tensor<?x1031x1x1x1x6xf32>
  %2 = arith.constant 0 : index
  %3 = tensor.dim %1, %2 : tensor<?x1031x1x1x1x6xf32>
  %4 = tensor.empty(%3) : tensor<?x1031x1x1x1x6xf32>
  %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4, d5)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<?x1031x1x1x1x6xf32>) outs(%4 : tensor<?x1031x1x1x1x6xf32>) {
  ^bb0(%in4_0: f32, %out4_0: f32):
  %6 = arith.constant 0.000000e+00 : f32
  %7 = arith.cmpf ogt, %in4_0, %6 : f32
  %8 = arith.select %7, %in4_0, %6 : f32
  linalg.yield %8 : f32
  } -> tensor<?x1031x1x1x1x6xf32>
  %9 = arith.constant 0 : index
  %10 = tensor.dim %1, %9 : tensor<?x1031x1x1x1x6xf32>
  %11 = arith.constant 0.000000e+00 : f32
  %12 = tensor.splat %11[%10] : tensor<?x1031x1x1x1x6xf32>
  %13 = arith.cmpf ogt, %1, %12 : tensor<?x1031x1x1x1x6xf32>
  %14:3 = bngrad.batch_norm_backward grad_output(%a4 : tensor<?x1031x1x1x1x?xf32>) input(%a0 : tensor<?x1031x1x1x1x6xf32>) scale(%a1 : tensor<1x1x1xf64>) mean(%a1 : tensor<1x1x1xf64>) variance(%a3 : tensor<1x1x1xf64>) mask(%13 : tensor<?x1031x1x1x1x6xi1>) {feature_dims = array<i64: 0, 3, 4>, statistics = #bngrad.statistics<global>} : tensor<?x1031x1x1x1x6xf32>, tensor<1x1x1xbf16>, tensor<1x1x1xf16>
  %15 = arith.constant 0 : index
  %16 = tensor.dim %5, %15 : tensor<?x1031x1x1x1x6xf32>
  %17 = arith.constant 4 : index
  %18 = arith.addi %16, %17 : index
  %19 = tensor.extract_slice %5[0, 0, 0, 0, 0, 0] [1, 515, 1, 1, 1, %18] [1, 2, 1, 1, 2, 1] : tensor<?x1031x1x1x1x6xf32> to tensor<1x515x1x?xf32>
  return %1, %5, %14#1, %14#2, %19 : tensor<?x1031x1x1x1x6xf32>, tensor<?x1031x1x1x1x6xf32>, tensor<1x1x1xbf16>, tensor<1x1x1xf16>, tensor<1x515x1x?xf32>
}
