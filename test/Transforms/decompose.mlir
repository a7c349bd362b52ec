// The schedule may choose the order of summation, but not that of other
// operations.
// RUN: bngrad-opt %s --bngrad-decompose --mlir-print-local-scope | FileCheck %s --implicit-check-not="{{(mulf|subf|divf).*reassoc}}" --implicit-check-not=bngrad.batch_norm_backward
// RUN: bngrad-opt %s --bngrad-decompose --cse --mlir-print-local-scope | FileCheck %s --check-prefix=CSE
// RUN: bngrad-opt %s --bngrad-decompose --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LOC

// === the formulas ===

// All of docs/mathematics.md: three generics, each sum with its own init, M =
// 2*3 and epsilon in the accumulator type.
// CHECK-LABEL: func @batch_variance
// CHECK-SAME:    (%[[DY:.+]]: tensor<2x5x3xf32>, %[[X:.+]]: tensor<2x5x3xf32>, %[[SCALE:.+]]: tensor<5xf32>, %[[MEAN:.+]]: tensor<5xf32>, %[[VARIANCE:.+]]: tensor<5xf32>)
// CHECK:         %[[EMPTY0:.+]] = tensor.empty() : tensor<5xf32>
// CHECK:         %[[INIT0:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%[[EMPTY0]] : tensor<5xf32>)
// CHECK:         %[[EMPTY1:.+]] = tensor.empty() : tensor<5xf32>
// CHECK:         %[[INIT1:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%[[EMPTY1]] : tensor<5xf32>)
// CHECK:         %[[SUMS:.+]]:2 = linalg.generic
// CHECK-SAME:      indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1)>, affine_map<(d0, d1, d2) -> (d1)>, affine_map<(d0, d1, d2) -> (d1)>]
// CHECK-SAME:      iterator_types = ["reduction", "parallel", "reduction"]
// CHECK-SAME:      ins(%[[DY]], %[[X]], %[[MEAN]] :
// CHECK-SAME:      outs(%[[INIT0]], %[[INIT1]] : tensor<5xf32>, tensor<5xf32>)
// CHECK-NEXT:    ^bb0(%[[DY_E:[^:]+]]: f32, %[[X_E:[^:]+]]: f32, %[[MEAN_E:[^:]+]]: f32, %[[ACC0:[^:]+]]: f32, %[[ACC1:[^:]+]]: f32):
// CHECK-DAG:       %[[XMU:.+]] = arith.subf %[[X_E]], %[[MEAN_E]]
// CHECK-DAG:       %[[DY_XMU:.+]] = arith.mulf %[[DY_E]], %[[XMU]]
// CHECK-DAG:       %[[SUM0:.+]] = arith.addf %[[ACC0]], %[[DY_E]] fastmath<reassoc,contract>
// CHECK-DAG:       %[[SUM1:.+]] = arith.addf %[[ACC1]], %[[DY_XMU]] fastmath<reassoc,contract>
// CHECK:           linalg.yield %[[SUM0]], %[[SUM1]] : f32, f32
// CHECK:         %[[COEFFICIENTS:.+]]:5 = linalg.generic
// CHECK-SAME:      iterator_types = ["parallel"]
// CHECK-SAME:      ins(%[[SUMS]]#0, %[[SUMS]]#1, %[[SCALE]], %[[VARIANCE]] :
// CHECK-NEXT:    ^bb0(%[[SUM_DY:[^:]+]]: f32, %[[SUM_DY_XMU:[^:]+]]: f32, %[[SCALE_E:[^:]+]]: f32, %[[VARIANCE_E:[^:]+]]: f32,
// CHECK-DAG:       %[[EPSILON:.+]] = arith.constant 9.99999974E-6 : f32
// CHECK-DAG:       %[[ONE:.+]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG:       %[[M:.+]] = arith.constant 6.000000e+00 : f32
// CHECK-DAG:       %[[SHIFTED:.+]] = arith.addf %[[VARIANCE_E]], %[[EPSILON]]
// CHECK-DAG:       %[[STD:.+]] = math.sqrt %[[SHIFTED]]
// CHECK-DAG:       %[[R:.+]] = arith.divf %[[ONE]], %[[STD]]
// CHECK-DAG:       %[[FACTOR:.+]] = arith.mulf %[[SCALE_E]], %[[R]]
// CHECK-DAG:       %[[MEAN_DY:.+]] = arith.divf %[[SUM_DY]], %[[M]]
// CHECK-DAG:       %[[MEAN_DY_XMU:.+]] = arith.divf %[[SUM_DY_XMU]], %[[M]]
// CHECK-DAG:       %[[SLOPE_R:.+]] = arith.mulf %[[MEAN_DY_XMU]], %[[R]]
// CHECK-DAG:       %[[SLOPE:.+]] = arith.mulf %[[SLOPE_R]], %[[R]]
// CHECK-DAG:       %[[GRAD_SCALE:.+]] = arith.mulf %[[SUM_DY_XMU]], %[[R]]
// CHECK:           linalg.yield %[[FACTOR]], %[[MEAN_DY]], %[[SLOPE]], %[[GRAD_SCALE]], %[[SUM_DY]]
// CHECK:         %[[EMPTY:.+]] = tensor.empty() : tensor<2x5x3xf32>
// CHECK:         %[[DX:.+]] = linalg.generic
// CHECK-SAME:      indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1)>, affine_map<(d0, d1, d2) -> (d1)>, affine_map<(d0, d1, d2) -> (d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "parallel"]
// CHECK-SAME:      ins(%[[DY]], %[[COEFFICIENTS]]#0, %[[X]], %[[MEAN]], %[[COEFFICIENTS]]#1, %[[COEFFICIENTS]]#2 :
// CHECK-SAME:      outs(%[[EMPTY]] : tensor<2x5x3xf32>)
// CHECK-NEXT:    ^bb0(%[[DY_E:[^:]+]]: f32, %[[FACTOR_E:[^:]+]]: f32, %[[X_E:[^:]+]]: f32, %[[MEAN_E:[^:]+]]: f32, %[[MEAN_DY_E:[^:]+]]: f32, %[[SLOPE_E:[^:]+]]: f32,
// CHECK-DAG:       %[[XMU:.+]] = arith.subf %[[X_E]], %[[MEAN_E]]
// CHECK-DAG:       %[[CENTERED:.+]] = arith.subf %[[DY_E]], %[[MEAN_DY_E]]
// CHECK-DAG:       %[[TREND:.+]] = arith.mulf %[[XMU]], %[[SLOPE_E]]
// CHECK-DAG:       %[[REST:.+]] = arith.subf %[[CENTERED]], %[[TREND]]
// CHECK-DAG:       %[[DX_E:.+]] = arith.mulf %[[FACTOR_E]], %[[REST]]
// CHECK:           linalg.yield %[[DX_E]] : f32
// CHECK:         return %[[DX]], %[[COEFFICIENTS]]#3, %[[COEFFICIENTS]]#4
func.func @batch_variance(%dy: tensor<2x5x3xf32>, %x: tensor<2x5x3xf32>, %scale: tensor<5xf32>, %mean: tensor<5xf32>, %variance: tensor<5xf32>)
    -> (tensor<2x5x3xf32>, tensor<5xf32>, tensor<5xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x5x3xf32>) input(%x : tensor<2x5x3xf32>)
      scale(%scale : tensor<5xf32>) mean(%mean : tensor<5xf32>) variance(%variance : tensor<5xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<2x5x3xf32>, tensor<5xf32>, tensor<5xf32>
  return %0#0, %0#1, %0#2 : tensor<2x5x3xf32>, tensor<5xf32>, tensor<5xf32>
}

