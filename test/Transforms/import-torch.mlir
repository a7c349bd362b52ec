// RUN: bngrad-opt %s --split-input-file --bngrad-import | FileCheck %s
// RUN: bngrad-opt %s --split-input-file --bngrad-import=torch-casts=torch_c | FileCheck %s --check-prefix=TORCH-C
// RUN: bngrad-opt %s --split-input-file --bngrad-import --bngrad-torch-to-builtin | FileCheck %s --check-prefix=BUILTIN

// The gradients of torch beside native_batch_norm_backward, as torch-mlir
// prints them in generic form: as ops of their own, or as a torch.operator.

// cuDNN: training; its save_var is an inverse standard deviation.

// CHECK-LABEL: func.func @cudnn(
// CHECK-SAME: %[[X:[^:]+]]: !torch.vtensor<[8,4],f16>, %[[DY:[^:]+]]: !torch.vtensor<[8,4],f16>
// CHECK-DAG: %[[DX0:.+]] = builtin.unrealized_conversion_cast %[[DY]] : !torch.vtensor<[8,4],f16> to tensor<8x4xf16>
// CHECK-DAG: %[[X0:.+]] = builtin.unrealized_conversion_cast %[[X]] : !torch.vtensor<[8,4],f16> to tensor<8x4xf16>
// CHECK: %[[DX:.+]], %{{.+}}, %{{.+}} = bngrad.batch_norm_backward grad_output(%[[DX0]] : tensor<8x4xf16>) input(%[[X0]] : tensor<8x4xf16>)
// CHECK-SAME: scale(%{{.+}} : tensor<4xf32>) mean(%{{.+}} : tensor<4xf32>) inv_std(%{{.+}} : tensor<4xf32>) : tensor<8x4xf16>, tensor<4xf32>, tensor<4xf32>
// CHECK-NOT: torch.operator
// CHECK: return

// BUILTIN-LABEL: func.func @cudnn(
// BUILTIN-SAME: %{{[^:]+}}: tensor<8x4xf16>, %{{[^:]+}}: tensor<8x4xf16>, %{{[^:]+}}: tensor<4xf32>,
// BUILTIN-SAME: -> (tensor<8x4xf16>, tensor<4xf32>, tensor<4xf32>)
// BUILTIN-NOT: unrealized_conversion_cast
// BUILTIN: return

// TORCH-C-LABEL: func.func @cudnn(
// TORCH-C: "torch_c.to_builtin_tensor"(%{{.+}}) : (!torch.vtensor<[4],f32>) -> tensor<4xf32>
// TORCH-C: "torch_c.from_builtin_tensor"(%{{.+}}) : (tensor<8x4xf16>) -> !torch.vtensor<[8,4],f16>
func.func @cudnn(%x: !torch.vtensor<[8,4],f16>, %dy: !torch.vtensor<[8,4],f16>, %w: !torch.vtensor<[4],f32>,
                 %mean: !torch.vtensor<[4],f32>, %invstd: !torch.vtensor<[4],f32>)
    -> (!torch.vtensor<[8,4],f16>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:3 = "torch.operator"(%x, %dy, %w, %none, %none, %mean, %invstd, %eps, %none)
      <{name = "torch.aten.cudnn_batch_norm_backward"}>
      : (!torch.vtensor<[8,4],f16>, !torch.vtensor<[8,4],f16>, !torch.vtensor<[4],f32>, !torch.none, !torch.none, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.float, !torch.none)
      -> (!torch.vtensor<[8,4],f16>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>)
  return %0#0, %0#1, %0#2 : !torch.vtensor<[8,4],f16>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>
}

// -----

