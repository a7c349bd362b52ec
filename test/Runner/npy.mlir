// Arrays of every type, of rank 0, size 0 and more, are bitwise identical after a round trip, including NaN and
// subnormals, and numpy reads them with the right type and shape. All three versions of the format are read.

// REQUIRES: numpy
// RUN: %python %S/check_npy.py write %t
// RUN: bngrad-runner %s --entry=f16 --arg=%t/f16.0.npy --arg=%t/f16.1.npy --arg=%t/f16.2.npy --result=%t/f16.0.out --result=%t/f16.1.out --result=%t/f16.2.out
// RUN: bngrad-runner %s --entry=bf16 --arg=%t/bf16.0.npy --arg=%t/bf16.1.npy --arg=%t/bf16.2.npy --result=%t/bf16.0.out --result=%t/bf16.1.out --result=%t/bf16.2.out
// RUN: bngrad-runner %s --entry=f32 --arg=%t/f32.0.npy --arg=%t/f32.1.npy --arg=%t/f32.2.npy --result=%t/f32.0.out --result=%t/f32.1.out --result=%t/f32.2.out
// RUN: bngrad-runner %s --entry=f64 --arg=%t/f64.0.npy --arg=%t/f64.1.npy --arg=%t/f64.2.npy --result=%t/f64.0.out --result=%t/f64.1.out --result=%t/f64.2.out
// RUN: bngrad-runner %s --entry=i1 --arg=%t/i1.0.npy --arg=%t/i1.1.npy --arg=%t/i1.2.npy --result=%t/i1.0.out --result=%t/i1.1.out --result=%t/i1.2.out
// RUN: bngrad-runner %s --entry=i64 --arg=%t/i64.0.npy --arg=%t/i64.1.npy --arg=%t/i64.2.npy --result=%t/i64.0.out --result=%t/i64.1.out --result=%t/i64.2.out
// RUN: bngrad-runner %s --entry=versions --arg=%t/version2.npy --arg=%t/version3.npy --result=%t/version2.out --result=%t/version3.out
// RUN: %python %S/check_npy.py compare %t

func.func @f16(%a: tensor<f16>, %b: tensor<2x3x5xf16>, %c: tensor<?x0x?xf16>) -> (tensor<f16>, tensor<2x3x5xf16>, tensor<?x0x?xf16>) {
  return %a, %b, %c : tensor<f16>, tensor<2x3x5xf16>, tensor<?x0x?xf16>
}
func.func @bf16(%a: tensor<bf16>, %b: tensor<2x3x5xbf16>, %c: tensor<?x0x?xbf16>) -> (tensor<bf16>, tensor<2x3x5xbf16>, tensor<?x0x?xbf16>) {
  return %a, %b, %c : tensor<bf16>, tensor<2x3x5xbf16>, tensor<?x0x?xbf16>
}
func.func @f32(%a: tensor<f32>, %b: tensor<2x3x5xf32>, %c: tensor<?x0x?xf32>) -> (tensor<f32>, tensor<2x3x5xf32>, tensor<?x0x?xf32>) {
  return %a, %b, %c : tensor<f32>, tensor<2x3x5xf32>, tensor<?x0x?xf32>
}
func.func @f64(%a: tensor<f64>, %b: tensor<2x3x5xf64>, %c: tensor<?x0x?xf64>) -> (tensor<f64>, tensor<2x3x5xf64>, tensor<?x0x?xf64>) {
  return %a, %b, %c : tensor<f64>, tensor<2x3x5xf64>, tensor<?x0x?xf64>
}
func.func @i1(%a: tensor<i1>, %b: tensor<2x3x5xi1>, %c: tensor<?x0x?xi1>) -> (tensor<i1>, tensor<2x3x5xi1>, tensor<?x0x?xi1>) {
  return %a, %b, %c : tensor<i1>, tensor<2x3x5xi1>, tensor<?x0x?xi1>
}
func.func @i64(%a: tensor<i64>, %b: tensor<2x3x5xi64>, %c: tensor<?x0x?xi64>) -> (tensor<i64>, tensor<2x3x5xi64>, tensor<?x0x?xi64>) {
  return %a, %b, %c : tensor<i64>, tensor<2x3x5xi64>, tensor<?x0x?xi64>
}
func.func @versions(%a: tensor<30xf32>, %b: tensor<30xf32>) -> (tensor<30xf32>, tensor<30xf32>) {
  return %a, %b : tensor<30xf32>, tensor<30xf32>
}
