// RUN: bngrad-opt %s --bngrad-group | FileCheck %s
// Calls may have any effect, so they stay in program order.
// CHECK-LABEL: func @f
// CHECK:         call @use_sum
// CHECK:         call @other
func.func private @use_sum(tensor<4xf32>)
func.func private @other()
func.func @f(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<8x4xf32> {
  %sum = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  func.call @use_sum(%sum) : (tensor<4xf32>) -> ()
  func.call @other() : () -> ()
  %e = tensor.empty() : tensor<8x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<8x4xf32>, tensor<4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %s: f32, %out: f32):
    %0 = arith.subf %a, %s : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// What a call gives that comes after one which reads the sum is not there when
// the sums are: its reader is no member.
// CHECK-LABEL: func @call_after_a_call
// CHECK:         scf.execute_region
// CHECK-COUNT-1:   linalg.generic
// CHECK:         call @use_sum
// CHECK:         %[[W:.+]] = call @weight
// CHECK:         linalg.generic {{.+}} ins(%[[W]],
// CHECK-NOT:     scf.execute_region
// CHECK:         return
func.func private @weight() -> tensor<8x4xf32>
func.func @call_after_a_call(%x: tensor<8x4xf32>, %init: tensor<4xf32>) -> tensor<8x4xf32> {
  %sum = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  func.call @use_sum(%sum) : (tensor<4xf32>) -> ()
  %w = func.call @weight() : () -> tensor<8x4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%w, %sum : tensor<8x4xf32>, tensor<4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %s: f32, %out: f32):
    %0 = arith.subf %a, %s : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
