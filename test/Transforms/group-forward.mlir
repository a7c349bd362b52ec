// Training is one group of three stages: the first element, the mean, and the sums about it with the statistics.

// RUN: bngrad-opt %s --bngrad-cpu-pipeline=stop-after=group --mlir-print-local-scope | FileCheck %s
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_90 stop-after=group" --mlir-print-local-scope | FileCheck %s --check-prefix=GPU

// The running statistics join the per-channel ops of the last stage, and a ReLU the element-wise loop.
// CHECK-LABEL: func.func @nchw
// CHECK-SAME:    (%[[X:.+]]: tensor<32x64x56x56xf32>
// CHECK:         scf.execute_region -> (tensor<64xf32>, tensor<32x64x56x56xf32>) no_inline {
// CHECK:           %[[FIRST:.+]] = linalg.generic {{.*}} {bngrad.schedule = #bngrad.schedule<channels
// CHECK:             tensor.extract %[[X]]
// CHECK:           %[[SUM:.+]] = linalg.generic {{.*}}["reduction", "parallel", "reduction", "reduction"]{{.*}} ins(%[[X]], %[[FIRST]] : {{.*}} {bngrad.schedule = #bngrad.schedule<channels
// CHECK:           %[[CENTER:.+]] = linalg.generic {{.*}} ins(%[[SUM]], %[[FIRST]] : {{.*}} {bngrad.schedule = #bngrad.schedule<channels
// CHECK:           %[[SUMS:.+]]:2 = linalg.generic {{.*}}["reduction", "parallel", "reduction", "reduction"]{{.*}} ins(%[[X]], %[[CENTER]] : {{.*}} {bngrad.schedule = #bngrad.schedule<channels
// CHECK:           linalg.generic {{.*}} ins({{.*}}%[[SUMS]]#0, %[[SUMS]]#1{{.*}} {bngrad.schedule = #bngrad.schedule<channels
// CHECK:           linalg.generic {{.*}}["parallel", "parallel", "parallel", "parallel"]{{.*}} ins(%[[X]], %[[CENTER]], {{.*}} {bngrad.schedule = #bngrad.schedule<channels
// CHECK:             arith.maximumf
// CHECK-NOT:       linalg.generic
// CHECK:         return

// GPU-LABEL: func.func @nchw
// GPU:         scf.execute_region -> (tensor<64xf32>, tensor<32x64x56x56xf32>) no_inline {
// GPU-COUNT-7:   linalg.generic {{.*}} {bngrad.schedule = #bngrad.schedule<one_pass
// GPU-NOT:       linalg.generic
// GPU:         return
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
// CHECK-COUNT-6: #bngrad.schedule<rows
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

// An op that is no member lies between the sum and the squares about the mean: no second stage.
// CHECK-LABEL: func.func @foreign_mean
// CHECK:         scf.execute_region
// CHECK:         call @round
// CHECK:         scf.execute_region
// CHECK:         return
func.func private @round(tensor<64xf32>) -> tensor<64xf32>
func.func @foreign_mean(%x: tensor<512x64xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (c)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<512x64xf32>) outs(%zeros : tensor<64xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %mean = func.call @round(%sum) : (tensor<64xf32>) -> tensor<64xf32>
  %squares = linalg.generic {indexing_maps = [affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (c)>, affine_map<(n, c) -> (c)>], iterator_types = ["reduction", "parallel"]}
      ins(%x, %mean : tensor<512x64xf32>, tensor<64xf32>) outs(%zeros : tensor<64xf32>) {
  ^bb0(%e: f32, %m: f32, %acc: f32):
    %0 = arith.subf %e, %m : f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %acc, %1 fastmath<reassoc> : f32
    linalg.yield %2 : f32
  } -> tensor<64xf32>
  return %squares : tensor<64xf32>
}

// The second sums read other data, which would not be in a cache: no second stage.
// CHECK-LABEL: func.func @other_data
// CHECK-COUNT-2: scf.execute_region
// CHECK:         return
func.func @other_data(%x: tensor<512x64xf32>, %y: tensor<512x64xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (c)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<512x64xf32>) outs(%zeros : tensor<64xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %squares = linalg.generic {indexing_maps = [affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (c)>, affine_map<(n, c) -> (c)>], iterator_types = ["reduction", "parallel"]}
      ins(%y, %sum : tensor<512x64xf32>, tensor<64xf32>) outs(%zeros : tensor<64xf32>) {
  ^bb0(%e: f32, %m: f32, %acc: f32):
    %0 = arith.subf %e, %m : f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %acc, %1 fastmath<reassoc> : f32
    linalg.yield %2 : f32
  } -> tensor<64xf32>
  return %squares : tensor<64xf32>
}

