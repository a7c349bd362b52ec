// A dim expanded to several dynamic sizes crashed the lowering of strides.

// REQUIRES: numpy
// RUN: %python %bngrad_src_root/fuzz/programs/hunt.py --bin=%bngrad_obj_root/bin --replay=%s

// WAY: cpu threads=1
// PROGRAM: {"arguments": [{"shape": [1, 64], "element": "f32", "dynamic": [false, true], "role": "plain", "seed": 2018639887, "special": "", "layout": null, "by_channel": [0, 1]}, {"shape": [1, 8, 1, 8], "element": "f32", "dynamic": [true, true, true, true], "role": "plain", "seed": 2018639888, "special": "", "layout": null, "by_channel": [0, 1]}, {"shape": [1, 8], "element": "f32", "dynamic": [true, true], "role": "plain", "seed": 2018639889, "special": "", "layout": null, "by_channel": [0, 1]}], "ops": [{"kind": "expand", "operands": [0], "attrs": {"groups": [[0], [1, 2, 3]], "shape": [1, 8, 1, 8], "unknown": [true, true, true, true]}}, {"kind": "sums", "operands": [3, 1, 2], "attrs": {"names": ["grad_output", "input", "mean"], "features": [0, 1]}}], "returns": [4], "form": "tensor", "result_layouts": []}
// SEED: 22

func.func @f22(%a0: tensor<1x?xf32>, %a1: tensor<?x?x?x?xf32>, %a2: tensor<?x?xf32>) -> (tensor<2x?x?xf32>) {
  %1 = arith.constant 1 : index
  %2 = tensor.dim %a0, %1 : tensor<1x?xf32>
  %3 = arith.constant -56 : index
  %4 = arith.addi %2, %3 : index
  %5 = arith.constant 1 : index
  %6 = tensor.dim %a0, %5 : tensor<1x?xf32>
  %7 = arith.constant -63 : index
  %8 = arith.addi %6, %7 : index
  %9 = arith.constant 1 : index
  %10 = tensor.dim %a0, %9 : tensor<1x?xf32>
  %11 = arith.constant -56 : index
  %12 = arith.addi %10, %11 : index
  %13 = tensor.expand_shape %a0 [[0], [1, 2, 3]] output_shape [1, %4, %8, %12] : tensor<1x?xf32> into tensor<1x?x?x?xf32>
  %14:2 = bngrad.batch_norm_backward_reduce grad_output(%13 : tensor<1x?x?x?xf32>) input(%a1 : tensor<?x?x?x?xf32>) mean(%a2 : tensor<?x?xf32>) {feature_dims = array<i64: 0, 1>} : tensor<2x?x?xf32>, tensor<i64>
  return %14#0 : tensor<2x?x?xf32>
}
