// RUN: bngrad-opt %s --split-input-file --bngrad-split | FileCheck %s

// grad_scale is row 1 times r, grad_offset row 0; for a dynamic batch, the
// count determines at run time whether there are elements.

// CHECK-LABEL: func.func @all_results(
// CHECK-SAME: %[[DY:[^:]+]]: tensor<?x3xf16>, %[[X:[^:]+]]: tensor<?x3xf16>, %[[SCALE:[^:]+]]: tensor<3xf32>, %[[MEAN:[^:]+]]: tensor<3xf32>, %[[VARIANCE:[^:]+]]: tensor<3xf32>, %[[MASK:[^:]+]]: tensor<?x3xi1>
func.func @all_results(%dy: tensor<?x3xf16>, %x: tensor<?x3xf16>, %scale: tensor<3xf32>, %mean: tensor<3xf32>,
                       %variance: tensor<3xf32>, %mask: tensor<?x3xi1>)
    -> (tensor<?x3xf16>, tensor<3xf32>, tensor<3xf32>) {
  // CHECK: %[[SUMS:.+]], %[[COUNT:.+]] = bngrad.batch_norm_backward_reduce grad_output(%[[DY]] : tensor<?x3xf16>) input(%[[X]] : tensor<?x3xf16>) mean(%[[MEAN]] : tensor<3xf32>) mask(%[[MASK]] : tensor<?x3xi1>) : tensor<2x3xf32>, tensor<i64>
  // CHECK: %[[SUM_DY:.+]] = tensor.extract_slice %[[SUMS]][0, 0] [1, 3] [1, 1]
  // CHECK: %[[SUM_DY_XMU:.+]] = tensor.extract_slice %[[SUMS]][1, 0] [1, 3] [1, 1]
  // CHECK: %[[N:.+]] = tensor.extract %[[COUNT]][]
  // CHECK: %[[EMPTY:.+]] = arith.cmpi eq, %[[N]]
  // CHECK: %[[CHANNEL:.+]]:2 = linalg.generic
  // CHECK-SAME: iterator_types = ["parallel"]
  // CHECK-SAME: ins(%[[SUM_DY]], %[[SUM_DY_XMU]], %[[VARIANCE]]
  // CHECK: arith.select %[[EMPTY]]
  // CHECK: %[[DX:.+]] = bngrad.batch_norm_backward_elemt grad_output(%[[DY]] : tensor<?x3xf16>) input(%[[X]] : tensor<?x3xf16>) scale(%[[SCALE]] : tensor<3xf32>) mean(%[[MEAN]] : tensor<3xf32>) variance(%[[VARIANCE]] : tensor<3xf32>) sums(%[[SUMS]] : tensor<2x3xf32>) count(%[[COUNT]] : tensor<i64>) mask(%[[MASK]] : tensor<?x3xi1>) {epsilon = 1.000000e-05 : f64} : tensor<?x3xf16>
  // CHECK: return %[[DX]], %[[CHANNEL]]#0, %[[CHANNEL]]#1
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x3xf16>) input(%x : tensor<?x3xf16>)
      scale(%scale : tensor<3xf32>) mean(%mean : tensor<3xf32>) variance(%variance : tensor<3xf32>)
      mask(%mask : tensor<?x3xi1>) {epsilon = 1.0e-5 : f64} : tensor<?x3xf16>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %0#1, %0#2 : tensor<?x3xf16>, tensor<3xf32>, tensor<3xf32>
}

// -----

// Global statistics need no sums for grad_input.

// CHECK-LABEL: func.func @global_grad_input_only(
// CHECK-NOT: reduce
// CHECK: bngrad.batch_norm_backward_elemt
// CHECK-NOT: sums(
// CHECK-SAME: {feature_dims = array<i64: 0>} : tensor<4x3xf32>
// CHECK-NOT: linalg.generic
func.func @global_grad_input_only(%dy: tensor<4x3xf32>, %x: tensor<4x3xf32>, %mean: tensor<4xf32>, %inv_std: tensor<4xf32>) -> tensor<4x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4x3xf32>) input(%x : tensor<4x3xf32>)
      mean(%mean : tensor<4xf32>) inv_std(%inv_std : tensor<4xf32>)
      {feature_dims = array<i64: 0>, statistics = #bngrad.statistics<global>} : tensor<4x3xf32>, tensor<4xf32>, tensor<4xf32>
  return %0#0 : tensor<4x3xf32>
}

// -----

// A static count above 0 stays positive with any number of shards: no guard.

// CHECK-LABEL: func.func @static_grad_scale_only(
// CHECK: bngrad.batch_norm_backward_reduce
// CHECK-NOT: tensor.extract %
// CHECK: linalg.generic
// CHECK-NOT: arith.select
// CHECK-NOT: elemt
func.func @static_grad_scale_only(%dy: tensor<4x3xf32>, %x: tensor<4x3xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>) -> tensor<3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4x3xf32>) input(%x : tensor<4x3xf32>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#1 : tensor<3xf32>
}

// -----

// CHECK-LABEL: func.func @does_nothing(
// CHECK-NEXT: arith.addf
func.func @does_nothing(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Training: the sums about the first element give the mean, those about the mean the rest.

// CHECK-LABEL: func.func @training(
// CHECK-SAME: %[[X:[^:]+]]: tensor<8x3xbf16>, %[[OFFSET:[^:]+]]: tensor<3xf32>
// CHECK: tensor.extract %[[X]]
// CHECK: %[[SUM:.+]], %{{.+}}, %{{.+}} = bngrad.batch_norm_training_reduce input(%[[X]] : tensor<8x3xbf16>) shift(%[[FIRST:.+]] : tensor<3xf32>)
// CHECK: %[[CENTER:.+]] = linalg.generic {{.*}} ins(%[[SUM]], %[[FIRST]] :
// CHECK: %[[ABOUT:.+]], %[[SQUARES:.+]], %{{.+}} = bngrad.batch_norm_training_reduce input(%[[X]] : tensor<8x3xbf16>) shift(%[[CENTER]] : tensor<3xf32>)
// CHECK: %[[CHANNEL:.+]]:3 = linalg.generic {{.*}} ins(%[[CENTER]], %[[ABOUT]], %[[SQUARES]], %[[OFFSET]] :
// CHECK: %[[Y:.+]] = bngrad.batch_norm_inference input(%[[X]] : tensor<8x3xbf16>) offset(%[[CHANNEL]]#1 : tensor<3xf32>) mean(%[[CENTER]] : tensor<3xf32>) inv_std(%[[CHANNEL]]#0 : tensor<3xf32>) : tensor<8x3xbf16>
// CHECK: return %[[Y]], %[[CHANNEL]]#2
func.func @training(%x: tensor<8x3xbf16>, %offset: tensor<3xf32>) -> (tensor<8x3xbf16>, tensor<3xf32>) {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<8x3xbf16>) offset(%offset : tensor<3xf32>) {epsilon = 1.0e-3 : f64}
      : tensor<8x3xbf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %0#2 : tensor<8x3xbf16>, tensor<3xf32>
}

// -----

// Without elements, nothing is split.

// CHECK-LABEL: func.func @training_of_nothing(
// CHECK: bngrad.batch_norm_training
// CHECK-NOT: batch_norm_training_reduce
// CHECK: return
func.func @training_of_nothing(%x: tensor<0x3xf32>) -> tensor<3xf32> {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<0x3xf32>) : tensor<0x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#1 : tensor<3xf32>
}