// inv_std is r: no square root, and no division except by M.
// CHECK-LABEL: func @batch_inv_std
// CHECK-SAME:    %[[R:[^:]+]]: tensor<5xf32>)
// CHECK-NOT:     math.sqrt
// CHECK:         linalg.generic {{.+}} ["parallel"]} ins(%[[SUMS:.+]]#0, %[[SUMS]]#1, %{{.+}}, %[[R]] :
// CHECK-NEXT:    ^bb0(%{{[^:]+}}: f32, %[[SUM_DY_XMU:[^:]+]]: f32, %[[SCALE_E:[^:]+]]: f32, %[[R_E:[^:]+]]: f32,
// CHECK-DAG:       %[[M:.+]] = arith.constant 6.000000e+00 : f32
// CHECK-DAG:       %[[FACTOR:.+]] = arith.mulf %[[SCALE_E]], %[[R_E]]
// CHECK-DAG:       %[[MEAN_DY_XMU:.+]] = arith.divf %[[SUM_DY_XMU]], %[[M]]
// CHECK-DAG:       %[[SLOPE_R:.+]] = arith.mulf %[[MEAN_DY_XMU]], %[[R_E]]
// CHECK-DAG:       %[[SLOPE:.+]] = arith.mulf %[[SLOPE_R]], %[[R_E]]
// CHECK-DAG:       %[[GRAD_SCALE:.+]] = arith.mulf %[[SUM_DY_XMU]], %[[R_E]]
// CHECK:           linalg.yield %[[FACTOR]], %{{.+}}, %[[SLOPE]], %[[GRAD_SCALE]], %{{.+}}
// CHECK-NOT:     math.sqrt
// CHECK:         return
func.func @batch_inv_std(%dy: tensor<2x5x3xf32>, %x: tensor<2x5x3xf32>, %scale: tensor<5xf32>, %mean: tensor<5xf32>, %inv_std: tensor<5xf32>)
    -> (tensor<2x5x3xf32>, tensor<5xf32>, tensor<5xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x5x3xf32>) input(%x : tensor<2x5x3xf32>)
      scale(%scale : tensor<5xf32>) mean(%mean : tensor<5xf32>) inv_std(%inv_std : tensor<5xf32>)
      : tensor<2x5x3xf32>, tensor<5xf32>, tensor<5xf32>
  return %0#0, %0#1, %0#2 : tensor<2x5x3xf32>, tensor<5xf32>, tensor<5xf32>
}

// grad_input does not depend on the sums: input is only read for grad_scale,
// and there is no division by M.
// CHECK-LABEL: func @global_variance
// CHECK-SAME:    (%[[DY:.+]]: tensor<2x5x3xf32>, %[[X:.+]]: tensor<2x5x3xf32>,
// CHECK:         %[[SUMS:.+]]:2 = linalg.generic {{.+}} ins(%[[DY]], %[[X]],
// CHECK:         %[[COEFFICIENTS:.+]]:3 = linalg.generic
// CHECK-NEXT:    ^bb0(%[[SUM_DY:[^:]+]]: f32, %[[SUM_DY_XMU:[^:]+]]: f32, %[[SCALE_E:[^:]+]]: f32, %{{[^:]+}}: f32,
// CHECK-DAG:       %[[ONE:.+]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG:       %[[STD:.+]] = math.sqrt
// CHECK-DAG:       %[[R:.+]] = arith.divf %[[ONE]], %[[STD]]
// CHECK-DAG:       %[[FACTOR:.+]] = arith.mulf %[[SCALE_E]], %[[R]]
// CHECK-DAG:       %[[GRAD_SCALE:.+]] = arith.mulf %[[SUM_DY_XMU]], %[[R]]
// CHECK-NOT:       arith.divf
// CHECK:           linalg.yield %[[FACTOR]], %[[GRAD_SCALE]], %[[SUM_DY]]
// CHECK:         %[[DX:.+]] = linalg.generic {{.+}} ins(%[[DY]], %[[COEFFICIENTS]]#0 :
// CHECK-NEXT:    ^bb0(%[[DY_E:[^:]+]]: f32, %[[FACTOR_E:[^:]+]]: f32, %{{[^:]+}}: f32):
// CHECK-NEXT:      %[[DX_E:.+]] = arith.mulf %[[FACTOR_E]], %[[DY_E]]
// CHECK-NEXT:      linalg.yield %[[DX_E]] : f32
// CHECK:         return %[[DX]], %[[COEFFICIENTS]]#1, %[[COEFFICIENTS]]#2
func.func @global_variance(%dy: tensor<2x5x3xf32>, %x: tensor<2x5x3xf32>, %scale: tensor<5xf32>, %mean: tensor<5xf32>, %variance: tensor<5xf32>)
    -> (tensor<2x5x3xf32>, tensor<5xf32>, tensor<5xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x5x3xf32>) input(%x : tensor<2x5x3xf32>)
      scale(%scale : tensor<5xf32>) mean(%mean : tensor<5xf32>) variance(%variance : tensor<5xf32>)
      {epsilon = 1.0e-5 : f64, statistics = #bngrad.statistics<global>}
      : tensor<2x5x3xf32>, tensor<5xf32>, tensor<5xf32>
  return %0#0, %0#1, %0#2 : tensor<2x5x3xf32>, tensor<5xf32>, tensor<5xf32>
}

