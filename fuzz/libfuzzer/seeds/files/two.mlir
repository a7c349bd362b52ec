func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.negf %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @g(%a: tensor<f64>) -> tensor<f64> {
  return %a : tensor<f64>
}