// CHECK-LABEL: func.func @miopen(
// CHECK-SAME: %[[X:[^:]+]]: tensor<8x4xf32>, %[[DY:[^:]+]]: tensor<8x4xf32>, %[[W:[^:]+]]: tensor<4xf32>, %[[M:[^:]+]]: tensor<4xf32>, %[[I:[^:]+]]: tensor<4xf32>
// CHECK-NEXT: bngrad.batch_norm_backward grad_output(%[[DY]] : tensor<8x4xf32>) input(%[[X]] : tensor<8x4xf32>) scale(%[[W]] : tensor<4xf32>) mean(%[[M]] : tensor<4xf32>) inv_std(%[[I]] : tensor<4xf32>)
// CHECK-NEXT: return
func.func @miopen(%x: tensor<8x4xf32>, %dy: tensor<8x4xf32>, %w: tensor<4xf32>, %mean: tensor<4xf32>,
                  %invstd: tensor<4xf32>) -> tensor<8x4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:3 = "torch.aten.miopen_batch_norm_backward"(%x, %dy, %w, %none, %none, %mean, %invstd, %eps)
      : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.float)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<8x4xf32>
}

// -----

// Evaluation by aten.batch_norm_backward: its `update` is `train`.

// CHECK-LABEL: func.func @evaluation(
// CHECK-SAME: %[[DY:[^:]+]]: tensor<8x4xf32>, %[[X:[^:]+]]: tensor<8x4xf32>, %[[W:[^:]+]]: tensor<4xf32>, %[[M:[^:]+]]: tensor<4xf32>, %[[V:[^:]+]]: tensor<4xf32>
// CHECK: bngrad.batch_norm_backward grad_output(%[[DY]] : tensor<8x4xf32>) input(%[[X]] : tensor<8x4xf32>) scale(%[[W]] : tensor<4xf32>) mean(%[[M]] : tensor<4xf32>) variance(%[[V]] : tensor<4xf32>) {epsilon = 1.000000e-05 : f64, statistics = #bngrad.statistics<global>}
func.func @evaluation(%dy: tensor<8x4xf32>, %x: tensor<8x4xf32>, %w: tensor<4xf32>, %mean: tensor<4xf32>,
                      %var: tensor<4xf32>) -> tensor<8x4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %mask = "torch.prim.ListConstruct"(%true, %false, %false) : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
  %0:3 = "torch.aten.batch_norm_backward"(%dy, %x, %w, %mean, %var, %none, %none, %false, %eps, %mask, %none)
      : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.list<bool>, !torch.none)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<8x4xf32>
}

// -----

// The halves of SyncBatchNorm. grad_weight is sum_dy_xmu * invstd.

// CHECK-LABEL: func.func @reduce(
// CHECK: %[[SUMS:.+]], %{{.+}} = bngrad.batch_norm_backward_reduce
// CHECK-SAME: : tensor<2x4xf32>, tensor<i64>
// CHECK: %[[DY:.+]] = tensor.extract_slice %[[SUMS]][0, 0] [1, 4] [1, 1] : tensor<2x4xf32> to tensor<4xf32>
// CHECK: %[[XMU:.+]] = tensor.extract_slice %[[SUMS]][1, 0] [1, 4] [1, 1] : tensor<2x4xf32> to tensor<4xf32>
// CHECK: %[[WEIGHT:.+]] = arith.mulf %[[XMU]], %{{.+}} : tensor<4xf32>
// CHECK: %[[NARROW:.+]] = arith.truncf %[[WEIGHT]] : tensor<4xf32> to tensor<4xbf16>
// CHECK: return %[[DY]], %[[XMU]], %[[NARROW]] : tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>
func.func @reduce(%dy: tensor<8x4xbf16>, %x: tensor<8x4xbf16>, %mean: tensor<4xf32>, %invstd: tensor<4xf32>,
                  %w: tensor<4xbf16>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>) {
  %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %0:4 = "torch.operator"(%dy, %x, %mean, %invstd, %w, %true, %true, %false)
      <{name = "torch.aten.batch_norm_backward_reduce"}>
      : (tensor<8x4xbf16>, tensor<8x4xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>, !torch.bool, !torch.bool, !torch.bool)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>, tensor<4xbf16>)
  return %0#0, %0#1, %0#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>
}

// -----

// The counts of all processes are added.

