// RUN: bngrad-opt %s --bngrad-expand-truncf | FileCheck %s

// The neighbour of the nearest number: the bits of a magnitude grow away from
// zero. The nearest bf16 is computed on the bits as well.
// CHECK-LABEL: func @downward(
// CHECK-SAME:    %[[X:.+]]: f32
// CHECK-NOT:     arith.truncf
// CHECK:         %[[NEAREST:.+]] = arith.bitcast %{{.+}} : i16 to bf16
// CHECK:         %[[BACK:.+]] = arith.extf %[[NEAREST]] : bf16 to f32
// CHECK:         %[[BITS:.+]] = arith.bitcast %[[NEAREST]] : bf16 to i16
// CHECK:         %[[AWAY:.+]] = arith.addi %[[BITS]], %{{.+}} : i16
// CHECK:         %[[CLOSER:.+]] = arith.subi %[[BITS]], %{{.+}} : i16
// CHECK:         %[[ABOVE:.+]] = arith.cmpf ogt, %[[BACK]], %[[X]]
// CHECK:         %[[NEGATIVE:.+]] = arith.cmpf olt, %[[X]], %{{.+}}
// CHECK:         %[[BELOW:.+]] = arith.select %[[NEGATIVE]], %[[AWAY]], %[[CLOSER]] : i16
// CHECK:         %[[RESULT:.+]] = arith.select %[[ABOVE]], %[[BELOW]], %[[BITS]] : i16
// CHECK:         arith.bitcast %[[RESULT]] : i16 to bf16
func.func @downward(%a: f32) -> bf16 {
  %0 = arith.truncf %a downward : f32 to bf16
  return %0 : bf16
}

// CHECK-LABEL: func @vectors(
// CHECK:         arith.truncf %{{.+}} : vector<8xf64> to vector<8xf32>
// CHECK:         arith.bitcast %{{.+}} : vector<8xi32> to vector<8xf32>
// CHECK-NOT:     arith.truncf
func.func @vectors(%a: vector<8xf64>) -> vector<8xf32> {
  %0 = arith.truncf %a to_nearest_away : vector<8xf64> to vector<8xf32>
  return %0 : vector<8xf32>
}

// The default, explicitly.
// CHECK-LABEL: func @nearest_even(
// CHECK-NEXT:    arith.truncf %{{.+}} to_nearest_even : f32 to f16
// CHECK-NEXT:    return
func.func @nearest_even(%a: f32) -> f16 {
  %0 = arith.truncf %a to_nearest_even : f32 to f16
  return %0 : f16
}

// Not on tensors.
// CHECK-LABEL: func @tensors(
// CHECK-NEXT:    arith.truncf %{{.+}} upward : tensor<8xf32> to tensor<8xf16>
func.func @tensors(%a: tensor<8xf32>) -> tensor<8xf16> {
  %0 = arith.truncf %a upward : tensor<8xf32> to tensor<8xf16>
  return %0 : tensor<8xf16>
}
