// What depends only on constants is computed by bngrad-fuse, element by element.

// RUN: bngrad-opt %s --bngrad-decompose --bngrad-fuse --canonicalize --mlir-print-local-scope | FileCheck %s
// RUN: bngrad-opt %s --bngrad-cpu-pipeline=stop-after=group --mlir-print-local-scope | FileCheck %s --check-prefix=GROUP

// scale/sqrt(variance + epsilon), rounded to f32 after each op: 3/2, 2/3 and -4/5. Mean and offset stay, so that
// nothing cancels. The loops over the data remain a group.
// CHECK-LABEL: func @inference
// CHECK-SAME:    (%[[X:.+]]: tensor<2x3x8xf32>)
// CHECK-DAG:     %[[MEAN:.+]] = arith.constant dense<[5.000000e-01, 1.000000e+00, -2.000000e+00]>
// CHECK-DAG:     %[[OFFSET:.+]] = arith.constant dense<[7.000000e+00, 8.000000e+00, 9.000000e+00]>
// CHECK-DAG:     %[[FACTOR:.+]] = arith.constant dense<[1.500000e+00, 0.666666686, -8.000000e-01]>
// CHECK:         linalg.generic {{.*}} ins(%[[X]], %[[MEAN]], %[[FACTOR]], %[[OFFSET]] :
// CHECK-NOT:     math.sqrt
// CHECK:         return
// GROUP-LABEL: func @inference
// GROUP:         scf.execute_region
// GROUP-NEXT:      linalg.generic {{.*}} attrs = {bngrad.schedule =
// GROUP-NOT:     linalg.generic
// GROUP:         return
func.func @inference(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %scale = arith.constant dense<[3.0, 2.0, -4.0]> : tensor<3xf32>
  %offset = arith.constant dense<[7.0, 8.0, 9.0]> : tensor<3xf32>
  %mean = arith.constant dense<[0.5, 1.0, -2.0]> : tensor<3xf32>
  %variance = arith.constant dense<[3.0, 8.0, 24.0]> : tensor<3xf32>
  %0 = bngrad.batch_norm_inference input(%x : tensor<2x3x8xf32>) scale(%scale : tensor<3xf32>) offset(%offset : tensor<3xf32>)
      mean(%mean : tensor<3xf32>) variance(%variance : tensor<3xf32>) {epsilon = 1.0 : f64} : tensor<2x3x8xf32>
  return %0 : tensor<2x3x8xf32>
}

// Two feature dims, and constants of bf16: the factor has the type of all arithmetic, f32.
// CHECK-LABEL: func @two_feature_dims
// CHECK:         arith.constant dense<{{\[\[}}2.000000e+00, 1.000000e+00], [5.000000e-01, 2.500000e-01]]> : tensor<2x2xf32>
// CHECK:         linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @two_feature_dims(%x: tensor<5x2x2xbf16>, %mean: tensor<2x2xbf16>) -> tensor<5x2x2xbf16> {
  %variance = arith.constant dense<[[0.25, 1.0], [4.0, 16.0]]> : tensor<2x2xbf16>
  %0 = bngrad.batch_norm_inference input(%x : tensor<5x2x2xbf16>) mean(%mean : tensor<2x2xbf16>) variance(%variance : tensor<2x2xbf16>)
      {feature_dims = array<i64: 1, 2>} : tensor<5x2x2xbf16>
  return %0 : tensor<5x2x2xbf16>
}

// The gradient of a frozen batch norm.
// CHECK-LABEL: func @gradient
// CHECK:         %[[FACTOR:.+]] = arith.constant dense<[2.000000e+00, 5.000000e-01]>
// CHECK:         linalg.generic {{.*}} ins(%{{.+}}, %[[FACTOR]] :
// CHECK-NOT:     linalg.generic
// CHECK:         return
// GROUP-LABEL: func @gradient
// GROUP:         scf.execute_region
// GROUP-NEXT:      linalg.generic {{.*}} attrs = {bngrad.schedule =
func.func @gradient(%dy: tensor<5x2x4xf32>, %x: tensor<5x2x4xf32>, %mean: tensor<2xf32>) -> tensor<5x2x4xf32> {
  %variance = arith.constant dense<[0.25, 4.0]> : tensor<2xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<5x2x4xf32>) input(%x : tensor<5x2x4xf32>)
      mean(%mean : tensor<2xf32>) variance(%variance : tensor<2xf32>) {statistics = #bngrad.statistics<global>}
      : tensor<5x2x4xf32>, tensor<2xf32>, tensor<2xf32>
  return %0#0 : tensor<5x2x4xf32>
}

