// Training is two groups: the mean, and the statistics with the element-wise
// output. Both have the schedules of the gradient.

// RUN: bngrad-opt %s --bngrad-cpu-pipeline=stop-after=group --mlir-print-local-scope | FileCheck %s

// The running statistics join the per-channel ops of the second group, and a ReLU
// its element-wise loop.
// CHECK-LABEL: func.func @nchw
// CHECK-SAME:    (%[[X:.+]]: tensor<32x64x56x56xf32>
// CHECK:         %[[FIRST:.+]] = linalg.generic
// CHECK-NOT:     #bngrad.schedule
// CHECK:         %[[CENTER:.+]] = scf.execute_region -> tensor<64xf32> no_inline {
// CHECK:           %[[SUM:.+]] = linalg.generic {{.*}}["reduction", "parallel", "reduction", "reduction"]{{.*}} ins(%[[X]], %[[FIRST]] : {{.*}} {bngrad.schedule = #bngrad.schedule<channels
// CHECK:           linalg.generic {{.*}} ins(%[[SUM]], %[[FIRST]] : {{.*}} {bngrad.schedule = #bngrad.schedule<channels
// CHECK-NOT:       linalg.generic
// CHECK:         scf.execute_region -> (tensor<64xf32>, tensor<32x64x56x56xf32>) no_inline {
// CHECK:           %[[SUMS:.+]]:2 = linalg.generic {{.*}}["reduction", "parallel", "reduction", "reduction"]{{.*}} ins(%[[X]], %[[CENTER]] : {{.*}} {bngrad.schedule = #bngrad.schedule<channels
// CHECK:           linalg.generic {{.*}} ins({{.*}}%[[SUMS]]#0, %[[SUMS]]#1{{.*}} {bngrad.schedule = #bngrad.schedule<channels
// CHECK:           linalg.generic {{.*}}["parallel", "parallel", "parallel", "parallel"]{{.*}} ins(%[[X]], %[[CENTER]], {{.*}} {bngrad.schedule = #bngrad.schedule<channels
// CHECK:             arith.maximumf
// CHECK-NOT:       linalg.generic
// CHECK:         return
func.func @nchw(%x: tensor<32x64x56x56xf32>, %scale: tensor<64xf32>, %offset: tensor<64xf32>, %running: tensor<64xf32>)
    -> (tensor<32x64x56x56xf32>, tensor<64xf32>) {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<32x64x56x56xf32>) scale(%scale : tensor<64xf32>) offset(%offset : tensor<64xf32>)
      {epsilon = 1.0e-5 : f64} : tensor<32x64x56x56xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  %zero = arith.constant dense<0.0> : tensor<32x64x56x56xf32>
  %relu = arith.maximumf %0#0, %zero : tensor<32x64x56x56xf32>
  %sum = arith.addf %running, %0#2 : tensor<64xf32>
  return %relu, %sum : tensor<32x64x56x56xf32>, tensor<64xf32>
}

// CHECK-LABEL: func.func @nhwc_dynamic
// CHECK-COUNT-5: #bngrad.schedule<rows
// CHECK-NOT:     #bngrad.schedule
// CHECK:         return
func.func @nhwc_dynamic(%x: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<?x?x?x64xbf16>) {feature_dims = array<i64: 3>, epsilon = 1.0e-5 : f64}
      : tensor<?x?x?x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  return %0#0 : tensor<?x?x?x64xbf16>
}

// CHECK-LABEL: func.func @inference
// CHECK-COUNT-2: #bngrad.schedule
// CHECK-NOT:     #bngrad.schedule
// CHECK:         return
func.func @inference(%x: tensor<32x64x56x56xf32>, %mean: tensor<64xf32>, %variance: tensor<64xf32>) -> tensor<32x64x56x56xf32> {
  %0 = bngrad.batch_norm_inference input(%x : tensor<32x64x56x56xf32>) mean(%mean : tensor<64xf32>) variance(%variance : tensor<64xf32>)
      {epsilon = 1.0e-5 : f64} : tensor<32x64x56x56xf32>
  return %0 : tensor<32x64x56x56xf32>
}
