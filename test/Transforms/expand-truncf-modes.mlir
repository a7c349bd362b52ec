// RUN: bngrad-opt %s --bngrad-expand-truncf | FileCheck %s
// An op with an explicit rounding mode is unchanged.
// CHECK-LABEL: func @f
// CHECK-NEXT:    arith.truncf %{{.+}} upward : f32 to bf16
func.func @f(%a: f32) -> bf16 {
  %0 = arith.truncf %a upward : f32 to bf16
  return %0 : bf16
}
