// RUN: bngrad-opt %s --split-input-file --allow-unregistered-dialect --verify-diagnostics --bngrad-import

func.func @stablehlo_type(%x: tensor<8x4xi32>, %p: tensor<4xf32>) {
  // expected-error @below {{'stablehlo.batch_norm_training' op expected element type of operand to be f16, bf16, f32 or f64, got 'i32'}}
  %0:3 = "stablehlo.batch_norm_training"(%x, %p, %p) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
      : (tensor<8x4xi32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @stablehlo_feature_index(%x: tensor<8x4xf32>, %p: tensor<4xf32>) {
  // expected-error @below {{'stablehlo.batch_norm_inference' op expected the feature dim to be in [0, 2), got 2}}
  %0 = "stablehlo.batch_norm_inference"(%x, %p, %p, %p, %p) <{epsilon = 0.001 : f32, feature_index = 2 : i64}>
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @stablehlo_shape(%x: tensor<8x4xf32>, %p: tensor<5xf32>) {
  // expected-error @below {{'stablehlo.batch_norm_training' op expected shape of scale to be compatible with the sizes of input at feature_dims [4], got [5]}}
  // expected-note @below {{imported as bngrad.batch_norm_training, with its names of operands}}
  %0:3 = "stablehlo.batch_norm_training"(%x, %p, %p) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
      : (tensor<8x4xf32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<8x4xf32>, tensor<5xf32>, tensor<5xf32>)
  return
}

// -----

// The update in place would be lost.
func.func @torch_in_place(%x: tensor<8x4xf32>, %p: tensor<4xf32>) -> tensor<8x4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected running_mean to be None with training = true, as this op updates it in place (aten._native_batch_norm_legit_functional returns the new value), got a tensor}}
  %0:3 = "torch.aten.native_batch_norm"(%x, %none, %none, %p, %p, %true, %eps, %eps)
      : (tensor<8x4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<8x4xf32>
}

// -----

func.func @torch_training_unknown(%x: tensor<8x4xf32>, %training: !torch.bool) -> tensor<8x4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected training to be a torch.constant.bool, got another value}}
  %0:3 = "torch.aten.native_batch_norm"(%x, %none, %none, %none, %none, %training, %eps, %eps)
      : (tensor<8x4xf32>, !torch.none, !torch.none, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<8x4xf32>
}

// -----

func.func @torch_momentum_unknown(%x: tensor<8x4xf32>, %p: tensor<4xf32>, %momentum: !torch.float) -> tensor<4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected momentum to be a torch.constant.float, got another value}}
  %0:5 = "torch.operator"(%x, %none, %none, %p, %p, %true, %momentum, %eps) <{name = "torch.aten._native_batch_norm_legit_functional"}>
      : (tensor<8x4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#3 : tensor<4xf32>
}

// -----

func.func @torch_no_stats_evaluation(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected training to be true without running statistics, got false}}
  %0:3 = "torch.operator"(%x, %none, %none, %false, %eps, %eps) <{name = "torch.aten._native_batch_norm_legit.no_stats"}>
      : (tensor<8x4xf32>, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.float) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<8x4xf32>
}

// -----

func.func @torch_saved_in_evaluation(%x: tensor<8x4xf32>, %p: tensor<4xf32>) -> tensor<4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected result 1 to be empty with training = false, got 'tensor<4xf32>'}}
  %0:3 = "torch.aten.native_batch_norm"(%x, %none, %none, %p, %p, %false, %eps, %eps)
      : (tensor<8x4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}

// -----

func.func @torch_evaluation_without_statistics(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected running_mean to be a tensor with training = false, got None}}
  %0:3 = "torch.aten.native_batch_norm"(%x, %none, %none, %none, %none, %false, %eps, %eps)
      : (tensor<8x4xf32>, !torch.none, !torch.none, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<0xf32>, tensor<0xf32>)
  return %0#0 : tensor<8x4xf32>
}