// CHECK-LABEL: func.func @elemt(
// CHECK-SAME: %[[SUM_DY:[^:]+]]: tensor<4xf32>, %[[SUM_DY_XMU:[^:]+]]: tensor<4xf32>, %[[COUNT:[^:]+]]: tensor<2xi32>)
// CHECK: %[[TOTAL:.+]] = linalg.generic {{.+}}iterator_types = ["reduction"]} ins(%[[COUNT]] : tensor<2xi32>) outs(%{{.+}} : tensor<i64>)
// CHECK: arith.extsi
// CHECK: arith.addi
// CHECK: tensor.insert_slice %[[SUM_DY]] into %{{.+}}[0, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<2x4xf32>
// CHECK: %[[SUMS:.+]] = tensor.insert_slice %[[SUM_DY_XMU]] into %{{.+}}[1, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<2x4xf32>
// CHECK: bngrad.batch_norm_backward_elemt
// CHECK-NOT: scale(
// CHECK-SAME: inv_std(%{{.+}} : tensor<4xf32>) sums(%[[SUMS]] : tensor<2x4xf32>) count(%[[TOTAL]] : tensor<i64>) : tensor<8x4xbf16>
func.func @elemt(%dy: tensor<8x4xbf16>, %x: tensor<8x4xbf16>, %mean: tensor<4xf32>, %invstd: tensor<4xf32>,
                 %sum_dy: tensor<4xf32>, %sum_dy_xmu: tensor<4xf32>, %count: tensor<2xi32>) -> tensor<8x4xbf16> {
  %none = "torch.constant.none"() : () -> !torch.none
  %0 = "torch.operator"(%dy, %x, %mean, %invstd, %none, %sum_dy, %sum_dy_xmu, %count)
      <{name = "torch.aten.batch_norm_backward_elemt"}>
      : (tensor<8x4xbf16>, tensor<8x4xbf16>, tensor<4xf32>, tensor<4xf32>, !torch.none, tensor<4xf32>, tensor<4xf32>, tensor<2xi32>)
      -> tensor<8x4xbf16>
  return %0 : tensor<8x4xbf16>
}

// -----

// PyTorch's own graphs for a GPU: reserve space is an argument, optional operands are derefined, and constants that
// nothing uses remain.

// CHECK-LABEL: func.func @reserve_space(
// CHECK-NOT: "torch.
// CHECK: bngrad.batch_norm_backward grad_output(%{{.+}} : tensor<8x4xf16>) input(%{{.+}} : tensor<8x4xf16>) scale(%{{.+}} : tensor<4xf32>)
// CHECK-NOT: "torch.
// CHECK: return

// BUILTIN-LABEL: func.func @reserve_space(
// BUILTIN-SAME: %{{[^:]+}}: tensor<?xi8>, %{{[^:]+}}: tensor<8x4xf16>
func.func @reserve_space(%reserve: !torch.vtensor<[?],ui8>, %x: !torch.vtensor<[8,4],f16>,
                         %dy: !torch.vtensor<[8,4],f16>, %w: !torch.vtensor<[4],f32>, %mean: !torch.vtensor<[4],f32>,
                         %invstd: !torch.vtensor<[4],f32>) -> !torch.vtensor<[8,4],f16> {
  %dead = "torch.constant.int"() <{value = 5 : i64}> : () -> !torch.int
  %unused = "torch.prim.ListConstruct"(%dead) : (!torch.int) -> !torch.list<int>
  %none = "torch.constant.none"() : () -> !torch.none
  %no_mean = "torch.derefine"(%none) : (!torch.none) -> !torch.optional<vtensor<[4],f32>>
  %weight = "torch.derefine"(%w) : (!torch.vtensor<[4],f32>) -> !torch.optional<vtensor<[4],f32>>
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:3 = "torch.operator"(%x, %dy, %weight, %no_mean, %no_mean, %mean, %invstd, %eps, %reserve)
      <{name = "torch.aten.cudnn_batch_norm_backward"}>
      : (!torch.vtensor<[8,4],f16>, !torch.vtensor<[8,4],f16>, !torch.optional<vtensor<[4],f32>>, !torch.optional<vtensor<[4],f32>>, !torch.optional<vtensor<[4],f32>>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.float, !torch.vtensor<[?],ui8>)
      -> (!torch.vtensor<[8,4],f16>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>)
  return %0#0 : !torch.vtensor<[8,4],f16>
}