// The factor is r itself, not 1 * r.
// CHECK-LABEL: func @scale_absent
// CHECK-SAME:    %[[R:[^:]+]]: tensor<5xf32>)
// CHECK:         linalg.generic {{.+}} ["parallel"]} ins(%{{.+}}#0, %{{.+}}#1, %[[R]] :
// CHECK-NEXT:    ^bb0(%{{[^:]+}}: f32, %{{[^:]+}}: f32, %[[R_E:[^:]+]]: f32,
// CHECK:           linalg.yield %[[R_E]],
func.func @scale_absent(%dy: tensor<2x5x3xf32>, %x: tensor<2x5x3xf32>, %mean: tensor<5xf32>, %inv_std: tensor<5xf32>) -> tensor<2x5x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x5x3xf32>) input(%x : tensor<2x5x3xf32>)
      mean(%mean : tensor<5xf32>) inv_std(%inv_std : tensor<5xf32>)
      : tensor<2x5x3xf32>, tensor<5xf32>, tensor<5xf32>
  return %0#0 : tensor<2x5x3xf32>
}

// A select, not a product: a masked NaN does not propagate. It applies to
// grad_output in the sums and in grad_input.
// CHECK-LABEL: func @mask
// CHECK-SAME:    (%[[DY:.+]]: tensor<2x5x3xf32>, %[[X:.+]]: tensor<2x5x3xf32>, %[[P:.+]]: tensor<5xf32>, %[[MASK:.+]]: tensor<2x5x3xi1>)
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1)>,
// CHECK-SAME:      ins(%[[DY]], %[[MASK]], %[[X]], %[[P]] :
// CHECK-NEXT:    ^bb0(%[[DY_E:[^:]+]]: f32, %[[MASK_E:[^:]+]]: i1, %[[X_E:[^:]+]]: f32, %[[MEAN_E:[^:]+]]: f32, %[[ACC0:[^:]+]]: f32, %[[ACC1:[^:]+]]: f32):
// CHECK-DAG:       %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG:       %[[MASKED:.+]] = arith.select %[[MASK_E]], %[[DY_E]], %[[ZERO]] : f32
// CHECK-DAG:       %[[XMU:.+]] = arith.subf %[[X_E]], %[[MEAN_E]]
// CHECK-DAG:       %[[PRODUCT:.+]] = arith.mulf %[[MASKED]], %[[XMU]]
// CHECK-DAG:       arith.addf %[[ACC0]], %[[MASKED]]
// CHECK-DAG:       arith.addf %[[ACC1]], %[[PRODUCT]]
// CHECK:         linalg.generic {{.+}} ["parallel"]}
// CHECK:         linalg.generic {{.+}} ins(%[[DY]], %[[MASK]], %{{.+}}, %[[X]],
// CHECK-NEXT:    ^bb0(%[[DY_E:[^:]+]]: f32, %[[MASK_E:[^:]+]]: i1, %{{[^:]+}}: f32, %{{[^:]+}}: f32, %{{[^:]+}}: f32, %[[MEAN_DY:[^:]+]]: f32,
// CHECK-DAG:       %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG:       %[[MASKED:.+]] = arith.select %[[MASK_E]], %[[DY_E]], %[[ZERO]] : f32
// CHECK-DAG:       arith.subf %[[MASKED]], %[[MEAN_DY]]
func.func @mask(%dy: tensor<2x5x3xf32>, %x: tensor<2x5x3xf32>, %p: tensor<5xf32>, %k: tensor<2x5x3xi1>)
    -> (tensor<2x5x3xf32>, tensor<5xf32>, tensor<5xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x5x3xf32>) input(%x : tensor<2x5x3xf32>)
      mean(%p : tensor<5xf32>) inv_std(%p : tensor<5xf32>) mask(%k : tensor<2x5x3xi1>)
      : tensor<2x5x3xf32>, tensor<5xf32>, tensor<5xf32>
  return %0#0, %0#1, %0#2 : tensor<2x5x3xf32>, tensor<5xf32>, tensor<5xf32>
}

// === feature dims ===

// CHECK-LABEL: func @inner_channel_nhwc
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d2)>]
// CHECK-SAME:      iterator_types = ["reduction", "reduction", "parallel"]
// CHECK:           arith.constant 1.000000e+01 : f32
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "parallel"]
func.func @inner_channel_nhwc(%dy: tensor<2x5x3xf32>, %x: tensor<2x5x3xf32>, %p: tensor<3xf32>) -> tensor<2x5x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x5x3xf32>) input(%x : tensor<2x5x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {feature_dims = array<i64: 2>}
      : tensor<2x5x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<2x5x3xf32>
}

