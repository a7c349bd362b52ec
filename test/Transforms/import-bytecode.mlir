// Bytecode of StableHLO and of torch-mlir stores the properties of an op as
// only the op itself reads them.

// RUN: bngrad-opt %S/../Inputs/stablehlo.mlirbc --bngrad-import | FileCheck %s --check-prefix=STABLEHLO
// RUN: bngrad-opt %S/../Inputs/torch.mlirbc --bngrad-import --bngrad-torch-to-builtin | FileCheck %s --check-prefix=TORCH
// RUN: bngrad-opt %s --emit-bytecode | bngrad-opt --bngrad-import | FileCheck %s

// STABLEHLO: bngrad.batch_norm_backward
// STABLEHLO-SAME: variance({{.+}}) {epsilon = 0.0010000000474974513 : f64} : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>

// TORCH-LABEL: func.func @native(
// TORCH-SAME: %[[DY:[^:]+]]: tensor<8x4x3xf32>, %[[X:[^:]+]]: tensor<8x4x3xf32>
// TORCH: bngrad.batch_norm_backward grad_output(%[[DY]] : tensor<8x4x3xf32>) input(%[[X]] : tensor<8x4x3xf32>)
// TORCH-LABEL: func.func @operator(
// TORCH-SAME: %[[DY:[^:]+]]: tensor<8x4x3xf32>, %[[X:[^:]+]]: tensor<8x4x3xf32>
// TORCH: bngrad.batch_norm_backward grad_output(%[[DY]] : tensor<8x4x3xf32>) input(%[[X]] : tensor<8x4x3xf32>)

// CHECK-LABEL: func.func @written(
// CHECK: bngrad.batch_norm_backward
// CHECK-SAME: {epsilon = 2.500000e-01 : f64, feature_dims = array<i64: 0>}
func.func @written(%x: tensor<4x8xf32>, %c: tensor<4xf32>) -> tensor<4x8xf32> {
  %0:3 = "stablehlo.batch_norm_grad"(%x, %c, %c, %c, %x) <{epsilon = 0.25 : f32, feature_index = 0 : i64}>
      : (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x8xf32>)
      -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @forward(
// CHECK: bngrad.batch_norm_training
// CHECK-SAME: {epsilon = 2.500000e-01 : f64, feature_dims = array<i64: 0>}
// CHECK: bngrad.batch_norm_inference
// CHECK-SAME: {epsilon = 5.000000e-01 : f64, feature_dims = array<i64: 0>}
func.func @forward(%x: tensor<4x8xf32>, %c: tensor<4xf32>) -> tensor<4x8xf32> {
  %0:3 = "stablehlo.batch_norm_training"(%x, %c, %c) <{epsilon = 0.25 : f32, feature_index = 0 : i64}>
      : (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  %1 = "stablehlo.batch_norm_inference"(%0#0, %c, %c, %0#1, %0#2) <{epsilon = 0.5 : f32, feature_index = 0 : i64}>
      : (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
