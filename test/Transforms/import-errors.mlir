// RUN: bngrad-opt %s --split-input-file --allow-unregistered-dialect --verify-diagnostics --bngrad-import

// An op that the bngrad op cannot express gives an error at the op.

func.func @quantized(%a0: tensor<8x4x!quant.uniform<i8:f32, 0.5>>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<8x4x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error @below {{'stablehlo.batch_norm_grad' op expected element type of operand to be f16, bf16, f32 or f64, got '!quant.uniform<i8:f32, 5.000000e-01>'}}
  %0:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
      : (tensor<8x4x!quant.uniform<i8:f32, 0.5>>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4x!quant.uniform<i8:f32, 0.5>>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @integer(%a0: tensor<8x4xf32>, %a1: tensor<4xi32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<8x4xf32>) {
  // expected-error @below {{expected element type of scale to be f16, bf16, f32 or f64, got 'i32'}}
  %0:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
      : (tensor<8x4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @unranked(%a0: tensor<*xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<8x4xf32>) {
  // expected-error @below {{expected operand to be a ranked tensor, got 'tensor<*xf32>'}}
  %0:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
      : (tensor<*xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @result_type(%a0: tensor<8x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<8x4xf32>) {
  // expected-error @below {{expected element type of grad_scale to be f16, bf16, f32 or f64, got 'i32'}}
  %0:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<4xi32>, tensor<4xf32>)
  return
}

// -----

func.func @no_epsilon(%a0: tensor<8x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<8x4xf32>) {
  // expected-error @below {{requires attribute 'epsilon'}}
  %0:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) <{feature_index = 1 : i64}>
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @no_feature_index(%a0: tensor<8x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<8x4xf32>) {
  // expected-error @below {{requires attribute 'feature_index'}}
  %0:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) {epsilon = 0.0 : f32}
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @feature_index_too_large(%a0: tensor<8x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<8x4xf32>) {
  // expected-error @below {{expected the feature dim to be in [0, 2), got 2}}
  %0:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) {epsilon = 0.0 : f32, feature_index = 2 : i64}
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @feature_index_negative(%a0: tensor<8x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<8x4xf32>) {
  // expected-error @below {{expected the feature dim to be in [0, 2), got -1}}
  %0:3 = "mhlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) {epsilon = 0.0 : f32, feature_index = -1 : i64}
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @epsilon_negative(%a0: tensor<8x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<8x4xf32>) {
  // expected-error @below {{expected epsilon to be finite and at least 0}}
  // expected-note @below {{imported as bngrad.batch_norm_backward}}
  %0:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) {epsilon = -1.0 : f32, feature_index = 1 : i64}
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @four_operands(%a0: tensor<8x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>) {
  // expected-error @below {{expected 5 operands, got 4}}
  %0:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @two_results(%a0: tensor<8x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<8x4xf32>) {
  // expected-error @below {{expected 3 results, got 2}}
  %0:2 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @shapes_disagree(%a0: tensor<8x4xf32>, %a1: tensor<5xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<8x4xf32>) {
  // expected-error @below {{expected shape of scale to be compatible with the sizes of input at feature_dims [4], got [5]}}
  // expected-note @below {{imported as bngrad.batch_norm_backward}}
  %0:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
      : (tensor<8x4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @data_types_disagree(%a0: tensor<8x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<8x4xf16>) {
  // expected-error @below {{expected grad_output to have the element type of input, 'f32', got 'f16'}}
  // expected-note @below {{imported as bngrad.batch_norm_backward}}
  %0:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf16>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @parameter_types_disagree(%a0: tensor<8x4xf32>, %a1: tensor<4xf16>, %a2: tensor<4xbf16>, %a3: tensor<4xf16>, %a4: tensor<8x4xf32>) {
  // expected-error @below {{expected per-channel operands of one element type, got 'f16' and 'bf16'}}
  %0:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
      : (tensor<8x4xf32>, tensor<4xf16>, tensor<4xbf16>, tensor<4xf16>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @no_saved_mean(%a0: tensor<8x4xf32>, %a1: tensor<8x4xf32>, %a2: tensor<4xf32>, %a6: tensor<4xf32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %mask = "torch.prim.ListConstruct"(%true, %true, %true) : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  // expected-error @below {{'torch.aten.native_batch_norm_backward' op expected save_mean to be a tensor with train = true, got None}}
  %0:3 = "torch.aten.native_batch_norm_backward"(%a0, %a1, %a2, %none, %none, %none, %a6, %true, %eps, %mask)
      : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, !torch.none, !torch.none, !torch.none, tensor<4xf32>, !torch.bool, !torch.float, !torch.list<bool>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @no_running_var(%a0: tensor<8x4xf32>, %a1: tensor<8x4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a5: tensor<4xf32>, %a6: tensor<4xf32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %mask = "torch.prim.ListConstruct"(%true, %true, %true) : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  // expected-error @below {{expected running_var to be a tensor with train = false, got None}}
  %0:3 = "torch.aten.native_batch_norm_backward"(%a0, %a1, %a2, %a3, %none, %a5, %a6, %false, %eps, %mask)
      : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.list<bool>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @masked_out_but_used(%a0: tensor<8x4xf32>, %a1: tensor<8x4xf32>, %a2: tensor<4xf32>, %a5: tensor<4xf32>, %a6: tensor<4xf32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %mask = "torch.prim.ListConstruct"(%true, %false, %true) : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  // expected-error @below {{expected result 1 to be unused, as output_mask[1] is false, got a use}}
  %0:3 = "torch.aten.native_batch_norm_backward"(%a0, %a1, %a2, %none, %none, %a5, %a6, %true, %eps, %mask)
      : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.list<bool>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  "test.use"(%0#1) : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @train_unknown(%a0: tensor<8x4xf32>, %a1: tensor<8x4xf32>, %a2: tensor<4xf32>, %a5: tensor<4xf32>, %a6: tensor<4xf32>, %t: !torch.bool) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %mask = "torch.prim.ListConstruct"(%true, %true, %true) : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  // expected-error @below {{expected train to be a torch.constant.bool, got another value}}
  %0:3 = "torch.aten.native_batch_norm_backward"(%a0, %a1, %a2, %none, %none, %a5, %a6, %t, %eps, %mask)
      : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.list<bool>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @eps_unknown(%a0: tensor<8x4xf32>, %a1: tensor<8x4xf32>, %a2: tensor<4xf32>, %a5: tensor<4xf32>, %a6: tensor<4xf32>, %e: !torch.float) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %mask = "torch.prim.ListConstruct"(%true, %true, %true) : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  // expected-error @below {{expected eps to be a torch.constant.float, got another value}}
  %0:3 = "torch.aten.native_batch_norm_backward"(%a0, %a1, %a2, %none, %none, %a5, %a6, %true, %e, %mask)
      : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.list<bool>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @output_mask_unknown(%a0: tensor<8x4xf32>, %a1: tensor<8x4xf32>, %a2: tensor<4xf32>, %a5: tensor<4xf32>, %a6: tensor<4xf32>, %k: !torch.list<bool>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %mask = "torch.prim.ListConstruct"(%true, %true, %true) : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  // expected-error @below {{expected output_mask to be a torch.prim.ListConstruct of three values}}
  %0:3 = "torch.aten.native_batch_norm_backward"(%a0, %a1, %a2, %none, %none, %a5, %a6, %true, %eps, %k)
      : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.list<bool>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @output_mask_element_unknown(%a0: tensor<8x4xf32>, %a1: tensor<8x4xf32>, %a2: tensor<4xf32>, %a5: tensor<4xf32>, %a6: tensor<4xf32>, %t: !torch.bool) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %mask = "torch.prim.ListConstruct"(%true, %t, %true) : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  // expected-error @below {{expected output_mask[1] to be a torch.constant.bool, got another value}}
  %0:3 = "torch.aten.native_batch_norm_backward"(%a0, %a1, %a2, %none, %none, %a5, %a6, %true, %eps, %mask)
      : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.list<bool>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @vtensor_without_rank(%a0: !torch.vtensor<*,f32>, %a1: !torch.vtensor<*,f32>, %a2: tensor<4xf32>, %a5: tensor<4xf32>, %a6: tensor<4xf32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %mask = "torch.prim.ListConstruct"(%true, %true, %true) : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  // expected-error @below {{expected grad_out to be a tensor of f16, bf16, f32 or f64 and known rank, or None, got '!torch.vtensor<*,f32>'}}
  %0:3 = "torch.aten.native_batch_norm_backward"(%a0, %a1, %a2, %none, %none, %a5, %a6, %true, %eps, %mask)
      : (!torch.vtensor<*,f32>, !torch.vtensor<*,f32>, tensor<4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.list<bool>)
      -> (!torch.vtensor<*,f32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @vtensor_of_integers(%a0: !torch.vtensor<[8,4],si64>, %a1: !torch.vtensor<[8,4],si64>, %a2: tensor<4xf32>, %a5: tensor<4xf32>, %a6: tensor<4xf32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %mask = "torch.prim.ListConstruct"(%true, %true, %true) : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  // expected-error @below {{expected element type of grad_out to be f16, bf16, f32 or f64, got 'i64'}}
  %0:3 = "torch.aten.native_batch_norm_backward"(%a0, %a1, %a2, %none, %none, %a5, %a6, %true, %eps, %mask)
      : (!torch.vtensor<[8,4],si64>, !torch.vtensor<[8,4],si64>, tensor<4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.list<bool>)
      -> (!torch.vtensor<[8,4],si64>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @rank_1(%a0: tensor<4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a5: tensor<4xf32>, %a6: tensor<4xf32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %mask = "torch.prim.ListConstruct"(%true, %true, %true) : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  // expected-error @below {{expected the feature dim to be in [0, 1), got 1}}
  %0:3 = "torch.aten.native_batch_norm_backward"(%a0, %a1, %a2, %none, %none, %a5, %a6, %true, %eps, %mask)
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.list<bool>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @unsigned_feature_index(%x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  // expected-error @below {{expected feature_index to fit in an i64, got 18446744073709551615 : ui64}}
  %0:3 = "stablehlo.batch_norm_grad"(%x, %p, %p, %p, %x) {epsilon = 0.1 : f32, feature_index = 18446744073709551615 : ui64}
      : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>)
      -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @tuple_user(%a0: tensor<8x4xf32>, %a1: tensor<4xf32>) {
  // expected-error @below {{'mhlo.batch_norm_grad' op expected users of a tuple of results to be get_tuple_element, got 'mhlo.custom_call'}}
  %0 = "mhlo.batch_norm_grad"(%a0, %a1, %a1, %a1, %a0) {epsilon = 0.0 : f32, feature_index = 1 : i64}
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>)
      -> tuple<tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>>
  "mhlo.custom_call"(%0) : (tuple<tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>>) -> ()
  return
}

// -----

// A gradient that is not known, by an op or by a torch.operator.

func.func @unknown_gradient(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{got 'chlo.batch_norm_grad_v2'}}
  %0 = "chlo.batch_norm_grad_v2"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // expected-error @below {{expected a gradient of batch normalization that can be imported (stablehlo.batch_norm_grad, mhlo.batch_norm_grad, or torch.aten.{native_,cudnn_,miopen_,}batch_norm_backward or batch_norm_backward_{reduce,elemt}), got 'aten.npu_batch_norm_backward'}}
  %1 = "torch.operator"(%0) <{name = "torch.aten.npu_batch_norm_backward"}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

func.func @count(%a: tensor<8x4xf32>, %c: tensor<4xf32>, %n: tensor<2xf32>) -> tensor<8x4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error @below {{'torch.aten.batch_norm_backward_elemt' op expected count to be a tensor of rank 1 of 32-bit or 64-bit integers, got 'tensor<2xf32>'}}
  %0 = "torch.aten.batch_norm_backward_elemt"(%a, %a, %c, %c, %none, %c, %c, %n)
      : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, !torch.none, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>)
      -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @unused(%a: tensor<8x4xf32>, %c: tensor<4xf32>) -> tensor<4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  // expected-error @below {{expected result 1 to be unused, as input_g is false, got a use}}
  %0:4 = "torch.aten.batch_norm_backward_reduce"(%a, %a, %c, %c, %none, %false, %false, %false)
      : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, !torch.none, !torch.bool, !torch.bool, !torch.bool)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}

// -----

// The names are those of the op that was written.

func.func @shapes(%a: tensor<8x4xf32>, %c: tensor<5xf32>, %d: tensor<4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{'stablehlo.batch_norm_grad' op expected}}
  // expected-note @below {{imported as bngrad.batch_norm_backward, with its names of operands}}
  %0:3 = "stablehlo.batch_norm_grad"(%a, %c, %d, %d, %a) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
      : (tensor<8x4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<8x4xf32>
}

// -----

func.func @kinds(%a: tensor<8x4xf32>, %c: tensor<4xf32>) {
  // expected-error @below {{expected a float attribute 'epsilon'}}
  %0:3 = "stablehlo.batch_norm_grad"(%a, %c, %c, %c, %a) <{epsilon = 1 : i64, feature_index = 1 : i64}>
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  // expected-error @below {{expected an integer attribute 'feature_index'}}
  %1:3 = "stablehlo.batch_norm_grad"(%a, %c, %c, %c, %a) <{epsilon = 0.0 : f32, feature_index = 1.0 : f32}>
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Functions are imported by several threads; each keeps its own error.

func.func @thread0(%a: tensor<8x4xf32>, %c: tensor<5xf32>, %d: tensor<4xf32>) {
  // expected-error @below {{'stablehlo.batch_norm_grad' op expected shape of scale}}
  // expected-note @below {{imported as}}
  %0:3 = "stablehlo.batch_norm_grad"(%a, %c, %d, %d, %a) <{epsilon = 0.0 : f32, feature_index = 1 : i64}>
      : (tensor<8x4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}
func.func @thread1(%a: tensor<8x4xf32>, %d: tensor<4xf32>) {
  // expected-error @below {{'mhlo.batch_norm_grad' op expected epsilon}}
  // expected-note @below {{imported as}}
  %0:3 = "mhlo.batch_norm_grad"(%a, %d, %d, %d, %a) <{epsilon = -1.0 : f32, feature_index = 1 : i64}>
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}
func.func @thread2(%a: tensor<8x4xf32>, %c: tensor<5xf32>, %d: tensor<4xf32>) {
  // expected-error @below {{'stablehlo.batch_norm_grad' op expected}}
  // expected-note @below {{imported as}}
  %0:3 = "stablehlo.batch_norm_grad"(%a, %d, %d, %c, %a) <{epsilon = 0.0 : f32, feature_index = 1 : i64}>
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}