// Two channel indices: per-channel tensors and loops of rank 2, M = 5.
// CHECK-LABEL: func @several_feature_dims
// CHECK:         linalg.fill {{.+}} -> tensor<2x3xf32>
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>]
// CHECK-SAME:      iterator_types = ["parallel", "reduction", "parallel"]
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
// CHECK-SAME:      iterator_types = ["parallel", "parallel"]
// CHECK:           arith.constant 5.000000e+00 : f32
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>,
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "parallel"]
func.func @several_feature_dims(%dy: tensor<2x5x3xf32>, %x: tensor<2x5x3xf32>, %p: tensor<2x3xf32>) -> tensor<2x5x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x5x3xf32>) input(%x : tensor<2x5x3xf32>)
      mean(%p : tensor<2x3xf32>) variance(%p : tensor<2x3xf32>) {feature_dims = array<i64: 0, 2>}
      : tensor<2x5x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  return %0#0 : tensor<2x5x3xf32>
}

// A channel of one element: M = 1 is not a special case.
// CHECK-LABEL: func @all_dims_are_feature_dims
// CHECK-NOT:     "reduction"
// CHECK:         %[[SUMS:.+]]:2 = linalg.generic {{.+}} iterator_types = ["parallel", "parallel"]
// CHECK:           arith.addf
// CHECK:         linalg.generic {{.+}} ins(%[[SUMS]]#0, %[[SUMS]]#1,
// CHECK:           arith.constant 1.000000e+00 : f32
// CHECK:         linalg.generic
// CHECK-NOT:     "reduction"
// CHECK:         return
func.func @all_dims_are_feature_dims(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<2x3xf32>) inv_std(%p : tensor<2x3xf32>) {feature_dims = array<i64: 0, 1>}
      : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  return %0#0, %0#1 : tensor<2x3xf32>, tensor<2x3xf32>
}

// === types ===

// bf16 data: extended before any computation; the sums are f32, and each result
// is rounded once, at the end.
// CHECK-LABEL: func @bf16_data_f32_parameters
// CHECK-SAME:    (%[[DY:.+]]: tensor<2x3xbf16>, %[[X:.+]]: tensor<2x3xbf16>, %[[P:.+]]: tensor<3xf32>)
// CHECK-NOT:     arith.truncf
// CHECK:         linalg.generic {{.+}} outs(%{{.+}} : tensor<3xf32>, tensor<3xf32>)
// CHECK-NEXT:    ^bb0(%[[DY_E:[^:]+]]: bf16, %[[X_E:[^:]+]]: bf16, %[[MEAN_E:[^:]+]]: f32, %[[ACC0:[^:]+]]: f32, %[[ACC1:[^:]+]]: f32):
// CHECK-DAG:       %[[DY_W:.+]] = arith.extf %[[DY_E]] : bf16 to f32
// CHECK-DAG:       %[[X_W:.+]] = arith.extf %[[X_E]] : bf16 to f32
// CHECK-DAG:       %[[XMU:.+]] = arith.subf %[[X_W]], %[[MEAN_E]]
// CHECK-DAG:       %[[PRODUCT:.+]] = arith.mulf %[[DY_W]], %[[XMU]]
// CHECK-DAG:       arith.addf %[[ACC0]], %[[DY_W]]
// CHECK-DAG:       arith.addf %[[ACC1]], %[[PRODUCT]]
// CHECK-NOT:     arith.truncf
// CHECK:         tensor.empty() : tensor<2x3xbf16>
// CHECK:         linalg.generic
// CHECK-NEXT:    ^bb0(%[[DY_E:[^:]+]]: bf16, %[[FACTOR:[^:]+]]: f32, %[[X_E:[^:]+]]: bf16,
// CHECK-DAG:       arith.extf %[[DY_E]] : bf16 to f32
// CHECK-DAG:       arith.extf %[[X_E]] : bf16 to f32
// CHECK:           %[[PRODUCT:.+]] = arith.mulf %[[FACTOR]], %{{.+}} : f32
// CHECK-NEXT:      %[[ROUNDED:.+]] = arith.truncf %[[PRODUCT]] : f32 to bf16
// CHECK-NEXT:      linalg.yield %[[ROUNDED]] : bf16
func.func @bf16_data_f32_parameters(%dy: tensor<2x3xbf16>, %x: tensor<2x3xbf16>, %p: tensor<3xf32>)
    -> (tensor<2x3xbf16>, tensor<3xf32>, tensor<3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xbf16>) input(%x : tensor<2x3xbf16>)
      mean(%p : tensor<3xf32>) inv_std(%p : tensor<3xf32>)
      : tensor<2x3xbf16>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %0#1, %0#2 : tensor<2x3xbf16>, tensor<3xf32>, tensor<3xf32>
}

