// A StableHLO module with the forward pass and the gradient of a batch norm, as
// TensorFlow and JAX print them, and torch's update of running statistics.

// RUN: bngrad-runner %s --entry=stablehlo --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --check | FileCheck %s --check-prefix=STABLEHLO
// RUN: bngrad-runner %s --entry=torch --arg=random:1:3:4 --arg=random:2 --arg=random:3:0.5:1.5 --check | FileCheck %s --check-prefix=TORCH

// RUN: bngrad-runner %s --entry=dynamic --arg=random:1@5x4 --arg=random:2 --arg=random:3:0.5:1.5 --check | FileCheck %s --check-prefix=DYNAMIC
// RUN: bngrad-runner %s --entry=dynamic --arg=random:1@1x4 --arg=random:2 --arg=random:3:0.5:1.5 --check | FileCheck %s --check-prefix=DYNAMIC
// RUN: bngrad-runner %s --entry=dynamic --arg=random:1@0x4 --arg=random:2 --arg=random:3:0.5:1.5 --check --result=%t.mean.npy --result=%t.variance.npy | FileCheck %s --check-prefix=EMPTY
// RUN: bngrad-runner %s --entry=onnx --arg=random:1:3:4 --arg=random:2 --arg=random:3:0.5:1.5 --check | FileCheck %s --check-prefix=TORCH

// STABLEHLO:      result 0 output max_error {{.+}} ok
// STABLEHLO-NEXT: result 1 grad_input max_error {{.+}} ok
// STABLEHLO-NEXT: result 2 grad_scale max_error {{.+}} ok
// STABLEHLO-NEXT: result 3 grad_offset max_error {{.+}} ok
func.func @stablehlo(%x: tensor<8x6x5x4xf32>, %scale: tensor<4xf32>, %offset: tensor<4xf32>, %dy: tensor<8x6x5x4xf32>)
    -> (tensor<8x6x5x4xf32>, tensor<8x6x5x4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0:3 = "stablehlo.batch_norm_training"(%x, %scale, %offset) <{epsilon = 0.001 : f32, feature_index = 3 : i64}>
      : (tensor<8x6x5x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x6x5x4xf32>, tensor<4xf32>, tensor<4xf32>)
  %1:3 = "stablehlo.batch_norm_grad"(%x, %scale, %0#1, %0#2, %dy) <{epsilon = 0.001 : f32, feature_index = 3 : i64}>
      : (tensor<8x6x5x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x6x5x4xf32>)
      -> (tensor<8x6x5x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %1#0, %1#1, %1#2 : tensor<8x6x5x4xf32>, tensor<8x6x5x4xf32>, tensor<4xf32>, tensor<4xf32>
}

// TORCH:      result 0 output max_error {{.+}} ok
// TORCH-NEXT: result 1 value max_error {{.+}} ok
// TORCH-NEXT: result 2 value max_error {{.+}} ok
func.func @torch(%x: tensor<8x4x3xf32>, %rm: tensor<4xf32>, %rv: tensor<4xf32>)
    -> (tensor<8x4x3xf32>, tensor<4xf32>, tensor<4xf32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:5 = "torch.operator"(%x, %none, %none, %rm, %rv, %true, %momentum, %eps) <{name = "torch.aten._native_batch_norm_legit_functional"}>
      : (tensor<8x4x3xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#3, %0#4 : tensor<8x4x3xf32>, tensor<4xf32>, tensor<4xf32>
}

// With one element per channel, the unbiased variance is 0/0; without elements, the running statistics are kept.
// DYNAMIC:      result 0 value max_error {{.+}} ok
// DYNAMIC-NEXT: result 1 value max_error {{.+}} ok
// EMPTY:        result 0 value max_error 0 {{.+}} ok
// EMPTY-NEXT:   result 1 value max_error 0 {{.+}} ok
func.func @dynamic(%x: tensor<?x4xf32>, %rm: tensor<4xf32>, %rv: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:5 = "torch.operator"(%x, %none, %none, %rm, %rv, %true, %momentum, %eps) <{name = "torch.aten._native_batch_norm_legit_functional"}>
      : (tensor<?x4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float)
      -> (tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#3, %0#4 : tensor<4xf32>, tensor<4xf32>
}

func.func @onnx(%x: tensor<8x4x3xf32>, %p: tensor<4xf32>, %variance: tensor<4xf32>)
    -> (tensor<8x4x3xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0:3 = "torch.operator"(%x, %p, %p, %p, %variance) <{name = "onnx.BatchNormalization"}> {torch.onnx.training_mode = 1 : si64}
      : (tensor<8x4x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x3xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1, %0#2 : tensor<8x4x3xf32>, tensor<4xf32>, tensor<4xf32>
}
