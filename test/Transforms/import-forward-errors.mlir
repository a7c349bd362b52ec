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
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected running_mean to be None or a !torch.vtensor, as this op updates it in place, got 'tensor<4xf32>'}}
  %0:3 = "torch.aten.native_batch_norm"(%x, %none, %none, %p, %p, %true, %momentum, %eps)
      : (tensor<8x4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<8x4xf32>
}

// -----

func.func @torch_training_unknown(%x: tensor<8x4xf32>, %training: !torch.bool) -> tensor<8x4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected training to be a torch.constant.bool, got another value}}
  %0:3 = "torch.aten.native_batch_norm"(%x, %none, %none, %none, %none, %training, %momentum, %eps)
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
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected training to be true without running statistics, got false}}
  %0:3 = "torch.operator"(%x, %none, %none, %false, %momentum, %eps) <{name = "torch.aten._native_batch_norm_legit.no_stats"}>
      : (tensor<8x4xf32>, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.float) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<8x4xf32>
}

// -----

func.func @torch_saved_in_evaluation(%x: tensor<8x4xf32>, %p: tensor<4xf32>) -> tensor<4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected result 1 to be empty with training = false, got 'tensor<4xf32>'}}
  %0:3 = "torch.aten.native_batch_norm"(%x, %none, %none, %p, %p, %false, %momentum, %eps)
      : (tensor<8x4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}

// -----

func.func @torch_evaluation_without_statistics(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected running_mean to be a tensor with training = false, got None}}
  %0:3 = "torch.aten.native_batch_norm"(%x, %none, %none, %none, %none, %false, %momentum, %eps)
      : (tensor<8x4xf32>, !torch.none, !torch.none, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<0xf32>, tensor<0xf32>)
  return %0#0 : tensor<8x4xf32>
}

// -----

func.func @torch_running_shape(%x: tensor<8x4xf32>, %rm: tensor<5xf32>, %rv: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<5xf32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected the shape of running_mean to be compatible with that of 'tensor<4xf32>', got 'tensor<5xf32>'}}
  %0:5 = "torch.operator"(%x, %none, %none, %rm, %rv, %true, %momentum, %eps) <{name = "torch.aten._native_batch_norm_legit_functional"}>
      : (tensor<8x4xf32>, !torch.none, !torch.none, tensor<5xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<4xf32>)
  return %0#0, %0#1, %0#3 : tensor<8x4xf32>, tensor<4xf32>, tensor<5xf32>
}

// -----

func.func @torch_running_rank(%x: tensor<8x4xf32>, %rm: tensor<1x4xf32>, %rv: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<1x4xf32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected the shape of running_mean to be compatible with that of 'tensor<4xf32>', got 'tensor<1x4xf32>'}}
  %0:5 = "torch.operator"(%x, %none, %none, %rm, %rv, %true, %momentum, %eps) <{name = "torch.aten._native_batch_norm_legit_functional"}>
      : (tensor<8x4xf32>, !torch.none, !torch.none, tensor<1x4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<1x4xf32>, tensor<4xf32>)
  return %0#0, %0#1, %0#3 : tensor<8x4xf32>, tensor<4xf32>, tensor<1x4xf32>
}

// -----

func.func @torch_result_shape(%x: tensor<8x4xf32>, %rm: tensor<4xf32>, %rv: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<5xf32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected the shape of result 3 to be compatible with that of 'tensor<4xf32>', got 'tensor<5xf32>'}}
  %0:5 = "torch.operator"(%x, %none, %none, %rm, %rv, %true, %momentum, %eps) <{name = "torch.aten._native_batch_norm_legit_functional"}>
      : (tensor<8x4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<4xf32>)
  return %0#0, %0#1, %0#3 : tensor<8x4xf32>, tensor<4xf32>, tensor<5xf32>
}

// -----

func.func @torch_saved_shape(%x: tensor<8x4xf32>, %rm: tensor<4xf32>, %rv: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4x1xf32>, tensor<4xf32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected the shape of result 1 to be compatible with that of 'tensor<4xf32>', got 'tensor<4x1xf32>'}}
  %0:5 = "torch.operator"(%x, %none, %none, %rm, %rv, %true, %momentum, %eps) <{name = "torch.aten._native_batch_norm_legit_functional"}>
      : (tensor<8x4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<4x1xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1, %0#3 : tensor<8x4xf32>, tensor<4x1xf32>, tensor<4xf32>
}