// Only f16 and bf16 operands: still f32.
// CHECK-LABEL: func @f16_data_bf16_parameters
// CHECK:         linalg.generic {{.+}} outs(%{{.+}} : tensor<3xf32>, tensor<3xf32>)
// CHECK-NEXT:    ^bb0(%{{[^:]+}}: f16, %{{[^:]+}}: f16, %{{[^:]+}}: bf16, %{{[^:]+}}: f32, %{{[^:]+}}: f32):
// CHECK-COUNT-2:   arith.extf %{{.+}} : f16 to f32
// CHECK:           arith.extf %{{.+}} : bf16 to f32
// CHECK:         linalg.generic
// CHECK-NEXT:    ^bb0(%[[SUM_DY:[^:]+]]: f32, %{{[^:]+}}: f32, %[[SCALE:[^:]+]]: bf16, %[[VARIANCE:[^:]+]]: bf16,
// CHECK-DAG:       arith.extf %[[VARIANCE]] : bf16 to f32
// CHECK-DAG:       arith.extf %[[SCALE]] : bf16 to f32
// CHECK:           %[[GRAD_SCALE:.+]] = arith.truncf %{{.+}} : f32 to bf16
// CHECK-NEXT:      %[[GRAD_OFFSET:.+]] = arith.truncf %[[SUM_DY]] : f32 to bf16
// CHECK-NEXT:      linalg.yield %{{.+}}, %{{.+}}, %{{.+}}, %[[GRAD_SCALE]], %[[GRAD_OFFSET]] : f32, f32, f32, bf16, bf16
// CHECK:         linalg.generic
// CHECK:           %[[ROUNDED:.+]] = arith.truncf %{{.+}} : f32 to f16
// CHECK-NEXT:      linalg.yield %[[ROUNDED]] : f16
func.func @f16_data_bf16_parameters(%dy: tensor<2x3xf16>, %x: tensor<2x3xf16>, %p: tensor<3xbf16>)
    -> (tensor<2x3xf16>, tensor<3xbf16>, tensor<3xbf16>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf16>) input(%x : tensor<2x3xf16>)
      scale(%p : tensor<3xbf16>) mean(%p : tensor<3xbf16>) variance(%p : tensor<3xbf16>)
      : tensor<2x3xf16>, tensor<3xbf16>, tensor<3xbf16>
  return %0#0, %0#1, %0#2 : tensor<2x3xf16>, tensor<3xbf16>, tensor<3xbf16>
}

// An f64 parameter makes all computations f64, including constants; results may
// be narrower than the accumulator.
// CHECK-LABEL: func @f32_data_f64_parameters
// CHECK:         linalg.generic {{.+}} outs(%{{.+}} : tensor<3xf64>, tensor<3xf64>)
// CHECK-NEXT:    ^bb0(%{{[^:]+}}: f32, %{{[^:]+}}: f32, %{{[^:]+}}: f64, %{{[^:]+}}: f64, %{{[^:]+}}: f64):
// CHECK-COUNT-2:   arith.extf %{{.+}} : f32 to f64
// CHECK:         linalg.generic
// CHECK-DAG:       arith.constant 1.000000e-05 : f64
// CHECK-DAG:       arith.constant 2.000000e+00 : f64
// CHECK:           %[[GRAD_SCALE:.+]] = arith.truncf %{{.+}} : f64 to f16
// CHECK-NEXT:      linalg.yield %{{.+}} : f64, f64, f64, f16, f64
// CHECK:         linalg.generic
// CHECK:           arith.truncf %{{.+}} : f64 to bf16
// CHECK-NEXT:      linalg.yield %{{.+}} : bf16
func.func @f32_data_f64_parameters(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf64>)
    -> (tensor<2x3xbf16>, tensor<3xf16>, tensor<3xf64>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf64>) variance(%p : tensor<3xf64>) {epsilon = 1.0e-5 : f64}
      : tensor<2x3xbf16>, tensor<3xf16>, tensor<3xf64>
  return %0#0, %0#1, %0#2 : tensor<2x3xbf16>, tensor<3xf16>, tensor<3xf64>
}

// So do f64 data.
// CHECK-LABEL: func @f64_data_f32_parameters
// CHECK:         linalg.generic {{.+}} outs(%{{.+}} : tensor<3xf64>, tensor<3xf64>)
// CHECK-NEXT:    ^bb0(%{{[^:]+}}: f64, %{{[^:]+}}: f64, %[[MEAN:[^:]+]]: f32,
// CHECK:           arith.extf %[[MEAN]] : f32 to f64
func.func @f64_data_f32_parameters(%dy: tensor<2x3xf64>, %x: tensor<2x3xf64>, %p: tensor<3xf32>) -> tensor<2x3xf64> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf64>) input(%x : tensor<2x3xf64>)
      mean(%p : tensor<3xf32>) inv_std(%p : tensor<3xf32>)
      : tensor<2x3xf64>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<2x3xf64>
}

// The types of results do not affect the accumulator type; a wider result is
// extended at the end.
// CHECK-LABEL: func @results_wider_than_operands
// CHECK:         linalg.generic {{.+}} outs(%{{.+}} : tensor<3xf32>, tensor<3xf32>)
// CHECK:         linalg.generic
// CHECK:           arith.extf %{{.+}} : f32 to f64
// CHECK:         linalg.generic
// CHECK:           %[[WIDE:.+]] = arith.extf %{{.+}} : f32 to f64
// CHECK-NEXT:      linalg.yield %[[WIDE]] : f64
func.func @results_wider_than_operands(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) -> (tensor<2x3xf64>, tensor<3xf64>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) inv_std(%p : tensor<3xf32>)
      : tensor<2x3xf64>, tensor<3xf64>, tensor<3xf32>
  return %0#0, %0#1 : tensor<2x3xf64>, tensor<3xf64>
}

// M is an integer until it becomes a float: one more than f32 can hold, rounded.
// CHECK-LABEL: func @count_beyond_f32
// CHECK:         arith.constant 0x4B800002 : f32
func.func @count_beyond_f32(%x: tensor<16777219x1xf32>, %p: tensor<1xf32>) -> tensor<16777219x1xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<16777219x1xf32>) input(%x : tensor<16777219x1xf32>)
      mean(%p : tensor<1xf32>) inv_std(%p : tensor<1xf32>)
      : tensor<16777219x1xf32>, tensor<1xf32>, tensor<1xf32>
  return %0#0 : tensor<16777219x1xf32>
}

// === ops of unused results are not built ===

// CHECK-LABEL: func @only_grad_input_of_batch
// CHECK:         %[[SUMS:.+]]:2 = linalg.generic
// CHECK:         %[[COEFFICIENTS:.+]]:3 = linalg.generic
// CHECK:         %[[DX:.+]] = linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[DX]]
func.func @only_grad_input_of_batch(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) -> tensor<2x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      scale(%p : tensor<3xf32>) mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<2x3xf32>
}

