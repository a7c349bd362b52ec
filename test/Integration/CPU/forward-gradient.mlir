// A forward pass and its gradient in one function: the bounds of the gradient
// include the errors of the statistics that training computes.

// RUN: bngrad-runner %s --entry=inv_std --arg=random:1:3:5 --arg=random:2 --arg=random:3 --arg=random:4 --check | FileCheck %s --check-prefix=TRAINING
// RUN: bngrad-runner %s --entry=variance --arg=random:1:100:102@9x5x17 --arg=random:2@9x5x17 --arg=random:3@17 --check | FileCheck %s --check-prefix=DYNAMIC
// RUN: bngrad-runner %s --entry=sums --arg=random:1:3:5 --check | FileCheck %s --check-prefix=SUMS
// RUN: bngrad-runner %s --entry=relu --arg=random:1:3:5 --arg=random:2 --arg=random:3 --check | FileCheck %s --check-prefix=RELU

// TRAINING:      result 0 output max_error {{.*}} ok
// TRAINING-NEXT: result 1 grad_input max_error {{.*}} ok
// TRAINING-NEXT: result 2 grad_scale max_error {{.*}} ok
// TRAINING-NEXT: result 3 grad_offset max_error {{.*}} ok
func.func @inv_std(%x: tensor<6x7x9x5xf32>, %dy: tensor<6x7x9x5xf32>, %scale: tensor<7xf32>, %offset: tensor<7xf32>)
    -> (tensor<6x7x9x5xf32>, tensor<6x7x9x5xf32>, tensor<7xf32>, tensor<7xf32>) {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<6x7x9x5xf32>) scale(%scale : tensor<7xf32>) offset(%offset : tensor<7xf32>)
      {epsilon = 1.0e-5 : f64} : tensor<6x7x9x5xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>
  %1:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<6x7x9x5xf32>) input(%x : tensor<6x7x9x5xf32>)
      scale(%scale : tensor<7xf32>) mean(%0#1 : tensor<7xf32>) inv_std(%0#3 : tensor<7xf32>)
      : tensor<6x7x9x5xf32>, tensor<7xf32>, tensor<7xf32>
  return %0#0, %1#0, %1#1, %1#2 : tensor<6x7x9x5xf32>, tensor<6x7x9x5xf32>, tensor<7xf32>, tensor<7xf32>
}

// DYNAMIC:      result 0 output max_error {{.*}} ok
// DYNAMIC-NEXT: result 1 grad_input max_error {{.*}} ok
// DYNAMIC-NEXT: result 2 grad_scale max_error {{.*}} ok
func.func @variance(%x: tensor<?x?x?xbf16>, %dy: tensor<?x?x?xbf16>, %scale: tensor<?xf32>)
    -> (tensor<?x?x?xbf16>, tensor<?x?x?xbf16>, tensor<?xf32>) {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<?x?x?xbf16>) scale(%scale : tensor<?xf32>)
      {epsilon = 1.0e-3 : f64, feature_dims = array<i64: 2>} : tensor<?x?x?xbf16>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
  %1:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x?x?xbf16>) input(%x : tensor<?x?x?xbf16>)
      scale(%scale : tensor<?xf32>) mean(%0#1 : tensor<?xf32>) variance(%0#2 : tensor<?xf32>)
      {epsilon = 1.0e-3 : f64, feature_dims = array<i64: 2>} : tensor<?x?x?xbf16>, tensor<?xf32>, tensor<?xf32>
  return %0#0, %1#0, %1#1 : tensor<?x?x?xbf16>, tensor<?x?x?xbf16>, tensor<?xf32>
}

// Training as its parts: the sum, the sums about the mean, inference.
// SUMS: result 0 output max_error {{.*}} ok
func.func @sums(%x: tensor<8x3x16xf32>) -> tensor<8x3x16xf32> {
  %m = arith.constant dense<128.0> : tensor<3xf32>
  %0:3 = bngrad.batch_norm_training_reduce input(%x : tensor<8x3x16xf32>) : tensor<3xf32>, tensor<3xf32>, tensor<i64>
  %mean = arith.divf %0#0, %m : tensor<3xf32>
  %1:3 = bngrad.batch_norm_training_reduce input(%x : tensor<8x3x16xf32>) shift(%mean : tensor<3xf32>)
      : tensor<3xf32>, tensor<3xf32>, tensor<i64>
  %variance = arith.divf %1#1, %m : tensor<3xf32>
  %2 = bngrad.batch_norm_inference input(%x : tensor<8x3x16xf32>) mean(%mean : tensor<3xf32>) variance(%variance : tensor<3xf32>)
      {epsilon = 1.0e-5 : f64} : tensor<8x3x16xf32>
  return %2 : tensor<8x3x16xf32>
}

// Element-wise consumers of output and running statistics.
// RELU:      result 0 value max_error {{.*}} ok
// RELU-NEXT: result 1 value max_error {{.*}} ok
func.func @relu(%x: tensor<6x7x9xf32>, %residual: tensor<6x7x9xf32>, %running: tensor<7xf32>) -> (tensor<6x7x9xf32>, tensor<7xf32>) {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<6x7x9xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<6x7x9xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>
  %zero = arith.constant dense<0.0> : tensor<6x7x9xf32>
  %sum = arith.addf %0#0, %residual : tensor<6x7x9xf32>
  %relu = arith.maximumf %sum, %zero : tensor<6x7x9xf32>
  %old = arith.constant dense<0.9> : tensor<7xf32>
  %new = arith.constant dense<0.1> : tensor<7xf32>
  %kept = arith.mulf %running, %old : tensor<7xf32>
  %added = arith.mulf %0#1, %new : tensor<7xf32>
  %updated = arith.addf %kept, %added : tensor<7xf32>
  return %relu, %updated : tensor<6x7x9xf32>, tensor<7xf32>
}