// -----

// The gradients have the shapes of their operands.
func.func @torch_gradient_shape(%x: tensor<8x4xf32>, %p: tensor<4xf32>) -> tensor<5xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %mask = "torch.prim.ListConstruct"(%true, %true, %true) : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  // expected-error @below {{expected shape of grad_scale to be compatible with that of mean [4], got [5]}}
  // expected-note @below {{imported as bngrad.batch_norm_backward, with its names of operands}}
  %0:3 = "torch.operator"(%x, %x, %p, %none, %none, %p, %p, %true, %eps, %mask) <{name = "torch.aten.native_batch_norm_backward"}>
      : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.list<bool>)
      -> (tensor<8x4xf32>, tensor<5xf32>, tensor<4xf32>)
  return %0#1 : tensor<5xf32>
}

// -----

func.func @torch_reduce_shape(%x: tensor<8x4xf32>, %p: tensor<4xf32>) -> tensor<5xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected the shape of result 2 to be compatible with that of 'tensor<4xf32>', got 'tensor<5xf32>'}}
  %0:4 = "torch.operator"(%x, %x, %p, %p, %none, %true, %true, %true) <{name = "torch.aten.batch_norm_backward_reduce"}>
      : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, !torch.none, !torch.bool, !torch.bool, !torch.bool)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<4xf32>)
  return %0#2 : tensor<5xf32>
}

// -----

func.func @torch_cudnn_reserve(%x: tensor<8x4xf32>, %w: tensor<4xf32>) -> !torch.vtensor<[0],ui8> {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected result 3 to be unused, as only the gradient of this op reads it, got a use}}
  %0:4 = "torch.operator"(%x, %w, %none, %none, %none, %true, %momentum, %eps) <{name = "torch.aten.cudnn_batch_norm"}>
      : (tensor<8x4xf32>, tensor<4xf32>, !torch.none, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, !torch.vtensor<[0],ui8>)
  return %0#3 : !torch.vtensor<[0],ui8>
}

// -----

func.func @torch_batch_norm_results(%x: tensor<8x4xf32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected 9 operands, got 8}}
  %0 = "torch.aten.batch_norm"(%x, %none, %none, %none, %none, %true, %momentum, %eps)
      : (tensor<8x4xf32>, !torch.none, !torch.none, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.float) -> tensor<8x4xf32>
  return
}

// -----

func.func @torch_elemt_mean(%x: tensor<8x4xf32>, %p: tensor<4xf32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected mean to be a tensor, got None}}
  %0 = "torch.operator"(%x, %none, %none, %none, %p, %eps) <{name = "torch.aten.batch_norm_elemt"}>
      : (tensor<8x4xf32>, !torch.none, !torch.none, !torch.none, tensor<4xf32>, !torch.float) -> tensor<8x4xf32>
  return
}

// -----

func.func @torch_gather_rank(%x: tensor<8x4xf32>, %m: tensor<4xf32>, %r: tensor<2x4xf32>, %n: tensor<2xf32>) -> tensor<4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected mean to have a row for each process, got 'tensor<4xf32>'}}
  %0:2 = "torch.operator"(%x, %m, %r, %none, %none, %momentum, %eps, %n) <{name = "torch.aten.batch_norm_gather_stats_with_counts"}>
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<2x4xf32>, !torch.none, !torch.none, !torch.float, !torch.float, tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<4xf32>
}

// -----

func.func @torch_gather_invstd(%x: tensor<8x4xf32>, %m: tensor<2x4xf32>, %r: tensor<3x4xf32>, %n: tensor<2xf32>) -> tensor<4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected the shape of invstd to be compatible with that of 'tensor<2x4xf32>', got 'tensor<3x4xf32>'}}
  %0:2 = "torch.operator"(%x, %m, %r, %none, %none, %momentum, %eps, %n) <{name = "torch.aten.batch_norm_gather_stats_with_counts"}>
      : (tensor<8x4xf32>, tensor<2x4xf32>, tensor<3x4xf32>, !torch.none, !torch.none, !torch.float, !torch.float, tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<4xf32>
}

// -----