// The size of the channels is known from scale alone, and canonicalization casts the data of each op.
// CHECK-LABEL: func.func @partly_static
// CHECK:         %[[DATA:.+]] = tensor.cast %{{.+}} : tensor<?x?x?xf32> to tensor<?x?x64xf32>
// CHECK-NOT:     tensor.cast
// CHECK:         scf.execute_region
// CHECK-COUNT-3: ins(%[[DATA]],
// CHECK-NOT:     scf.execute_region
// CHECK:         return
func.func @partly_static(%x: tensor<?x?x?xf32>, %scale: tensor<64xf32>) -> tensor<?x?x?xf32> {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<?x?x?xf32>) scale(%scale : tensor<64xf32>)
      {feature_dims = array<i64: 2>, epsilon = 1.0e-5 : f64} : tensor<?x?x?xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  return %0#0 : tensor<?x?x?xf32>
}

// Per-channel values that others read, too, such as the statistics of a sharded batch, are in the group of the element-wise loop.
// CHECK-LABEL: func.func @read_elsewhere
// CHECK:         %[[GROUP:.+]]:2 = scf.execute_region -> (tensor<64xf32>, tensor<32x64x56x56xf32>) no_inline {
// CHECK:           linalg.generic {{.*}}["parallel"]{{.*}} {bngrad.schedule = #bngrad.schedule<channels
// CHECK:           linalg.generic {{.*}}["parallel", "parallel", "parallel", "parallel"]{{.*}} {bngrad.schedule = #bngrad.schedule<channels
// CHECK-NOT:     #bngrad.schedule
// CHECK:         return %[[GROUP]]#1, %[[GROUP]]#0
func.func @read_elsewhere(%x: tensor<32x64x56x56xf32>, %mean: tensor<64xf32>, %a: tensor<64xf32>, %b: tensor<64xf32>)
    -> (tensor<32x64x56x56xf32>, tensor<64xf32>) {
  %r = arith.addf %a, %b : tensor<64xf32>
  %0 = bngrad.batch_norm_inference input(%x : tensor<32x64x56x56xf32>) mean(%mean : tensor<64xf32>) inv_std(%r : tensor<64xf32>)
      : tensor<32x64x56x56xf32>
  return %0, %r : tensor<32x64x56x56xf32>, tensor<64xf32>
}

// If the loop needs them once more, through an op that is no member, they stay outside.
// CHECK-LABEL: func.func @needed_before
// CHECK:         %[[R:.+]] = linalg.generic
// CHECK-NOT:     #bngrad.schedule
// CHECK:         tensor.pad
// CHECK:         scf.execute_region -> tensor<32x64x56x56xf32> no_inline {
// CHECK:           linalg.generic {{.*}}["parallel", "parallel", "parallel", "parallel"]{{.*}} {bngrad.schedule = #bngrad.schedule<channels
// CHECK-NOT:     #bngrad.schedule
// CHECK:         return
func.func @needed_before(%x: tensor<32x64x56x56xf32>, %a: tensor<64xf32>) -> tensor<32x64x56x56xf32> {
  %r = arith.addf %a, %a : tensor<64xf32>
  %part = tensor.extract_slice %r[0] [63] [1] : tensor<64xf32> to tensor<63xf32>
  %zero = arith.constant 0.0 : f32
  %mean = tensor.pad %part low[0] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<63xf32> to tensor<64xf32>
  %0 = bngrad.batch_norm_inference input(%x : tensor<32x64x56x56xf32>) mean(%mean : tensor<64xf32>) inv_std(%r : tensor<64xf32>)
      : tensor<32x64x56x56xf32>
  return %0 : tensor<32x64x56x56xf32>
}

// Without per-channel ops, the loops over the data are a group, unlike those of other ops.
// CHECK-LABEL: func.func @inference_of_inv_std
// CHECK-COUNT-1: #bngrad.schedule
// CHECK-NOT:     #bngrad.schedule
// CHECK:         return
func.func @inference_of_inv_std(%x: tensor<32x64x56x56xf32>, %mean: tensor<64xf32>, %inv_std: tensor<64xf32>) -> tensor<32x64x56x56xf32> {
  %0 = bngrad.batch_norm_inference input(%x : tensor<32x64x56x56xf32>) mean(%mean : tensor<64xf32>) inv_std(%inv_std : tensor<64xf32>)
      : tensor<32x64x56x56xf32>
  return %0 : tensor<32x64x56x56xf32>
}