// No sums: neither input nor mean is read.
// CHECK-LABEL: func @only_grad_input_of_global
// CHECK-SAME:    (%[[DY:.+]]: tensor<2x3xf32>, %[[X:.+]]: tensor<2x3xf32>, %[[SCALE:.+]]: tensor<3xf32>, %[[MEAN:.+]]: tensor<3xf32>, %[[R:.+]]: tensor<3xf32>)
// CHECK-NOT:     "reduction"
// CHECK:         %[[FACTOR:.+]] = linalg.generic {{.+}} ins(%[[SCALE]], %[[R]] :
// CHECK-NOT:     "reduction"
// CHECK:         %[[DX:.+]] = linalg.generic {{.+}} ins(%[[DY]], %[[FACTOR]] :
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[DX]]
func.func @only_grad_input_of_global(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %scale: tensor<3xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>) -> tensor<2x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      scale(%scale : tensor<3xf32>) mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>)
      {statistics = #bngrad.statistics<global>}
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<2x3xf32>
}

// One sum; no scale, no M.
// CHECK-LABEL: func @only_grad_scale
// CHECK-SAME:    (%[[DY:.+]]: tensor<2x3xf32>, %[[X:.+]]: tensor<2x3xf32>, %[[SCALE:.+]]: tensor<3xf32>, %[[MEAN:.+]]: tensor<3xf32>, %[[R:.+]]: tensor<3xf32>)
// CHECK:         %[[SUM:[^:]+]] = linalg.generic {{.+}} ins(%[[DY]], %[[X]], %[[MEAN]] : {{.+}} outs(%{{[^,]+}} : tensor<3xf32>)
// CHECK:         %[[RESULT:[^:]+]] = linalg.generic {{.+}} ins(%[[SUM]], %[[R]] :
// CHECK-NEXT:    ^bb0(%[[SUM_E:[^:]+]]: f32, %[[R_E:[^:]+]]: f32, %{{[^:]+}}: f32):
// CHECK:           %[[PRODUCT:.+]] = arith.mulf %[[SUM_E]], %[[R_E]]
// CHECK:           linalg.yield %[[PRODUCT]] : f32
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[RESULT]]
func.func @only_grad_scale(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %scale: tensor<3xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>) -> tensor<3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      scale(%scale : tensor<3xf32>) mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#1 : tensor<3xf32>
}

// One sum of only grad_output (and mask): input, mean and the statistic are not
// read, and there is no root.
// CHECK-LABEL: func @only_grad_offset
// CHECK-SAME:    (%[[DY:.+]]: tensor<2x3xf32>, %[[X:.+]]: tensor<2x3xf32>, %[[MEAN:.+]]: tensor<3xf32>, %[[VARIANCE:.+]]: tensor<3xf32>, %[[MASK:.+]]: tensor<2x3xi1>)
// CHECK-NOT:     math.sqrt
// CHECK-NOT:     {{ins\(.*}}%[[X]]
// CHECK-NOT:     {{ins\(.*}}%[[MEAN]]
// CHECK-NOT:     {{ins\(.*}}%[[VARIANCE]]
// CHECK:         %[[SUM:[^:]+]] = linalg.generic {{.+}} ins(%[[DY]], %[[MASK]] :
// CHECK-NOT:     math.sqrt
// CHECK:         %[[RESULT:[^:]+]] = linalg.generic {{.+}} ins(%[[SUM]] :
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[RESULT]]
func.func @only_grad_offset(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %mean: tensor<3xf32>, %variance: tensor<3xf32>, %k: tensor<2x3xi1>) -> tensor<3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%mean : tensor<3xf32>) variance(%variance : tensor<3xf32>) mask(%k : tensor<2x3xi1>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#2 : tensor<3xf32>
}

// Two sums, one pass: no element-wise generic and no coefficients.
// CHECK-LABEL: func @grad_scale_and_grad_offset
// CHECK:         %[[SUMS:.+]]:2 = linalg.generic
// CHECK:         %[[RESULTS:.+]]:2 = linalg.generic {{.+}} ins(%[[SUMS]]#0, %[[SUMS]]#1, %{{[^,]+}} :
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[RESULTS]]#0, %[[RESULTS]]#1
func.func @grad_scale_and_grad_offset(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      scale(%p : tensor<3xf32>) mean(%p : tensor<3xf32>) inv_std(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#1, %0#2 : tensor<3xf32>, tensor<3xf32>
}

// CHECK-LABEL: func @no_result_used
// CHECK-NEXT:    return
func.func @no_result_used(%dy: tensor<?x3xf32>, %x: tensor<?x3xf32>, %p: tensor<3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x3xf32>) input(%x : tensor<?x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// === sizes ===

// Empty sums: zeros for any r, and no division by M = 0.
// CHECK-LABEL: func @no_elements
// CHECK-NOT:     linalg.generic
// CHECK-NOT:     arith.divf
// CHECK-DAG:     %[[DX:.+]] = tensor.empty() : tensor<0x3x4xf16>
// CHECK-DAG:     %[[DS:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%{{.+}} : tensor<3xf32>)
// CHECK-DAG:     %[[DO:.+]] = linalg.fill ins(%{{.+}} : f64) outs(%{{.+}} : tensor<3xf64>)
// CHECK:         return %[[DX]], %[[DS]], %[[DO]]
func.func @no_elements(%x: tensor<0x3x4xf16>, %p: tensor<3xf32>) -> (tensor<0x3x4xf16>, tensor<3xf32>, tensor<3xf64>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<0x3x4xf16>) input(%x : tensor<0x3x4xf16>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<0x3x4xf16>, tensor<3xf32>, tensor<3xf64>
  return %0#0, %0#1, %0#2 : tensor<0x3x4xf16>, tensor<3xf32>, tensor<3xf64>
}

// The same with an additional dynamic size.
// CHECK-LABEL: func @no_elements_among_dynamic_sizes
// CHECK-SAME:    (%[[X:[^:]+]]: tensor<?x3x0xf32>
// CHECK-NOT:     linalg.generic
// CHECK:         %[[SIZE:.+]] = tensor.dim %[[X]], %{{.+}}
// CHECK:         %[[DX:.+]] = tensor.empty(%[[SIZE]]) : tensor<?x3x0xf32>
// CHECK:         return %[[DX]]
func.func @no_elements_among_dynamic_sizes(%x: tensor<?x3x0xf32>, %p: tensor<3xf32>) -> tensor<?x3x0xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<?x3x0xf32>) input(%x : tensor<?x3x0xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<?x3x0xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<?x3x0xf32>
}

// A shape without channels is not a special case: M is 2.
// CHECK-LABEL: func @no_channels
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["reduction", "parallel"]
func.func @no_channels(%x: tensor<2x0xf32>, %p: tensor<0xf32>) -> (tensor<2x0xf32>, tensor<0xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x0xf32>) input(%x : tensor<2x0xf32>)
      mean(%p : tensor<0xf32>) variance(%p : tensor<0xf32>)
      : tensor<2x0xf32>, tensor<0xf32>, tensor<0xf32>
  return %0#0, %0#1 : tensor<2x0xf32>, tensor<0xf32>
}