// -----

// CHECK-LABEL: func.func @literal_reserve_space(
// CHECK-NOT: "torch.
// CHECK: bngrad.batch_norm_backward
// CHECK-NOT: "torch.
// CHECK: return
func.func @literal_reserve_space(%x: tensor<8x4xf32>, %dy: tensor<8x4xf32>, %mean: tensor<4xf32>,
                                 %invstd: tensor<4xf32>) -> tensor<8x4xf32> {
  %none = "torch.constant.none"() : () -> !torch.none
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %reserve = "torch.vtensor.literal"() <{value = dense<0> : tensor<4xui8>}> : () -> !torch.vtensor<[4],ui8>
  %0:3 = "torch.operator"(%x, %dy, %none, %none, %none, %mean, %invstd, %eps, %reserve)
      <{name = "torch.aten.cudnn_batch_norm_backward"}>
      : (tensor<8x4xf32>, tensor<8x4xf32>, !torch.none, !torch.none, !torch.none, tensor<4xf32>, tensor<4xf32>, !torch.float, !torch.vtensor<[4],ui8>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<8x4xf32>
}

// -----

// What graphs with dynamic sizes and without gradients of some inputs have as well.

// CHECK-LABEL: func.func @annotations(
// CHECK-NOT: "torch.
// CHECK: %[[NONE:.+]] = "torch.constant.none"
// CHECK-NOT: "torch.
// CHECK: return %{{.+}}, %[[NONE]], %{{.+}} : !torch.vtensor<[?,4],f32>, !torch.none, !torch.vtensor<[4],f32>

// BUILTIN-LABEL: func.func @annotations(
// BUILTIN-SAME: -> (tensor<?x4xf32>, tensor<4xf32>)
// BUILTIN-NOT: "torch.
// BUILTIN: return %{{.+}}, %{{.+}} : tensor<?x4xf32>, tensor<4xf32>
func.func @annotations(%reserve: !torch.vtensor<*,ui8>, %x: !torch.vtensor<[?,4],f32>, %dy: !torch.vtensor<[?,4],f32>,
                       %mean: !torch.vtensor<[4],f32>, %invstd: !torch.vtensor<[4],f32>)
    -> (!torch.vtensor<[?,4],f32>, !torch.none, !torch.vtensor<[4],f32>) {
  %s0 = "torch.symbolic_int"() <{max_val = 100 : i64, min_val = 2 : i64, symbol_name = "s0"}> : () -> !torch.int
  "torch.bind_symbolic_shape"(%x, %s0) <{shape_expressions = affine_map<()[s0] -> (s0, 4)>}>
      : (!torch.vtensor<[?,4],f32>, !torch.int) -> ()
  %detached = "torch.aten.detach"(%reserve) : (!torch.vtensor<*,ui8>) -> !torch.vtensor<*,ui8>
  %known = "torch.tensor_static_info_cast"(%detached) : (!torch.vtensor<*,ui8>) -> !torch.vtensor<[4],ui8>
  %literal = "torch.tensor.literal"() <{value = dense<> : tensor<0xui8>}> : () -> !torch.tensor<[0],ui8>
  %none = "torch.constant.none"() : () -> !torch.none
  %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
  %0:3 = "torch.operator"(%x, %dy, %none, %none, %none, %mean, %invstd, %eps, %known)
      <{name = "torch.aten.cudnn_batch_norm_backward"}>
      : (!torch.vtensor<[?,4],f32>, !torch.vtensor<[?,4],f32>, !torch.none, !torch.none, !torch.none, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.float, !torch.vtensor<[4],ui8>)
      -> (!torch.vtensor<[?,4],f32>, !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>)
  return %0#0, %none, %0#2 : !torch.vtensor<[?,4],f32>, !torch.none, !torch.vtensor<[4],f32>
}