func.func @torch_gather_counts(%x: tensor<8x4xf32>, %m: tensor<2x4xf32>, %r: tensor<2x4xf32>, %n: tensor<2x1xf32>) -> tensor<4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected the shape of counts to be compatible with that of 'tensor<2xf32>', got 'tensor<2x1xf32>'}}
  %0:2 = "torch.operator"(%x, %m, %r, %none, %none, %momentum, %eps, %n) <{name = "torch.aten.batch_norm_gather_stats_with_counts"}>
      : (tensor<8x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, !torch.none, !torch.none, !torch.float, !torch.float, tensor<2x1xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<4xf32>
}

// -----

func.func @torch_gather_integers(%x: tensor<8x4xf32>, %m: tensor<2x4xf32>, %r: tensor<2x4xf32>, %n: tensor<2xi32>) -> tensor<4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected element type of counts to be f16, bf16, f32 or f64, got 'i32'}}
  %0:2 = "torch.operator"(%x, %m, %r, %none, %none, %momentum, %eps, %n) <{name = "torch.aten.batch_norm_gather_stats_with_counts"}>
      : (tensor<8x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, !torch.none, !torch.none, !torch.float, !torch.float, tensor<2xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<4xf32>
}

// -----

func.func @torch_gather_running(%x: tensor<8x4xf32>, %m: tensor<2x4xf32>, %r: tensor<2x4xf32>, %n: tensor<2xf32>, %p: tensor<4xf32>) -> tensor<4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  // expected-error @below {{expected running_mean to be None, as this op updates it in place, got a tensor}}
  %0:2 = "torch.operator"(%x, %m, %r, %p, %none, %momentum, %eps, %n) <{name = "torch.aten.batch_norm_gather_stats_with_counts"}>
      : (tensor<8x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, !torch.none, !torch.float, !torch.float, tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<4xf32>
}

// -----

func.func @onnx_spatial(%x: tensor<8x4xf32>, %p: tensor<4xf32>) {
  // expected-error @below {{expected the attributes epsilon, momentum and training_mode of ONNX's opset 15, got 'spatial'}}
  %0 = "torch.operator"(%x, %p, %p, %p, %p) <{name = "onnx.BatchNormalization"}> {torch.onnx.spatial = 0 : si64}
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @onnx_epsilon(%x: tensor<8x4xf32>, %p: tensor<4xf32>) {
  // expected-error @below {{expected a float attribute 'torch.onnx.epsilon'}}
  %0 = "torch.operator"(%x, %p, %p, %p, %p) <{name = "onnx.BatchNormalization"}> {torch.onnx.epsilon = 1 : si64}
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @onnx_training_mode(%x: tensor<8x4xf32>, %p: tensor<4xf32>) {
  // expected-error @below {{expected an integer attribute 'torch.onnx.training_mode'}}
  %0 = "torch.operator"(%x, %p, %p, %p, %p) <{name = "onnx.BatchNormalization"}> {torch.onnx.training_mode = 1.0 : f32}
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @onnx_results(%x: tensor<8x4xf32>, %p: tensor<4xf32>) {
  // expected-error @below {{expected 1 results, got 3}}
  %0:3 = "torch.operator"(%x, %p, %p, %p, %p) <{name = "onnx.BatchNormalization"}> 
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @onnx_training_results(%x: tensor<8x4xf32>, %p: tensor<4xf32>) {
  // expected-error @below {{expected 1 to 3 results, got 5}}
  %0:5 = "torch.operator"(%x, %p, %p, %p, %p) <{name = "onnx.BatchNormalization"}> {torch.onnx.training_mode = 1 : si64}
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @onnx_no_results(%x: tensor<8x4xf32>, %p: tensor<4xf32>) {
  // expected-error @below {{expected 1 to 3 results, got 0}}
  "torch.operator"(%x, %p, %p, %p, %p) <{name = "onnx.BatchNormalization"}> {torch.onnx.training_mode = 1 : si64}
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> ()
  return
}

// -----

func.func @onnx_rank(%x: tensor<4xf32>, %p: tensor<4xf32>) {
  // expected-error @below {{expected the feature dim to be in [0, 1), got 1}}
  %0 = "torch.operator"(%x, %p, %p, %p, %p) <{name = "onnx.BatchNormalization"}> 
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}