// M may be 0 at run time: the divisor is max(M, 1), and a select computes
// grad_scale, since 0 * r may be NaN. M is computed in integers.
// CSE-LABEL: func @dynamic_count(
// CSE-SAME:    %[[DY:.+]]: tensor<?x3x?x5xf32>, %[[X:.+]]: tensor<?x3x?x5xf32>, %[[P:.+]]: tensor<3xf32>)
// CSE-DAG:     %[[C0:.+]] = arith.constant 0 : index
// CSE-DAG:     %[[C2:.+]] = arith.constant 2 : index
// CSE-DAG:     %[[ZERO:.+]] = arith.constant 0 : i64
// CSE-DAG:     %[[ONE:.+]] = arith.constant 1 : i64
// CSE-DAG:     %[[C5:.+]] = arith.constant 5 : index
// CSE-DAG:     %[[D0:.+]] = tensor.dim %[[X]], %[[C0]]
// CSE-DAG:     %[[D2:.+]] = tensor.dim %[[X]], %[[C2]]
// CSE-DAG:     %[[PARTIAL:.+]] = arith.muli %[[D0]], %[[C5]] : index
// CSE-DAG:     %[[COUNT:.+]] = arith.muli %[[PARTIAL]], %[[D2]] : index
// CSE-DAG:     %[[I64:.+]] = arith.index_cast %[[COUNT]] : index to i64
// CSE-DAG:     %[[IS_ZERO:.+]] = arith.cmpi eq, %[[I64]], %[[ZERO]] : i64
// CSE-DAG:     %[[AT_LEAST_ONE:.+]] = arith.maxsi %[[I64]], %[[ONE]] : i64
// CSE-DAG:     %[[M:.+]] = arith.sitofp %[[AT_LEAST_ONE]] : i64 to f32
// CSE:         linalg.generic {{.+}} iterator_types = ["parallel"]}
// CSE-NEXT:    ^bb0(%[[SUM_DY:[^:]+]]: f32, %[[SUM_DY_XMU:[^:]+]]: f32, %[[R:[^:]+]]: f32,
// CSE-DAG:       arith.divf %[[SUM_DY]], %[[M]]
// CSE-DAG:       arith.divf %[[SUM_DY_XMU]], %[[M]]
// CSE-DAG:       %[[PRODUCT:.+]] = arith.mulf %[[SUM_DY_XMU]], %[[R]]
// CSE-DAG:       %[[GRAD_SCALE:.+]] = arith.select %[[IS_ZERO]], %[[FLOAT_ZERO:.+]], %[[PRODUCT]] : f32
// CSE:           linalg.yield %{{.+}}, %{{.+}}, %{{.+}}, %[[GRAD_SCALE]], %[[SUM_DY]]
func.func @dynamic_count(%dy: tensor<?x3x?x5xf32>, %x: tensor<?x3x?x5xf32>, %p: tensor<3xf32>)
    -> (tensor<?x3x?x5xf32>, tensor<3xf32>, tensor<3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x3x?x5xf32>) input(%x : tensor<?x3x?x5xf32>)
      mean(%p : tensor<3xf32>) inv_std(%p : tensor<3xf32>)
      : tensor<?x3x?x5xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %0#1, %0#2 : tensor<?x3x?x5xf32>, tensor<3xf32>, tensor<3xf32>
}

// Only grad_offset, a sum: no guard and no count.
// CHECK-LABEL: func @dynamic_count_unneeded
// CHECK-NOT:     arith.muli
// CHECK-NOT:     arith.select
// CHECK:         return
func.func @dynamic_count_unneeded(%dy: tensor<?x3xf32>, %x: tensor<?x3xf32>, %p: tensor<3xf32>) -> tensor<3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x3xf32>) input(%x : tensor<?x3xf32>)
      mean(%p : tensor<3xf32>) inv_std(%p : tensor<3xf32>)
      : tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#2 : tensor<3xf32>
}

