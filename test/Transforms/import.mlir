// RUN: bngrad-opt %s --split-input-file --allow-unregistered-dialect --bngrad-import | FileCheck %s

// The epsilon of StableHLO is an f32: its exact value is kept. Attributes may be
// properties or plain.

// CHECK-LABEL: func.func @stablehlo_properties(
// CHECK-SAME: %[[X:[^:]+]]: tensor<8x4x6xf32>, %[[SCALE:[^:]+]]: tensor<4xf32>, %[[MEAN:[^:]+]]: tensor<4xf32>, %[[VARIANCE:[^:]+]]: tensor<4xf32>, %[[DY:[^:]+]]: tensor<8x4x6xf32>
func.func @stablehlo_properties(%x: tensor<8x4x6xf32>, %scale: tensor<4xf32>, %mean: tensor<4xf32>,
                                %variance: tensor<4xf32>, %dy: tensor<8x4x6xf32>)
    -> (tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: bngrad.batch_norm_backward grad_output(%[[DY]] : tensor<8x4x6xf32>) input(%[[X]] : tensor<8x4x6xf32>) scale(%[[SCALE]] : tensor<4xf32>) mean(%[[MEAN]] : tensor<4xf32>) variance(%[[VARIANCE]] : tensor<4xf32>) {epsilon = 0.0010000000474974513 : f64} : tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>
  %0:3 = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy)
      <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
      : (tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4x6xf32>)
      -> (tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1, %0#2 : tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @mhlo_attributes(
func.func @mhlo_attributes(%x: tensor<?x6x4xbf16>, %scale: tensor<?xbf16>, %mean: tensor<?xbf16>,
                           %variance: tensor<?xbf16>, %dy: tensor<?x6x4xbf16>)
    -> (tensor<?x6x4xbf16>, tensor<?xbf16>) {
  // CHECK: bngrad.batch_norm_backward
  // CHECK-SAME: {feature_dims = array<i64: 0>} : tensor<?x6x4xbf16>, tensor<?xbf16>, tensor<?xbf16>
  %0:3 = "mhlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy)
      {epsilon = 0.0 : f32, feature_index = 0 : i64}
      : (tensor<?x6x4xbf16>, tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>, tensor<?x6x4xbf16>)
      -> (tensor<?x6x4xbf16>, tensor<?xbf16>, tensor<?xbf16>)
  return %0#0, %0#2 : tensor<?x6x4xbf16>, tensor<?xbf16>
}

// -----

// Training: the saved statistics; save_invstd already includes eps. Running
// statistics may be None. The f16 weight is extended to the type of the
// statistics.

// CHECK-LABEL: func.func @torch_training(
// CHECK-SAME: %[[DY:[^:]+]]: tensor<8x4xf16>, %[[X:[^:]+]]: tensor<8x4xf16>, %[[W:[^:]+]]: tensor<4xf16>, %[[MEAN:[^:]+]]: tensor<4xf32>, %[[INVSTD:[^:]+]]: tensor<4xf32>
func.func @torch_training(%dy: tensor<8x4xf16>, %x: tensor<8x4xf16>, %w: tensor<4xf16>,
                          %mean: tensor<4xf32>, %invstd: tensor<4xf32>)
    -> (tensor<8x4xf16>, tensor<4xf16>) {
  // CHECK-NOT: torch.
  // CHECK: %[[SCALE:.+]] = arith.extf %[[W]] : tensor<4xf16> to tensor<4xf32>
  // CHECK: bngrad.batch_norm_backward grad_output(%[[DY]] : tensor<8x4xf16>) input(%[[X]] : tensor<8x4xf16>) scale(%[[SCALE]] : tensor<4xf32>) mean(%[[MEAN]] : tensor<4xf32>) inv_std(%[[INVSTD]] : tensor<4xf32>) : tensor<8x4xf16>, tensor<4xf16>, tensor<4xf32>
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %false = "torch.constant.bool"() {value = false} : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %mask = "torch.prim.ListConstruct"(%true, %true, %false) : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  %0:3 = "torch.aten.native_batch_norm_backward"(%dy, %x, %w, %none, %none, %mean, %invstd, %true, %eps, %mask)
      : (tensor<8x4xf16>, tensor<8x4xf16>, tensor<4xf16>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.list<bool>)
      -> (tensor<8x4xf16>, tensor<4xf16>, tensor<4xf16>)
  return %0#0, %0#1 : tensor<8x4xf16>, tensor<4xf16>
}

// -----

// Evaluation: the running statistics are constants. No weight: scale is absent.
// A vtensor is converted by casts.

// CHECK-LABEL: func.func @torch_evaluation(
func.func @torch_evaluation(%dy: !torch.vtensor<[8,4,?],f32>, %x: !torch.vtensor<[8,4,?],f32>,
                            %mean: !torch.vtensor<[4],f32>, %var: !torch.vtensor<[4],f32>)
    -> !torch.vtensor<[8,4,?],f32> {
  // CHECK-COUNT-4: builtin.unrealized_conversion_cast
  // CHECK: %[[DX:.+]], %{{.+}}, %{{.+}} = bngrad.batch_norm_backward
  // CHECK-NOT: scale(
  // CHECK-SAME: variance(%{{.+}} : tensor<4xf32>) {epsilon = 1.000000e-05 : f64, statistics = #bngrad.statistics<global>} : tensor<8x4x?xf32>
  // CHECK: %[[RESULT:.+]] = builtin.unrealized_conversion_cast %[[DX]] : tensor<8x4x?xf32> to !torch.vtensor<[8,4,?],f32>
  // CHECK: return %[[RESULT]]
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %mask = "torch.prim.ListConstruct"(%true, %false, %false) : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  %0:3 = "torch.aten.native_batch_norm_backward"(%dy, %x, %none, %mean, %var, %none, %none, %false, %eps, %mask)
      : (!torch.vtensor<[8,4,?],f32>, !torch.vtensor<[8,4,?],f32>, !torch.none, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.list<bool>)
      -> (!torch.vtensor<[8,4,?],f32>, !torch.none, !torch.none)
  return %0#0 : !torch.vtensor<[8,4,?],f32>
}

// -----

// CHECK-LABEL: func.func @does_nothing(
// CHECK-NEXT: "stablehlo.add"
func.func @does_nothing(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.add"(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// MHLO before 2022: one result, a tuple.

// CHECK-LABEL: func.func @tuple(
// CHECK: %[[DX:.+]], %{{.+}}, %[[DOFFSET:.+]] = bngrad.batch_norm_backward
// CHECK-NEXT: return %[[DX]], %[[DOFFSET]] : tensor<8x4xf32>, tensor<4xf32>
func.func @tuple(%x: tensor<8x4xf32>, %scale: tensor<4xf32>, %mean: tensor<4xf32>, %variance: tensor<4xf32>,
                 %dy: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %0 = "mhlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy) {epsilon = 0.0 : f32, feature_index = 1 : i64}
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>)
      -> tuple<tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>>
  %1 = "mhlo.get_tuple_element"(%0) {index = 0 : i32} : (tuple<tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>>) -> tensor<8x4xf32>
  %2 = "mhlo.get_tuple_element"(%0) {index = 2 : i32} : (tuple<tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
  return %1, %2 : tensor<8x4xf32>, tensor<4xf32>
}
