// Text and bytecode round-trip.
// RUN: bngrad-opt %s --verify-roundtrip | FileCheck %s
// RUN: bngrad-opt %s --emit-bytecode | bngrad-opt | FileCheck %s

// So does the generic form, which also shows the parts omitted in the short form.
// RUN: bngrad-opt %s --mlir-print-op-generic | bngrad-opt | FileCheck %s
// RUN: bngrad-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// The clauses and results in order. Swapped operands or results of one type
// would only be noticed here, as their types are equal.
// CHECK-LABEL: func @nchw_training
// CHECK-SAME:    (%[[DY:.+]]: tensor<32x64x8x8xf32>, %[[X:.+]]: tensor<32x64x8x8xf32>, %[[SCALE:.+]]: tensor<64xf32>, %[[MEAN:.+]]: tensor<64xf32>, %[[VARIANCE:.+]]: tensor<64xf32>)
// CHECK-NEXT:    %[[DX:.+]], %[[DSCALE:.+]], %[[DOFFSET:.+]] = bngrad.batch_norm_backward
// CHECK-SAME:      grad_output(%[[DY]] : tensor<32x64x8x8xf32>) input(%[[X]] : tensor<32x64x8x8xf32>)
// CHECK-SAME:      scale(%[[SCALE]] : tensor<64xf32>) mean(%[[MEAN]] : tensor<64xf32>) variance(%[[VARIANCE]] : tensor<64xf32>)
// CHECK-SAME:      {epsilon = 1.000000e-05 : f64} : tensor<32x64x8x8xf32>, tensor<64xf32>, tensor<64xf32>
// CHECK-NEXT:    return %[[DX]], %[[DSCALE]], %[[DOFFSET]]
// GENERIC-LABEL: sym_name = "nchw_training"
// GENERIC-NEXT:  ^bb0(%[[DY:.+]]: tensor<32x64x8x8xf32>, %[[X:.+]]: tensor<32x64x8x8xf32>, %[[SCALE:.+]]: tensor<64xf32>, %[[MEAN:.+]]: tensor<64xf32>, %[[VARIANCE:.+]]: tensor<64xf32>)
// GENERIC:       "bngrad.batch_norm_backward"(%[[DY]], %[[X]], %[[SCALE]], %[[MEAN]], %[[VARIANCE]])
// GENERIC-SAME:    <{epsilon = 1.000000e-05 : f64, feature_dims = array<i64: 1>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0>, statistics = #bngrad.statistics<batch>}>
func.func @nchw_training(%dy: tensor<32x64x8x8xf32>, %x: tensor<32x64x8x8xf32>, %scale: tensor<64xf32>,
                         %mean: tensor<64xf32>, %variance: tensor<64xf32>)
    -> (tensor<32x64x8x8xf32>, tensor<64xf32>, tensor<64xf32>) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward
      grad_output(%dy : tensor<32x64x8x8xf32>) input(%x : tensor<32x64x8x8xf32>)
      scale(%scale : tensor<64xf32>) mean(%mean : tensor<64xf32>) variance(%variance : tensor<64xf32>)
      {epsilon = 1.0e-5 : f64}
      : tensor<32x64x8x8xf32>, tensor<64xf32>, tensor<64xf32>
  return %dx, %dscale, %doffset : tensor<32x64x8x8xf32>, tensor<64xf32>, tensor<64xf32>
}