// Every size is dynamic: inits take their sizes from input.
// CSE-LABEL: func @dynamic_everything_nhwc
// CSE-SAME:    (%[[DY:.+]]: tensor<?x?x?xbf16>, %[[X:.+]]: tensor<?x?x?xbf16>, %[[P:.+]]: tensor<?xf32>)
// CSE-DAG:     %[[C0:.+]] = arith.constant 0 : index
// CSE-DAG:     %[[C1:.+]] = arith.constant 1 : index
// CSE-DAG:     %[[C2:.+]] = arith.constant 2 : index
// CSE-DAG:     %[[D0:.+]] = tensor.dim %[[X]], %[[C0]]
// CSE-DAG:     %[[D1:.+]] = tensor.dim %[[X]], %[[C1]]
// CSE-DAG:     %[[D2:.+]] = tensor.dim %[[X]], %[[C2]]
// CSE-DAG:     %[[PER_CHANNEL:.+]] = tensor.empty(%[[D2]]) : tensor<?xf32>
// CSE-DAG:     %[[SUM_INIT:.+]] = linalg.fill {{.+}} outs(%[[PER_CHANNEL]] : tensor<?xf32>)
// CSE-DAG:     linalg.generic {{.+}} iterator_types = ["reduction", "reduction", "parallel"]{{.+}} outs(%[[SUM_INIT]],
// CSE-DAG:     linalg.generic {{.+}} iterator_types = ["parallel"]{{.+}} outs(%[[PER_CHANNEL]],
// CSE-DAG:     %[[FULL:.+]] = tensor.empty(%[[D0]], %[[D1]], %[[D2]]) : tensor<?x?x?xbf16>
// CSE:         linalg.generic {{.+}} outs(%[[FULL]] : tensor<?x?x?xbf16>)
func.func @dynamic_everything_nhwc(%dy: tensor<?x?x?xbf16>, %x: tensor<?x?x?xbf16>, %p: tensor<?xf32>) -> tensor<?x?x?xbf16> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x?x?xbf16>) input(%x : tensor<?x?x?xbf16>)
      mean(%p : tensor<?xf32>) variance(%p : tensor<?xf32>) {feature_dims = array<i64: 2>}
      : tensor<?x?x?xbf16>, tensor<?xf32>, tensor<?xf32>
  return %0#0 : tensor<?x?x?xbf16>
}

// Sizes that are static in any operand are used, and the results are cast to
// the types of their users.
// CHECK-LABEL: func @results_less_static_than_operands
// CHECK:         arith.constant 8.000000e+00 : f32
// CHECK:         %[[DX:.+]] = linalg.generic {{.+}} outs(%{{.+}} : tensor<2x3x4xf32>)
// CHECK-DAG:     %[[DX_CAST:.+]] = tensor.cast %[[DX]] : tensor<2x3x4xf32> to tensor<?x?x?xf32>
// CHECK-DAG:     %[[DS_CAST:.+]] = tensor.cast %{{.+}} : tensor<3xf32> to tensor<?xf32>
// CHECK-DAG:     %[[DO_CAST:.+]] = tensor.cast %{{.+}} : tensor<3xf32> to tensor<?xf32>
// CHECK:         return %[[DX_CAST]], %[[DS_CAST]], %[[DO_CAST]]
func.func @results_less_static_than_operands(%dy: tensor<2x?x?xf32>, %x: tensor<?x?x4xf32>, %m: tensor<3xf32>, %v: tensor<?xf32>)
    -> (tensor<?x?x?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x?x?xf32>) input(%x : tensor<?x?x4xf32>)
      mean(%m : tensor<3xf32>) variance(%v : tensor<?xf32>)
      : tensor<?x?x?xf32>, tensor<?xf32>, tensor<?xf32>
  return %0#0, %0#1, %0#2 : tensor<?x?x?xf32>, tensor<?xf32>, tensor<?xf32>
}

// A per-channel result with more static sizes than the operands also gets a cast.
// CHECK-LABEL: func @results_more_static_than_operands
// CHECK:         %[[CAST:.+]] = tensor.cast %{{.+}} : tensor<?xf32> to tensor<3xf32>
// CHECK:         return %[[CAST]]
func.func @results_more_static_than_operands(%dy: tensor<?x?xf32>, %x: tensor<?x?xf32>, %p: tensor<?xf32>) -> tensor<3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x?xf32>) input(%x : tensor<?x?xf32>)
      mean(%p : tensor<?xf32>) variance(%p : tensor<?xf32>)
      : tensor<?x?xf32>, tensor<3xf32>, tensor<?xf32>
  return %0#1 : tensor<3xf32>
}

// === other properties ===

// An op in a region is decomposed in place.
// CHECK-LABEL: func @op_in_a_loop
// CHECK:         scf.for
// CHECK:           linalg.generic
// CHECK:           linalg.generic
// CHECK:           %[[DX:.+]] = linalg.generic
// CHECK:           scf.yield %[[DX]]
func.func @op_in_a_loop(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>, %n: index) -> tensor<2x3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%grad = %dy) -> (tensor<2x3xf32>) {
    %0:3 = bngrad.batch_norm_backward grad_output(%grad : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
        mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
        : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
    scf.yield %0#0 : tensor<2x3xf32>
  }
  return %r : tensor<2x3xf32>
}

// Two ops share no values, not even inits.
// CHECK-LABEL: func @two_ops
// CHECK-COUNT-4: linalg.fill
// CHECK-NOT:     linalg.fill
// CHECK:         return
func.func @two_ops(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) -> tensor<2x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  %1:3 = bngrad.batch_norm_backward grad_output(%0#0 : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return %1#0 : tensor<2x3xf32>
}

// Every new op, including those in bodies, has the location of the gradient.
// LOC-LABEL: func @location_kept
// LOC-SAME:    -> tensor<?x3xf32> {
// LOC-NOT:     loc({{([^"]|"[^g]).*\)$}}
// LOC:         tensor.cast {{.*}} loc("gradient")
// LOC-NEXT:    return {{.*}} loc("the return")
func.func @location_kept(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) -> tensor<?x3xf32> {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      : tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32> loc("gradient")
  return %0#0 : tensor<?x3xf32> loc("the return")
}

// CHECK-LABEL: func @nothing_to_decompose
// CHECK-SAME:    %[[A:[^:]+]]: tensor<2x3xf32>
// CHECK-NEXT:    %[[E:.+]] = math.exp %[[A]]
// CHECK-NEXT:    return %[[E]]
func.func @nothing_to_decompose(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = math.exp %a : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
