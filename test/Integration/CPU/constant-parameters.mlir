// A deployed model: parameters and statistics are constants. The reference computes them from the op.

// RUN: bngrad-runner %s --entry=nchw --arg=random:1 --check | FileCheck %s
// RUN: bngrad-runner %s --entry=nhwc --arg=random:1 --check | FileCheck %s
// RUN: bngrad-runner %s --entry=inv_std --arg=random:1 --arg=random:2 --arg=random:3 --check | FileCheck %s
// CHECK: result 0 {{.+}} ok

func.func @nchw(%x: tensor<2x3x17x5xf32>) -> tensor<2x3x17x5xf32> {
  %scale = arith.constant dense<[1.5, 0.3, -2.7]> : tensor<3xf32>
  %offset = arith.constant dense<[0.7, -8.0, 9.0]> : tensor<3xf32>
  %mean = arith.constant dense<[0.5, 1.1, -2.0]> : tensor<3xf32>
  %variance = arith.constant dense<[0.3, 8.0, 2.4]> : tensor<3xf32>
  %0 = bngrad.batch_norm_inference input(%x : tensor<2x3x17x5xf32>) scale(%scale : tensor<3xf32>) offset(%offset : tensor<3xf32>)
      mean(%mean : tensor<3xf32>) variance(%variance : tensor<3xf32>) {epsilon = 1.0e-3 : f64} : tensor<2x3x17x5xf32>
  return %0 : tensor<2x3x17x5xf32>
}

func.func @nhwc(%x: tensor<7x5x3xbf16>) -> tensor<7x5x3xbf16> {
  %scale = arith.constant dense<[1.5, 0.3, -2.7]> : tensor<3xf32>
  %mean = arith.constant dense<[0.5, 1.1, -2.0]> : tensor<3xf32>
  %variance = arith.constant dense<[0.3, 8.0, 2.4]> : tensor<3xf32>
  %0 = bngrad.batch_norm_inference input(%x : tensor<7x5x3xbf16>) scale(%scale : tensor<3xf32>) mean(%mean : tensor<3xf32>)
      variance(%variance : tensor<3xf32>) {feature_dims = array<i64: 2>, epsilon = 1.0e-3 : f64} : tensor<7x5x3xbf16>
  return %0 : tensor<7x5x3xbf16>
}

// Nothing but the loops over the data is left here, either.
func.func @inv_std(%x: tensor<2x3x17x5xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>) -> tensor<2x3x17x5xf32> {
  %0 = bngrad.batch_norm_inference input(%x : tensor<2x3x17x5xf32>) mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>)
      : tensor<2x3x17x5xf32>
  return %0 : tensor<2x3x17x5xf32>
}