// CHECK-LABEL: func @infinite
// GROUP-LABEL: func @infinite
// CHECK:         arith.constant dense<[0x7F800000, 5.000000e-01, 0.000000e+00]>
func.func @infinite(%x: tensor<5x3xf32>, %mean: tensor<3xf32>) -> tensor<5x3xf32> {
  %variance = arith.constant dense<[0.0, 4.0, 0x7F800000]> : tensor<3xf32>
  %0 = bngrad.batch_norm_inference input(%x : tensor<5x3xf32>) mean(%mean : tensor<3xf32>) variance(%variance : tensor<3xf32>)
      : tensor<5x3xf32>
  return %0 : tensor<5x3xf32>
}

// === What stays ===

// One operand is no constant.
// CHECK-LABEL: func @scale_is_no_constant
// CHECK:         math.sqrt
// GROUP-LABEL: func @scale_is_no_constant
// GROUP:         scf.execute_region
// GROUP-COUNT-2:   #bngrad.schedule
func.func @scale_is_no_constant(%x: tensor<5x3xf32>, %scale: tensor<3xf32>, %mean: tensor<3xf32>) -> tensor<5x3xf32> {
  %variance = arith.constant dense<[3.0, 8.0, 24.0]> : tensor<3xf32>
  %0 = bngrad.batch_norm_inference input(%x : tensor<5x3xf32>) scale(%scale : tensor<3xf32>) mean(%mean : tensor<3xf32>)
      variance(%variance : tensor<3xf32>) {epsilon = 1.0 : f64} : tensor<5x3xf32>
  return %0 : tensor<5x3xf32>
}

// A factor that all channels share would be a scalar, and bngrad-group would not find the loops over channels.
// CHECK-LABEL: func @equal_channels
// CHECK-COUNT-2: linalg.generic
// GROUP-LABEL: func @equal_channels
// GROUP:         scf.execute_region
// GROUP-COUNT-2:   #bngrad.schedule
func.func @equal_channels(%x: tensor<5x3xf32>) -> tensor<5x3xf32> {
  %mean = arith.constant dense<0.0> : tensor<3xf32>
  %variance = arith.constant dense<4.0> : tensor<3xf32>
  %0 = bngrad.batch_norm_inference input(%x : tensor<5x3xf32>) mean(%mean : tensor<3xf32>) variance(%variance : tensor<3xf32>)
      : tensor<5x3xf32>
  return %0 : tensor<5x3xf32>
}

// MLIR folds no root of a negative number.
// CHECK-LABEL: func @nan
// CHECK:         math.sqrt
func.func @nan(%x: tensor<5x3xf32>, %mean: tensor<3xf32>) -> tensor<5x3xf32> {
  %variance = arith.constant dense<[0.0, -1.0, 4.0]> : tensor<3xf32>
  %0 = bngrad.batch_norm_inference input(%x : tensor<5x3xf32>) mean(%mean : tensor<3xf32>) variance(%variance : tensor<3xf32>)
      : tensor<5x3xf32>
  return %0 : tensor<5x3xf32>
}

// Nor a conversion that rounds.
// CHECK-LABEL: func @rounded
// CHECK:         arith.truncf
func.func @rounded() -> tensor<2xbf16> {
  %x = arith.constant dense<[0.1, 0.2]> : tensor<2xf32>
  %empty = tensor.empty() : tensor<2xbf16>
  %0 = linalg.generic {indexing_maps = [affine_map<(c) -> (c)>, affine_map<(c) -> (c)>], iterator_types = ["parallel"]}
      ins(%x : tensor<2xf32>) outs(%empty : tensor<2xbf16>) {
  ^bb0(%e: f32, %out: bf16):
    %1 = arith.truncf %e : f32 to bf16
    linalg.yield %1 : bf16
  } -> tensor<2xbf16>
  return %0 : tensor<2xbf16>
}

// An init that is read, and the index of a loop.
// CHECK-LABEL: func @other_values
// CHECK-COUNT-2: linalg.generic
func.func @other_values(%init: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xindex>) {
  %x = arith.constant dense<[0.5, 0.25]> : tensor<2xf32>
  %i = arith.constant dense<[3, 4]> : tensor<2xindex>
  %empty = tensor.empty() : tensor<2xindex>
  %0 = linalg.generic {indexing_maps = [affine_map<(c) -> (c)>, affine_map<(c) -> (c)>], iterator_types = ["parallel"]}
      ins(%x : tensor<2xf32>) outs(%init : tensor<2xf32>) {
  ^bb0(%e: f32, %out: f32):
    %1 = arith.addf %e, %out : f32
    linalg.yield %1 : f32
  } -> tensor<2xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(c) -> (c)>, affine_map<(c) -> (c)>], iterator_types = ["parallel"]}
      ins(%i : tensor<2xindex>) outs(%empty : tensor<2xindex>) {
  ^bb0(%e: index, %out: index):
    %1 = linalg.index 0 : index
    %3 = arith.addi %1, %e : index
    linalg.yield %3 : index
  } -> tensor<2xindex>
  return %0, %2 : tensor<2xf32>, tensor<2xindex>
}