// Every attribute written explicitly, in another order, with its default: none
// is printed, nor are the braces.
// CHECK-LABEL: func @defaults_spelled_out
// CHECK:         variance(%{{.+}} : tensor<3xf32>) : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
// GENERIC-LABEL: sym_name = "defaults_spelled_out"
// GENERIC:       <{epsilon = 0.000000e+00 : f64, feature_dims = array<i64: 1>, operandSegmentSizes = array<i32: 1, 1, 0, 1, 1, 0, 0>, statistics = #bngrad.statistics<batch>}>
func.func @defaults_spelled_out(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      {statistics = #bngrad.statistics<batch>, feature_dims = array<i64: 1>, epsilon = 0.0 : f64}
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// The generic form may also omit defaults.
// CHECK-LABEL: func @generic_form_with_defaults
// CHECK-SAME:    (%[[DY:.+]]: tensor<2x3xf32>, %[[X:.+]]: tensor<2x3xf32>, %[[MEAN:.+]]: tensor<3xf32>, %[[INV_STD:.+]]: tensor<3xf32>)
// CHECK:         grad_output(%[[DY]] : tensor<2x3xf32>) input(%[[X]] : tensor<2x3xf32>) mean(%[[MEAN]] : tensor<3xf32>) inv_std(%[[INV_STD]] : tensor<3xf32>) : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
// GENERIC-LABEL: sym_name = "generic_form_with_defaults"
// GENERIC:       <{epsilon = 0.000000e+00 : f64, feature_dims = array<i64: 1>, operandSegmentSizes = array<i32: 1, 1, 0, 1, 0, 1, 0>, statistics = #bngrad.statistics<batch>}>
func.func @generic_form_with_defaults(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %mean: tensor<3xf32>, %inv_std: tensor<3xf32>) {
  %0:3 = "bngrad.batch_norm_backward"(%dy, %x, %mean, %inv_std) <{operandSegmentSizes = array<i32: 1, 1, 0, 1, 0, 1, 0>}>
      : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// CHECK-LABEL: func @generic_form_in_full
// CHECK-SAME:    (%[[DY:.+]]: tensor<2x3xf32>, %[[X:.+]]: tensor<2x3xf32>, %[[SCALE:.+]]: tensor<2xf32>, %[[MEAN:.+]]: tensor<2xf32>, %[[VARIANCE:.+]]: tensor<2xf32>, %[[MASK:.+]]: tensor<2x3xi1>)
// CHECK:         scale(%[[SCALE]] : tensor<2xf32>) mean(%[[MEAN]] : tensor<2xf32>) variance(%[[VARIANCE]] : tensor<2xf32>) mask(%[[MASK]] : tensor<2x3xi1>)
// CHECK-SAME:    {epsilon = 2.500000e-01 : f64, feature_dims = array<i64: 0>, statistics = #bngrad.statistics<global>}
func.func @generic_form_in_full(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %scale: tensor<2xf32>,
                                %mean: tensor<2xf32>, %variance: tensor<2xf32>, %mask: tensor<2x3xi1>) {
  %0:3 = "bngrad.batch_norm_backward"(%dy, %x, %scale, %mean, %variance, %mask)
      <{epsilon = 0.25 : f64, feature_dims = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1>,
        statistics = #bngrad.statistics<global>}>
      : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x3xi1>)
      -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// Each optional clause, present and absent, in every combination.
// CHECK-LABEL: func @every_combination_of_clauses
// CHECK-SAME:    (%[[DY:.+]]: tensor<2x3xf32>, %[[X:.+]]: tensor<2x3xf32>, %[[S:.+]]: tensor<3xf32>, %[[M:.+]]: tensor<3xf32>, %[[V:.+]]: tensor<3xf32>, %[[K:.+]]: tensor<2x3xi1>)
// CHECK:         input(%[[X]] : tensor<2x3xf32>) mean(%[[M]] : tensor<3xf32>) variance(%[[V]] : tensor<3xf32>) : tensor
// CHECK:         input(%[[X]] : tensor<2x3xf32>) mean(%[[M]] : tensor<3xf32>) variance(%[[V]] : tensor<3xf32>) mask(%[[K]] : tensor<2x3xi1>) : tensor
// CHECK:         input(%[[X]] : tensor<2x3xf32>) mean(%[[M]] : tensor<3xf32>) inv_std(%[[V]] : tensor<3xf32>) : tensor
// CHECK:         input(%[[X]] : tensor<2x3xf32>) mean(%[[M]] : tensor<3xf32>) inv_std(%[[V]] : tensor<3xf32>) mask(%[[K]] : tensor<2x3xi1>) : tensor
// CHECK:         input(%[[X]] : tensor<2x3xf32>) scale(%[[S]] : tensor<3xf32>) mean(%[[M]] : tensor<3xf32>) variance(%[[V]] : tensor<3xf32>) : tensor
// CHECK:         input(%[[X]] : tensor<2x3xf32>) scale(%[[S]] : tensor<3xf32>) mean(%[[M]] : tensor<3xf32>) variance(%[[V]] : tensor<3xf32>) mask(%[[K]] : tensor<2x3xi1>) : tensor
// CHECK:         input(%[[X]] : tensor<2x3xf32>) scale(%[[S]] : tensor<3xf32>) mean(%[[M]] : tensor<3xf32>) inv_std(%[[V]] : tensor<3xf32>) : tensor
// CHECK:         input(%[[X]] : tensor<2x3xf32>) scale(%[[S]] : tensor<3xf32>) mean(%[[M]] : tensor<3xf32>) inv_std(%[[V]] : tensor<3xf32>) mask(%[[K]] : tensor<2x3xi1>) : tensor
// GENERIC-LABEL: sym_name = "every_combination_of_clauses"
// GENERIC:       operandSegmentSizes = array<i32: 1, 1, 0, 1, 1, 0, 0>
// GENERIC:       operandSegmentSizes = array<i32: 1, 1, 0, 1, 1, 0, 1>
// GENERIC:       operandSegmentSizes = array<i32: 1, 1, 0, 1, 0, 1, 0>
// GENERIC:       operandSegmentSizes = array<i32: 1, 1, 0, 1, 0, 1, 1>
// GENERIC:       operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0>
// GENERIC:       operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1>
// GENERIC:       operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 0>
// GENERIC:       operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 1>
func.func @every_combination_of_clauses(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %s: tensor<3xf32>,
                                        %m: tensor<3xf32>, %v: tensor<3xf32>, %k: tensor<2x3xi1>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) variance(%v : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  %1:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) variance(%v : tensor<3xf32>) mask(%k : tensor<2x3xi1>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  %2:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) inv_std(%v : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  %3:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      mean(%m : tensor<3xf32>) inv_std(%v : tensor<3xf32>) mask(%k : tensor<2x3xi1>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  %4:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      scale(%s : tensor<3xf32>) mean(%m : tensor<3xf32>) variance(%v : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  %5:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      scale(%s : tensor<3xf32>) mean(%m : tensor<3xf32>) variance(%v : tensor<3xf32>) mask(%k : tensor<2x3xi1>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  %6:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      scale(%s : tensor<3xf32>) mean(%m : tensor<3xf32>) inv_std(%v : tensor<3xf32>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  %7:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3xf32>) input(%x : tensor<2x3xf32>)
      scale(%s : tensor<3xf32>) mean(%m : tensor<3xf32>) inv_std(%v : tensor<3xf32>) mask(%k : tensor<2x3xi1>)
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// Each attribute without the others.
// CHECK-LABEL: func @each_attribute_alone
// CHECK:         variance(%{{.+}} : tensor<3xf32>) {epsilon = 1.000000e-03 : f64} : tensor
// CHECK:         variance(%{{.+}} : tensor<3xf32>) {feature_dims = array<i64: 0>} : tensor
// CHECK:         variance(%{{.+}} : tensor<3xf32>) {statistics = #bngrad.statistics<global>} : tensor
// CHECK:         variance(%{{.+}} : tensor<3xf32>) {local_parameter_gradients} : tensor
func.func @each_attribute_alone(%x: tensor<3x3xf32>, %p: tensor<3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<3x3xf32>) input(%x : tensor<3x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {epsilon = 1.0e-3 : f64}
      : tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>
  %1:3 = bngrad.batch_norm_backward grad_output(%x : tensor<3x3xf32>) input(%x : tensor<3x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {feature_dims = array<i64: 0>}
      : tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>
  %2:3 = bngrad.batch_norm_backward grad_output(%x : tensor<3x3xf32>) input(%x : tensor<3x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {statistics = #bngrad.statistics<global>}
      : tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>
  %3:3 = bngrad.batch_norm_backward grad_output(%x : tensor<3x3xf32>) input(%x : tensor<3x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {local_parameter_gradients}
      : tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// The smallest epsilon above 0 differs from the default.
// CHECK-LABEL: func @epsilon_is_exact
// CHECK:         {epsilon = {{.+}}e-324 : f64}
func.func @epsilon_is_exact(%x: tensor<3x3xf32>, %p: tensor<3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<3x3xf32>) input(%x : tensor<3x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>) {epsilon = 0x0000000000000001 : f64}
      : tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// Every element type for the data, for the parameters and for the results.
// CHECK-LABEL: func @every_element_type
// CHECK:         input(%{{.+}} : tensor<2x3xf16>) mean(%{{.+}} : tensor<3xbf16>) variance(%{{.+}} : tensor<3xbf16>) : tensor<2x3xf32>, tensor<3xf64>, tensor<3xf16>
// CHECK:         input(%{{.+}} : tensor<2x3xbf16>) mean(%{{.+}} : tensor<3xf32>) variance(%{{.+}} : tensor<3xf32>) : tensor<2x3xf64>, tensor<3xf16>, tensor<3xbf16>
// CHECK:         input(%{{.+}} : tensor<2x3xf32>) mean(%{{.+}} : tensor<3xf64>) variance(%{{.+}} : tensor<3xf64>) : tensor<2x3xf16>, tensor<3xbf16>, tensor<3xf32>
// CHECK:         input(%{{.+}} : tensor<2x3xf64>) mean(%{{.+}} : tensor<3xf16>) variance(%{{.+}} : tensor<3xf16>) : tensor<2x3xbf16>, tensor<3xf32>, tensor<3xf64>
func.func @every_element_type(%x16: tensor<2x3xf16>, %xb: tensor<2x3xbf16>, %x32: tensor<2x3xf32>, %x64: tensor<2x3xf64>,
                              %p16: tensor<3xf16>, %pb: tensor<3xbf16>, %p32: tensor<3xf32>, %p64: tensor<3xf64>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%x16 : tensor<2x3xf16>) input(%x16 : tensor<2x3xf16>)
      mean(%pb : tensor<3xbf16>) variance(%pb : tensor<3xbf16>) : tensor<2x3xf32>, tensor<3xf64>, tensor<3xf16>
  %1:3 = bngrad.batch_norm_backward grad_output(%xb : tensor<2x3xbf16>) input(%xb : tensor<2x3xbf16>)
      mean(%p32 : tensor<3xf32>) variance(%p32 : tensor<3xf32>) : tensor<2x3xf64>, tensor<3xf16>, tensor<3xbf16>
  %2:3 = bngrad.batch_norm_backward grad_output(%x32 : tensor<2x3xf32>) input(%x32 : tensor<2x3xf32>)
      mean(%p64 : tensor<3xf64>) variance(%p64 : tensor<3xf64>) : tensor<2x3xf16>, tensor<3xbf16>, tensor<3xf32>
  %3:3 = bngrad.batch_norm_backward grad_output(%x64 : tensor<2x3xf64>) input(%x64 : tensor<2x3xf64>)
      mean(%p16 : tensor<3xf16>) variance(%p16 : tensor<3xf16>) : tensor<2x3xbf16>, tensor<3xf32>, tensor<3xf64>
  return
}

// NHWC, per activation, every dim a feature dim, rank 1.
// CHECK-LABEL: func @every_kind_of_feature_dims
// CHECK:         mean(%{{.+}} : tensor<5xf32>) variance(%{{.+}} : tensor<5xf32>) {feature_dims = array<i64: 3>} : tensor<2x3x4x5xf32>, tensor<5xf32>, tensor<5xf32>
// CHECK:         {feature_dims = array<i64: 1, 2, 3>} : tensor<2x3x4x5xf32>, tensor<3x4x5xf32>, tensor<3x4x5xf32>
// CHECK:         {feature_dims = array<i64: 0, 2>} : tensor<2x3x4x5xf32>, tensor<2x4xf32>, tensor<2x4xf32>
// CHECK:         {feature_dims = array<i64: 0, 1, 2, 3>} : tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>
// CHECK:         {feature_dims = array<i64: 0>} : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
func.func @every_kind_of_feature_dims(%x: tensor<2x3x4x5xf32>, %p: tensor<5xf32>, %q: tensor<3x4x5xf32>, %r: tensor<2x4xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3x4x5xf32>) input(%x : tensor<2x3x4x5xf32>)
      mean(%p : tensor<5xf32>) variance(%p : tensor<5xf32>) {feature_dims = array<i64: 3>}
      : tensor<2x3x4x5xf32>, tensor<5xf32>, tensor<5xf32>
  %1:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3x4x5xf32>) input(%x : tensor<2x3x4x5xf32>)
      mean(%q : tensor<3x4x5xf32>) variance(%q : tensor<3x4x5xf32>) {feature_dims = array<i64: 1, 2, 3>}
      : tensor<2x3x4x5xf32>, tensor<3x4x5xf32>, tensor<3x4x5xf32>
  %2:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3x4x5xf32>) input(%x : tensor<2x3x4x5xf32>)
      mean(%r : tensor<2x4xf32>) variance(%r : tensor<2x4xf32>) {feature_dims = array<i64: 0, 2>}
      : tensor<2x3x4x5xf32>, tensor<2x4xf32>, tensor<2x4xf32>
  %3:3 = bngrad.batch_norm_backward grad_output(%x : tensor<2x3x4x5xf32>) input(%x : tensor<2x3x4x5xf32>)
      mean(%x : tensor<2x3x4x5xf32>) variance(%x : tensor<2x3x4x5xf32>) {feature_dims = array<i64: 0, 1, 2, 3>}
      : tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>
  %4:3 = bngrad.batch_norm_backward grad_output(%p : tensor<5xf32>) input(%p : tensor<5xf32>)
      mean(%p : tensor<5xf32>) variance(%p : tensor<5xf32>) {feature_dims = array<i64: 0>}
      : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
  return
}

// Sizes may be static on either side or on neither, and may be 0 or 1.
// CHECK-LABEL: func @dynamic_sizes
// CHECK:         grad_output(%{{.+}} : tensor<?x?xf32>) input(%{{.+}} : tensor<?x?xf32>) mean(%{{.+}} : tensor<?xf32>) variance(%{{.+}} : tensor<?xf32>) : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
// CHECK:         grad_output(%{{.+}} : tensor<2x?xf32>) input(%{{.+}} : tensor<?x3xf32>) mean(%{{.+}} : tensor<?xf32>) variance(%{{.+}} : tensor<3xf32>) mask(%{{.+}} : tensor<?x?xi1>) : tensor<2x?xf32>, tensor<?xf32>, tensor<3xf32>
// CHECK:         : tensor<0x3xf32>, tensor<3xf32>, tensor<3xf32>
// CHECK:         : tensor<1x0xf32>, tensor<0xf32>, tensor<0xf32>
func.func @dynamic_sizes(%x: tensor<?x?xf32>, %p: tensor<?xf32>, %dy2: tensor<2x?xf32>, %x3: tensor<?x3xf32>,
                         %p3: tensor<3xf32>, %k: tensor<?x?xi1>, %none: tensor<0x3xf32>,
                         %channelless: tensor<1x0xf32>, %p0: tensor<0xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<?x?xf32>) input(%x : tensor<?x?xf32>)
      mean(%p : tensor<?xf32>) variance(%p : tensor<?xf32>)
      : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
  %1:3 = bngrad.batch_norm_backward grad_output(%dy2 : tensor<2x?xf32>) input(%x3 : tensor<?x3xf32>)
      mean(%p : tensor<?xf32>) variance(%p3 : tensor<3xf32>) mask(%k : tensor<?x?xi1>)
      : tensor<2x?xf32>, tensor<?xf32>, tensor<3xf32>
  %2:3 = bngrad.batch_norm_backward grad_output(%none : tensor<0x3xf32>) input(%none : tensor<0x3xf32>)
      mean(%p3 : tensor<3xf32>) variance(%p3 : tensor<3xf32>)
      : tensor<0x3xf32>, tensor<3xf32>, tensor<3xf32>
  %3:3 = bngrad.batch_norm_backward grad_output(%channelless : tensor<1x0xf32>) input(%channelless : tensor<1x0xf32>)
      mean(%p0 : tensor<0xf32>) variance(%p0 : tensor<0xf32>)
      : tensor<1x0xf32>, tensor<0xf32>, tensor<0xf32>
  return
}

// Discardable attributes are kept, in both dictionaries.
// CHECK-LABEL: func @discardable_attributes_kept
// CHECK:         {epsilon = 1.000000e+00 : f64, frontend.layer = "bn1"}
// GENERIC-LABEL: sym_name = "discardable_attributes_kept"
// GENERIC:       <{epsilon = 1.000000e+00 : f64,
// GENERIC-SAME:  }> {frontend.layer = "bn1"}
func.func @discardable_attributes_kept(%x: tensor<3x3xf32>, %p: tensor<3xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<3x3xf32>) input(%x : tensor<3x3xf32>)
      mean(%p : tensor<3xf32>) variance(%p : tensor<3xf32>)
      {frontend.layer = "bn1", epsilon = 1.0 : f64}
      : tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// The dialect's attributes are allowed wherever an attribute is.
// CHECK-LABEL: func private @attributes_of_a_function
// CHECK-SAME:    test.schedule = #bngrad.schedule<loops>, test.statistics = [#bngrad.statistics<batch>, #bngrad.statistics<global>]
func.func private @attributes_of_a_function() attributes {
  test.statistics = [#bngrad.statistics<batch>, #bngrad.statistics<global>],
  test.schedule = #bngrad.schedule<loops>
}

// The largest number of elements per channel in an i64; a size of 0 means no elements.
// CHECK-LABEL: func @many_elements
func.func @many_elements(%dy: tensor<2147483648x3x4294967295xf32>, %m: tensor<3xf32>,
                         %none: tensor<4294967296x3x4294967296x0xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<2147483648x3x4294967295xf32>)
      input(%dy : tensor<2147483648x3x4294967295xf32>) mean(%m : tensor<3xf32>) variance(%m : tensor<3xf32>)
      : tensor<2147483648x3x4294967295xf32>, tensor<3xf32>, tensor<3xf32>
  %1:3 = bngrad.batch_norm_backward grad_output(%none : tensor<4294967296x3x4294967296x0xf32>)
      input(%none : tensor<4294967296x3x4294967296x0xf32>) mean(%m : tensor<3xf32>) variance(%m : tensor<3xf32>)
      : tensor<4294967296x3x4294967296x0xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// CHECK-LABEL: func @element_casts
// CHECK:         bngrad.element_cast %{{.+}} : memref<?x8xi1, strided<[16, 1], offset: ?>> to memref<?x8xi8, strided<[16, 1], offset: ?>>
// CHECK-NEXT:    bngrad.element_cast %{{.+}} : memref<?xbf16, 3> to memref<?xi16, 3>
// CHECK-NEXT:    bngrad.element_cast %{{.+}} : memref<9223372036854775807xf64> to memref<?xi1>
// CHECK-NEXT:    bngrad.element_cast %{{.+}} : memref<6xf32> to memref<3xi64>
func.func @element_casts(%mask: memref<?x8xi1, strided<[16, 1], offset: ?>>, %half: memref<?xbf16, 3>,
                         %huge: memref<9223372036854775807xf64>, %single: memref<6xf32>) {
  %0 = bngrad.element_cast %mask : memref<?x8xi1, strided<[16, 1], offset: ?>> to memref<?x8xi8, strided<[16, 1], offset: ?>>
  %1 = bngrad.element_cast %half : memref<?xbf16, 3> to memref<?xi16, 3>
  %2 = bngrad.element_cast %huge : memref<9223372036854775807xf64> to memref<?xi1>
  %3 = bngrad.element_cast %single : memref<6xf32> to memref<3xi64>
  return
}

// CHECK-LABEL: func @num_threads
// CHECK:         bngrad.num_threads max 64 {test.value = 1 : i64}
func.func @num_threads() -> i32 {
  %0 = bngrad.num_threads max 64 {test.value = 1}
  return %0 : i32
}

// CHECK-LABEL: func @parallel
// CHECK-SAME:    %[[MANY:.+]]: i1
// CHECK:         bngrad.parallel if(%[[MANY]]) {
// CHECK-NEXT:    ^bb0(%{{.+}}: i32, %{{.+}}: i32):
// CHECK-NEXT:      bngrad.yield
// CHECK-NEXT:    }, {
// CHECK:         bngrad.parallel attributes {test.value = 1 : i64} {
func.func @parallel(%many: i1) {
  bngrad.parallel if(%many) {
  ^bb0(%thread: i32, %threads: i32):
    bngrad.yield
  }, {
  ^bb0(%thread: i32, %threads: i32):
    bngrad.yield
  }
  bngrad.parallel attributes {test.value = 1} {
  ^bb0(%thread: i32, %threads: i32):
    bngrad.yield
  }
  return
}
