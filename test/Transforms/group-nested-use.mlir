// RUN: bngrad-opt %s --bngrad-group | FileCheck %s
// A body that reads the sums by tensor.extract, not as an operand.
// CHECK-LABEL: func @f
func.func @f(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<8x4xf32> {
  %sum = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %full = tensor.empty() : tensor<8x4xf32>
  %dx = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%full : tensor<8x4xf32>) {
  ^bb0(%e: f32, %out: f32):
    %i = linalg.index 1 : index
    %f = tensor.extract %sum[%i] : tensor<4xf32>
    %0 = arith.subf %e, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %dx : tensor<8x4xf32>
}
