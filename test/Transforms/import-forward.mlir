// RUN: bngrad-opt %s --split-input-file --allow-unregistered-dialect --bngrad-import | FileCheck %s

// CHECK-LABEL: func.func @stablehlo_training(
// CHECK-SAME: %[[X:[^:]+]]: tensor<8x4x6xf32>, %[[SCALE:[^:]+]]: tensor<4xf32>, %[[OFFSET:[^:]+]]: tensor<4xf32>
func.func @stablehlo_training(%x: tensor<8x4x6xf32>, %scale: tensor<4xf32>, %offset: tensor<4xf32>)
    -> (tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[Y:.+]], %[[MEAN:.+]], %[[VARIANCE:.+]], %{{.+}} = bngrad.batch_norm_training input(%[[X]] : tensor<8x4x6xf32>) scale(%[[SCALE]] : tensor<4xf32>) offset(%[[OFFSET]] : tensor<4xf32>) {epsilon = 0.0010000000474974513 : f64} : tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  // CHECK: return %[[Y]], %[[MEAN]], %[[VARIANCE]]
  %0:3 = "stablehlo.batch_norm_training"(%x, %scale, %offset) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
      : (tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1, %0#2 : tensor<8x4x6xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// The statistics of bf16 data are bf16 in StableHLO.
// CHECK-LABEL: func.func @mhlo_training(
func.func @mhlo_training(%x: tensor<?x6x4xbf16>, %p: tensor<?xbf16>) -> tensor<?xbf16> {
  // CHECK: bngrad.batch_norm_training
  // CHECK-SAME: {feature_dims = array<i64: 0>} : tensor<?x6x4xbf16>, tensor<?xbf16>, tensor<?xbf16>, tensor<?xf32>
  %0:3 = "mhlo.batch_norm_training"(%x, %p, %p) {epsilon = 0.0 : f32, feature_index = 0 : i64}
      : (tensor<?x6x4xbf16>, tensor<?xbf16>, tensor<?xbf16>) -> (tensor<?x6x4xbf16>, tensor<?xbf16>, tensor<?xbf16>)
  return %0#2 : tensor<?xbf16>
}

// -----

// CHECK-LABEL: func.func @mhlo_tuple(
func.func @mhlo_tuple(%x: tensor<6x4xf32>, %p: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: %{{.+}}, %[[MEAN:.+]], %{{.+}}, %{{.+}} = bngrad.batch_norm_training
  // CHECK: return %[[MEAN]]
  %0 = "mhlo.batch_norm_training"(%x, %p, %p) {epsilon = 0.0 : f32, feature_index = 1 : i64}
      : (tensor<6x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tuple<tensor<6x4xf32>, tensor<4xf32>, tensor<4xf32>>
  %1 = "mhlo.get_tuple_element"(%0) {index = 1 : i32} : (tuple<tensor<6x4xf32>, tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @stablehlo_inference(
// CHECK-SAME: %[[X:[^:]+]]: tensor<8x6x4xf32>, %[[SCALE:[^:]+]]: tensor<4xf32>, %[[OFFSET:[^:]+]]: tensor<4xf32>, %[[MEAN:[^:]+]]: tensor<4xf32>, %[[VARIANCE:[^:]+]]: tensor<4xf32>
func.func @stablehlo_inference(%x: tensor<8x6x4xf32>, %scale: tensor<4xf32>, %offset: tensor<4xf32>, %mean: tensor<4xf32>,
                               %variance: tensor<4xf32>) -> tensor<8x6x4xf32> {
  // CHECK: %[[Y:.+]] = bngrad.batch_norm_inference input(%[[X]] : tensor<8x6x4xf32>) scale(%[[SCALE]] : tensor<4xf32>) offset(%[[OFFSET]] : tensor<4xf32>) mean(%[[MEAN]] : tensor<4xf32>) variance(%[[VARIANCE]] : tensor<4xf32>) {epsilon = 2.500000e-01 : f64, feature_dims = array<i64: 2>} : tensor<8x6x4xf32>
  // CHECK: return %[[Y]]
  %0 = "stablehlo.batch_norm_inference"(%x, %scale, %offset, %mean, %variance) <{epsilon = 0.25 : f32, feature_index = 2 : i64}>
      : (tensor<8x6x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x6x4xf32>
  return %0 : tensor<8x6x4xf32>
}

// -----

// The saved statistics are the mean and 1/sqrt(variance + eps). The new running
// statistics are (1 - momentum) * running + momentum * batch, where the variance
// of the batch is multiplied by M / (M - 1) = 24 / 23.
// CHECK-LABEL: func.func @torch_functional(
// CHECK-SAME: %[[X:[^:]+]]: tensor<8x4x3xbf16>, %[[W:[^:]+]]: tensor<4xbf16>, %[[B:[^:]+]]: tensor<4xbf16>, %[[RM:[^:]+]]: tensor<4xf32>, %[[RV:[^:]+]]: tensor<4xf32>
func.func @torch_functional(%x: tensor<8x4x3xbf16>, %w: tensor<4xbf16>, %b: tensor<4xbf16>, %rm: tensor<4xf32>, %rv: tensor<4xf32>)
    -> (tensor<8x4x3xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[Y:.+]], %[[MEAN:.+]], %[[VARIANCE:.+]], %[[INV_STD:.+]] = bngrad.batch_norm_training input(%[[X]] : tensor<8x4x3xbf16>) scale(%[[W]] : tensor<4xbf16>) offset(%[[B]] : tensor<4xbf16>) {epsilon = 1.000000e-05 : f64} : tensor<8x4x3xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  // CHECK: %[[NEW_MEAN:.+]] = linalg.generic {{.*}} ins(%[[RM]], %[[MEAN]] : tensor<4xf32>, tensor<4xf32>)
  // CHECK-NEXT: ^bb0(%[[OLD:.+]]: f32, %[[NEW:.+]]: f32, %{{.+}}: f32):
  // CHECK-DAG: %[[KEEP:.+]] = arith.constant 0.699999988 : f32
  // CHECK-DAG: %[[KEPT:.+]] = arith.mulf %[[OLD]], %[[KEEP]]
  // CHECK-DAG: %[[MOMENTUM:.+]] = arith.constant 3.000000e-01 : f32
  // CHECK-DAG: %[[ADDED:.+]] = arith.mulf %[[NEW]], %[[MOMENTUM]]
  // CHECK: arith.addf %[[KEPT]], %[[ADDED]]
  // CHECK: %[[C24:.+]] = arith.constant 24 : i64
  // CHECK: %[[M:.+]] = arith.sitofp %[[C24]] : i64 to f32
  // CHECK: %[[ONE:.+]] = arith.constant 1.0
  // CHECK: %[[REST:.+]] = arith.subf %[[M]], %[[ONE]]
  // CHECK: %[[BESSEL:.+]] = arith.divf %[[M]], %[[REST]]
  // CHECK: %[[NEW_VARIANCE:.+]] = linalg.generic {{.*}} ins(%[[RV]], %[[VARIANCE]] : tensor<4xf32>, tensor<4xf32>)
  // CHECK-NEXT: ^bb0(%{{.+}}: f32, %[[NEW:.+]]: f32, %{{.+}}: f32):
  // CHECK-NEXT: arith.mulf %[[NEW]], %[[BESSEL]]
  // CHECK: return %[[Y]], %[[MEAN]], %[[INV_STD]], %[[NEW_MEAN]], %[[NEW_VARIANCE]]
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:5 = "torch.operator"(%x, %w, %b, %rm, %rv, %true, %momentum, %eps) <{name = "torch.aten._native_batch_norm_legit_functional"}>
      : (tensor<8x4x3xbf16>, tensor<4xbf16>, tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4x3xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<8x4x3xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// In evaluation, the running statistics are kept and the saved ones are empty.
// CHECK-LABEL: func.func @torch_functional_evaluation(
// CHECK-SAME: %[[X:[^:]+]]: tensor<8x4xf32>, %[[RM:[^:]+]]: tensor<4xf32>, %[[RV:[^:]+]]: tensor<4xf32>
func.func @torch_functional_evaluation(%x: tensor<8x4xf32>, %rm: tensor<4xf32>, %rv: tensor<4xf32>)
    -> (tensor<8x4xf32>, tensor<0xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[Y:.+]] = bngrad.batch_norm_inference input(%[[X]] : tensor<8x4xf32>) mean(%[[RM]] : tensor<4xf32>) variance(%[[RV]] : tensor<4xf32>) {epsilon = 1.000000e-05 : f64} : tensor<8x4xf32>
  // CHECK: %[[EMPTY:.+]] = tensor.empty() : tensor<0xf32>
  // CHECK: return %[[Y]], %[[EMPTY]], %[[RM]], %[[RV]]
  %none = "torch.constant.none"() : () -> !torch.none
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:5 = "torch.operator"(%x, %none, %none, %rm, %rv, %false, %momentum, %eps) <{name = "torch.aten._native_batch_norm_legit_functional"}>
      : (tensor<8x4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<0xf32>, tensor<0xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#2, %0#3, %0#4 : tensor<8x4xf32>, tensor<0xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @torch_no_training(
func.func @torch_no_training(%x: !torch.vtensor<[8,4],f32>, %w: !torch.vtensor<[4],f32>, %rm: !torch.vtensor<[4],f32>,
                             %rv: !torch.vtensor<[4],f32>) -> !torch.vtensor<[8,4],f32> {
  // CHECK: %[[Y:.+]] = bngrad.batch_norm_inference input(%{{.+}}) scale(%{{.+}}) mean(%{{.+}}) variance(%{{.+}}) {epsilon = 1.000000e-05 : f64} : tensor<8x4xf32>
  // CHECK: builtin.unrealized_conversion_cast %[[Y]]
  // CHECK-NOT: torch.constant
  %none = "torch.constant.none"() : () -> !torch.none
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:3 = "torch.aten._native_batch_norm_legit_no_training"(%x, %w, %none, %rm, %rv, %momentum, %eps)
      : (!torch.vtensor<[8,4],f32>, !torch.vtensor<[4],f32>, !torch.none, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.float, !torch.float)
      -> (!torch.vtensor<[8,4],f32>, !torch.vtensor<[0],f32>, !torch.vtensor<[0],f32>)
  return %0#0 : !torch.vtensor<[8,4],f32>
}

// -----

// CHECK-LABEL: func.func @torch_no_stats(
func.func @torch_no_stats(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  // CHECK: %[[Y:.+]], %{{.+}}, %{{.+}}, %[[INV_STD:.+]] = bngrad.batch_norm_training
  // CHECK: return %[[Y]], %[[INV_STD]]
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:3 = "torch.operator"(%x, %none, %none, %true, %momentum, %eps) <{name = "torch.aten._native_batch_norm_legit.no_stats"}>
      : (tensor<8x4xf32>, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.float) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#2 : tensor<8x4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @torch_native(
func.func @torch_native(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  // CHECK: %[[Y:.+]], %[[MEAN:.+]], %{{.+}}, %{{.+}} = bngrad.batch_norm_training
  // CHECK: return %[[Y]], %[[MEAN]]
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:3 = "torch.aten.native_batch_norm"(%x, %none, %none, %none, %none, %true, %momentum, %eps)
      : (tensor<8x4xf32>, !torch.none, !torch.none, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<8x4xf32>, tensor<4xf32>
}

// -----

// An op that updates its operands becomes copies to them, whose results are read from then on.
// CHECK-LABEL: func.func @torch_mutating(
// CHECK-SAME: %{{.+}}: !torch.vtensor<[8,4],f32>, %[[RM:.+]]: !torch.vtensor<[4],f32>, %[[RV:.+]]: !torch.vtensor<[4],f32>)
func.func @torch_mutating(%x: !torch.vtensor<[8,4],f32>, %rm: !torch.vtensor<[4],f32>, %rv: !torch.vtensor<[4],f32>)
    -> (!torch.vtensor<[8,4],f32>, !torch.vtensor<[4],f32>) {
  // CHECK: %[[Y:.+]], %[[MEAN:.+]], %[[VARIANCE:.+]], %{{.+}} = bngrad.batch_norm_training
  // CHECK: %[[Y_CAST:.+]] = builtin.unrealized_conversion_cast %[[Y]]
  // CHECK: %[[NEW_MEAN:.+]] = linalg.generic {{.*}} %[[MEAN]]
  // CHECK: %[[NEW_MEAN_CAST:.+]] = builtin.unrealized_conversion_cast %[[NEW_MEAN]]
  // CHECK: %[[RM_COPY:.+]] = "torch.aten.copy_"(%[[RM]], %[[NEW_MEAN_CAST]], %{{.+}}) : (!torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.bool) -> !torch.vtensor<[4],f32>
  // CHECK: %[[NEW_VARIANCE:.+]] = linalg.generic {{.*}} %[[VARIANCE]]
  // CHECK: %[[NEW_VARIANCE_CAST:.+]] = builtin.unrealized_conversion_cast %[[NEW_VARIANCE]]
  // CHECK: "torch.aten.copy_"(%[[RV]], %[[NEW_VARIANCE_CAST]], %{{.+}})
  // CHECK: return %[[Y_CAST]], %[[RM_COPY]]
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:3 = "torch.aten.native_batch_norm"(%x, %none, %none, %rm, %rv, %true, %momentum, %eps)
      : (!torch.vtensor<[8,4],f32>, !torch.none, !torch.none, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.bool, !torch.float, !torch.float)
      -> (!torch.vtensor<[8,4],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>)
  return %0#0, %rm : !torch.vtensor<[8,4],f32>, !torch.vtensor<[4],f32>
}

// -----

// Other forward passes are left to other compilers.
// CHECK-LABEL: func.func @other(
// CHECK: "torch.operator"
func.func @other(%x: !torch.vtensor<[8,4],f32>) -> !torch.vtensor<[8,4],f32> {
  %0 = "torch.operator"(%x) <{name = "torch.aten.batch_norm_update_stats"}> : (!torch.vtensor<[8,4],f32>) -> !torch.vtensor<[8,4],f32>
  return %0 : !torch.vtensor<[8,4],f32>
}

// -----

// Without elements, the running statistics are kept; M is only known at run time.
// CHECK-LABEL: func.func @torch_dynamic(
// CHECK-SAME: %[[X:[^:]+]]: tensor<?x4xf32>, %[[RM:[^:]+]]: tensor<4xf32>
func.func @torch_dynamic(%x: tensor<?x4xf32>, %rm: tensor<4xf32>, %rv: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: bngrad.batch_norm_training
  // CHECK: %[[IS_EMPTY:.+]] = arith.cmpi eq, %{{.+}}, %{{.+}} : i64
  // CHECK: linalg.generic {{.*}} ins(%[[RM]], %{{.+}} : tensor<4xf32>, tensor<4xf32>)
  // CHECK-NEXT: ^bb0(%[[OLD:.+]]: f32, %{{.+}}: f32, %{{.+}}: f32):
  // CHECK: %[[NEW:.+]] = arith.addf
  // CHECK-NEXT: arith.select %[[IS_EMPTY]], %[[OLD]], %[[NEW]]
  // CHECK: linalg.generic
  // CHECK: arith.select
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:5 = "torch.operator"(%x, %none, %none, %rm, %rv, %true, %momentum, %eps) <{name = "torch.aten._native_batch_norm_legit_functional"}>
      : (tensor<?x4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float)
      -> (tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#3, %0#4 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @torch_empty(
// CHECK-SAME: %{{[^:]+}}: tensor<0x4xf32>, %[[RM:[^:]+]]: tensor<4xf32>, %[[RV:[^:]+]]: tensor<4xf32>
func.func @torch_empty(%x: tensor<0x4xf32>, %rm: tensor<4xf32>, %rv: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: return %[[RM]], %[[RV]]
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:5 = "torch.operator"(%x, %none, %none, %rm, %rv, %true, %momentum, %eps) <{name = "torch.aten._native_batch_norm_legit_functional"}>
      : (tensor<0x4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float)
      -> (tensor<0x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#3, %0#4 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @torch_batch_norm(
func.func @torch_batch_norm(%x: tensor<8x4xf32>, %rm: tensor<4xf32>, %rv: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  // CHECK-DAG: %[[TRAINED:.+]], %{{.+}}, %{{.+}}, %{{.+}} = bngrad.batch_norm_training input(%{{.+}}) {epsilon = 1.000000e-05 : f64}
  // CHECK-DAG: %[[EVALUATED:.+]] = bngrad.batch_norm_inference input(%{{.+}}) mean(%{{.+}}) variance(%{{.+}}) {epsilon = 1.000000e-05 : f64}
  // CHECK: return %[[TRAINED]], %[[EVALUATED]]
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %0 = "torch.aten.batch_norm"(%x, %none, %none, %none, %none, %true, %momentum, %eps, %false)
      : (tensor<8x4xf32>, !torch.none, !torch.none, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.float, !torch.bool) -> tensor<8x4xf32>
  %1 = "torch.aten.batch_norm"(%x, %none, %none, %rm, %rv, %false, %momentum, %eps, %true)
      : (tensor<8x4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float, !torch.bool) -> tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// Only the gradient has the reserve as an operand, and does not read it.
// CHECK-LABEL: func.func @torch_cudnn(
func.func @torch_cudnn(%x: tensor<8x4xf32>, %w: tensor<4xf32>, %dy: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  // CHECK: %[[Y:.+]], %[[MEAN:.+]], %{{.+}}, %[[INV_STD:.+]] = bngrad.batch_norm_training input(%{{.+}}) scale(%{{.+}}) {epsilon = 1.000000e-05 : f64}
  // CHECK: %[[DX:.+]], %{{.+}}, %{{.+}} = bngrad.batch_norm_backward {{.*}} mean(%[[MEAN]] : tensor<4xf32>) inv_std(%[[INV_STD]] : tensor<4xf32>)
  // CHECK: return %[[Y]], %[[DX]]
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:4 = "torch.operator"(%x, %w, %none, %none, %none, %true, %momentum, %eps) <{name = "torch.aten.cudnn_batch_norm"}>
      : (tensor<8x4xf32>, tensor<4xf32>, !torch.none, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, !torch.vtensor<[0],ui8>)
  %1:3 = "torch.operator"(%x, %dy, %w, %none, %none, %0#1, %0#2, %eps, %0#3) <{name = "torch.aten.cudnn_batch_norm_backward"}>
      : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.float, !torch.vtensor<[0],ui8>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %1#0 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// CHECK-LABEL: func.func @torch_miopen(
func.func @torch_miopen(%x: tensor<8x4xf32>, %w: tensor<4xf32>, %rm: tensor<4xf32>, %rv: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<0xf32>) {
  // CHECK: %[[Y:.+]] = bngrad.batch_norm_inference {{.*}} mean(%{{.+}}) variance(%{{.+}}) {epsilon = 1.000000e-05 : f64}
  // CHECK: %[[EMPTY:.+]] = tensor.empty() : tensor<0xf32>
  // CHECK: return %[[Y]], %[[EMPTY]]
  %none = "torch.constant.none"() : () -> !torch.none
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:3 = "torch.operator"(%x, %w, %none, %rm, %rv, %false, %momentum, %eps) <{name = "torch.aten.miopen_batch_norm"}>
      : (tensor<8x4xf32>, tensor<4xf32>, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.bool, !torch.float, !torch.float)
      -> (tensor<8x4xf32>, tensor<0xf32>, tensor<0xf32>)
  return %0#0, %0#1 : tensor<8x4xf32>, tensor<0xf32>
}

// -----

// The synchronized forward pass. The inverse standard deviation includes epsilon.
// CHECK-LABEL: func.func @torch_synchronized(
// CHECK-SAME: %[[X:[^:]+]]: tensor<8x4xbf16>, %[[MEANS:[^:]+]]: tensor<2x4xf32>, %[[STDS:[^:]+]]: tensor<2x4xf32>, %[[COUNTS:[^:]+]]: tensor<2xf32>
func.func @torch_synchronized(%x: tensor<8x4xbf16>, %means: tensor<2x4xf32>, %stds: tensor<2x4xf32>, %counts: tensor<2xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<8x4xbf16>) {
  // CHECK: %{{.+}}, %[[MEAN:.+]], %{{.+}}, %[[INV_STD:.+]] = bngrad.batch_norm_training input(%[[X]] : tensor<8x4xbf16>) {epsilon = 1.000000e-05 : f64}
  // CHECK: %[[SUMS:.+]]:2 = linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]{{.*}} ins(%[[MEANS]], %[[STDS]], %[[COUNTS]] :
  // CHECK: %[[ALL_MEAN:.+]] = linalg.generic {{.*}}iterator_types = ["parallel"]{{.*}} ins(%[[SUMS]]#1, %[[SUMS]]#0 :
  // CHECK: %[[SQUARES:.+]] = linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]{{.*}} ins(%[[MEANS]], %[[STDS]], %[[COUNTS]], %[[ALL_MEAN]] :
  // CHECK-NEXT: ^bb0(%[[M:.+]]: f32, %[[R:.+]]: f32, %[[N:.+]]: f32, %[[ALL:.+]]: f32, %{{.+}}: f32):
  // CHECK: %[[STD:.+]] = arith.divf %{{.+}}, %[[R]]
  // CHECK: %[[SQUARE:.+]] = arith.mulf %[[STD]], %[[STD]]
  // CHECK: %[[VARIANCE:.+]] = arith.subf %[[SQUARE]], %{{.+}}
  // CHECK: %[[DISTANCE:.+]] = arith.subf %[[M]], %[[ALL]]
  // CHECK: %[[BETWEEN:.+]] = arith.mulf %[[DISTANCE]], %[[DISTANCE]]
  // CHECK: %[[BOTH:.+]] = arith.addf %[[VARIANCE]], %[[BETWEEN]]
  // CHECK: arith.mulf %[[N]], %[[BOTH]]
  // CHECK: %[[ALL_INV_STD:.+]] = linalg.generic {{.*}} ins(%[[SQUARES]], %[[SUMS]]#0 :
  // CHECK: %[[Y:.+]] = bngrad.batch_norm_inference input(%[[X]] : tensor<8x4xbf16>) mean(%[[ALL_MEAN]] : tensor<4xf32>) inv_std(%[[ALL_INV_STD]] : tensor<4xf32>) : tensor<8x4xbf16>
  // CHECK: return %[[MEAN]], %[[INV_STD]], %[[Y]]
  %none = "torch.constant.none"() : () -> !torch.none
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:2 = "torch.operator"(%x, %eps) <{name = "torch.aten.batch_norm_stats"}> : (tensor<8x4xbf16>, !torch.float) -> (tensor<4xf32>, tensor<4xf32>)
  %1:2 = "torch.operator"(%x, %means, %stds, %none, %none, %momentum, %eps, %counts) <{name = "torch.aten.batch_norm_gather_stats_with_counts"}>
      : (tensor<8x4xbf16>, tensor<2x4xf32>, tensor<2x4xf32>, !torch.none, !torch.none, !torch.float, !torch.float, tensor<2xf32>)
      -> (tensor<4xf32>, tensor<4xf32>)
  %2 = "torch.operator"(%x, %none, %none, %1#0, %1#1, %eps) <{name = "torch.aten.batch_norm_elemt"}>
      : (tensor<8x4xbf16>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.float) -> tensor<8x4xbf16>
  return %0#0, %0#1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<8x4xbf16>
}

// -----

// The defaults of ONNX: epsilon 1e-5, evaluation.
// CHECK-LABEL: func.func @onnx(
func.func @onnx(%x: tensor<8x4x5xf32>, %p: tensor<4xf32>, %mean: tensor<4xf32>, %variance: tensor<4xf32>) -> tensor<8x4x5xf32> {
  // CHECK: bngrad.batch_norm_inference input(%arg0 : tensor<8x4x5xf32>) scale(%arg1 : tensor<4xf32>) offset(%arg1 : tensor<4xf32>) mean(%arg2 : tensor<4xf32>) variance(%arg3 : tensor<4xf32>) {epsilon = 1.000000e-05 : f64}
  %0 = "torch.operator"(%x, %p, %p, %mean, %variance) <{name = "onnx.BatchNormalization"}>
      : (tensor<8x4x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4x5xf32>
  return %0 : tensor<8x4x5xf32>
}

// -----

// Momentum is the factor of the old value, and the variance is biased.
// CHECK-LABEL: func.func @onnx_training(
func.func @onnx_training(%x: tensor<8x4x5xf32>, %p: tensor<4xf32>, %mean: tensor<4xf32>, %variance: tensor<4xf32>)
    -> (tensor<8x4x5xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[Y:.+]], %[[MEAN:.+]], %[[VARIANCE:.+]], %{{.+}} = bngrad.batch_norm_training input(%arg0 : tensor<8x4x5xf32>) scale(%arg1 : tensor<4xf32>) offset(%arg1 : tensor<4xf32>) {epsilon = 5.000000e-01 : f64}
  // CHECK: %[[NEW_MEAN:.+]] = linalg.generic {{.*}} ins(%arg2, %[[MEAN]] : tensor<4xf32>, tensor<4xf32>)
  // CHECK-NEXT: ^bb0(%[[OLD:.+]]: f32, %[[BATCH:.+]]: f32, %{{.+}}: f32):
  // CHECK-DAG: %[[KEEP:.+]] = arith.constant 7.500000e-01 : f32
  // CHECK-DAG: arith.mulf %[[OLD]], %[[KEEP]]
  // CHECK-DAG: %[[ADD:.+]] = arith.constant 2.500000e-01 : f32
  // CHECK-DAG: arith.mulf %[[BATCH]], %[[ADD]]
  // CHECK-NOT: arith.divf
  // CHECK: %[[NEW_VARIANCE:.+]] = linalg.generic {{.*}} ins(%arg3, %[[VARIANCE]] : tensor<4xf32>, tensor<4xf32>)
  // CHECK: return %[[Y]], %[[NEW_MEAN]], %[[NEW_VARIANCE]]
  %0:3 = "torch.operator"(%x, %p, %p, %mean, %variance) <{name = "onnx.BatchNormalization"}>
      {torch.onnx.epsilon = 0.5 : f32, torch.onnx.momentum = 0.75 : f32, torch.onnx.training_mode = 1 : si64}
      : (tensor<8x4x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x5xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1, %0#2 : tensor<8x4x5xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @onnx_evaluation(
func.func @onnx_evaluation(%x: tensor<8x4xf32>, %p: tensor<4xf32>) -> tensor<8x4xf32> {
  // CHECK: bngrad.batch_norm_inference {{.*}} {epsilon = 2.500000e-01 : f64}
  %0 = "torch.operator"(%x, %p, %p, %p, %p) <{name = "onnx.BatchNormalization"}> {torch.onnx.epsilon = 0.25 : f32, torch.onnx.training_mode = 0 : si64}
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
