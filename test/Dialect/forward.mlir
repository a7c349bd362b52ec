// The ops of the forward pass: text and bytecode round-trip, canonicalization, sizes.
// RUN: bngrad-opt %s --verify-roundtrip | FileCheck %s
// RUN: bngrad-opt %s --emit-bytecode | bngrad-opt | FileCheck %s
// RUN: bngrad-opt %s --mlir-print-op-generic | bngrad-opt | FileCheck %s
// RUN: bngrad-opt %s --canonicalize | FileCheck %s --check-prefix=CANON
// RUN: bngrad-opt %s --generate-runtime-verification=verbose-level=0 --cse --canonicalize | FileCheck %s --check-prefix=VERIFY
// RUN: bngrad-opt %s --resolve-ranked-shaped-type-result-dims --cse | FileCheck %s --check-prefix=DIM

// The clauses and results in order. Swapped operands or results of one type
// would only be noticed here.
// CHECK-LABEL: func @training
// CHECK-SAME:    (%[[X:.+]]: tensor<32x8x8x64xbf16>, %[[SCALE:.+]]: tensor<64xf32>, %[[OFFSET:.+]]: tensor<64xf32>)
// CHECK-NEXT:    %[[Y:.+]], %[[MEAN:.+]], %[[VARIANCE:.+]], %[[INV_STD:.+]] = bngrad.batch_norm_training
// CHECK-SAME:      input(%[[X]] : tensor<32x8x8x64xbf16>) scale(%[[SCALE]] : tensor<64xf32>) offset(%[[OFFSET]] : tensor<64xf32>)
// CHECK-SAME:      {epsilon = 1.000000e-05 : f64, feature_dims = array<i64: 3>} : tensor<32x8x8x64xbf16>, tensor<64xf32>, tensor<64xf64>, tensor<64xf16>
// CHECK-NEXT:    return %[[Y]], %[[MEAN]], %[[VARIANCE]], %[[INV_STD]]
func.func @training(%x: tensor<32x8x8x64xbf16>, %scale: tensor<64xf32>, %offset: tensor<64xf32>)
    -> (tensor<32x8x8x64xbf16>, tensor<64xf32>, tensor<64xf64>, tensor<64xf16>) {
  %y, %mean, %variance, %inv_std = bngrad.batch_norm_training input(%x : tensor<32x8x8x64xbf16>)
      scale(%scale : tensor<64xf32>) offset(%offset : tensor<64xf32>)
      {epsilon = 1.0e-5 : f64, feature_dims = array<i64: 3>}
      : tensor<32x8x8x64xbf16>, tensor<64xf32>, tensor<64xf64>, tensor<64xf16>
  return %y, %mean, %variance, %inv_std : tensor<32x8x8x64xbf16>, tensor<64xf32>, tensor<64xf64>, tensor<64xf16>
}

// CHECK-LABEL: func @training_of_input_alone
// CHECK:         bngrad.batch_norm_training input(%{{.+}} : tensor<2x3xf32>) : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
func.func @training_of_input_alone(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<2x3xf32>) {epsilon = 0.0 : f64, feature_dims = array<i64: 1>}
      : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @inference_of_variance
// CHECK-SAME:    (%[[X:.+]]: tensor<?x3xf32>, %[[SCALE:.+]]: tensor<3xf32>, %[[OFFSET:.+]]: tensor<3xf32>, %[[MEAN:.+]]: tensor<3xf32>, %[[VARIANCE:.+]]: tensor<3xf32>)
// CHECK-NEXT:    %[[OUTPUT:.+]] = bngrad.batch_norm_inference input(%[[X]] : tensor<?x3xf32>) scale(%[[SCALE]] : tensor<3xf32>)
// CHECK-SAME:      offset(%[[OFFSET]] : tensor<3xf32>) mean(%[[MEAN]] : tensor<3xf32>) variance(%[[VARIANCE]] : tensor<3xf32>)
// CHECK-SAME:      {epsilon = 1.000000e-05 : f64} : tensor<?x3xf32>
// CHECK-NEXT:    return %[[OUTPUT]]
func.func @inference_of_variance(%x: tensor<?x3xf32>, %scale: tensor<3xf32>, %offset: tensor<3xf32>,
                                 %mean: tensor<3xf32>, %variance: tensor<3xf32>) -> tensor<?x3xf32> {
  %output = bngrad.batch_norm_inference input(%x : tensor<?x3xf32>) scale(%scale : tensor<3xf32>)
      offset(%offset : tensor<3xf32>) mean(%mean : tensor<3xf32>) variance(%variance : tensor<3xf32>)
      {epsilon = 1.0e-5 : f64} : tensor<?x3xf32>
  return %output : tensor<?x3xf32>
}

// CHECK-LABEL: func @inference_of_inv_std
// CHECK:         %output = bngrad.batch_norm_inference input(%{{.+}} : tensor<2x3xf32>) mean(%{{.+}} : tensor<3xf32>) inv_std(%{{.+}} : tensor<3xf32>) : tensor<2x3xbf16>
func.func @inference_of_inv_std(%x: tensor<2x3xf32>, %p: tensor<3xf32>) -> tensor<2x3xbf16> {
  %0 = bngrad.batch_norm_inference input(%x : tensor<2x3xf32>) mean(%p : tensor<3xf32>) inv_std(%p : tensor<3xf32>)
      : tensor<2x3xbf16>
  return %0 : tensor<2x3xbf16>
}

// CHECK-LABEL: func @training_reduce
// CHECK-SAME:    (%[[X:.+]]: tensor<4x3x5xf16>, %[[SHIFT:.+]]: tensor<3xf64>)
// CHECK-NEXT:    %[[SUM:.+]], %[[SQUARE_SUM:.+]], %[[COUNT:.+]] = bngrad.batch_norm_training_reduce input(%[[X]] : tensor<4x3x5xf16>)
// CHECK-SAME:      shift(%[[SHIFT]] : tensor<3xf64>) : tensor<3xf64>, tensor<3xf64>, tensor<i64>
// CHECK-NEXT:    return %[[SUM]], %[[SQUARE_SUM]], %[[COUNT]]
func.func @training_reduce(%x: tensor<4x3x5xf16>, %shift: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<i64>) {
  %0:3 = bngrad.batch_norm_training_reduce input(%x : tensor<4x3x5xf16>) shift(%shift : tensor<3xf64>)
      : tensor<3xf64>, tensor<3xf64>, tensor<i64>
  return %0#0, %0#1, %0#2 : tensor<3xf64>, tensor<3xf64>, tensor<i64>
}

// CHECK-LABEL: func @training_reduce_without_shift
// CHECK:         bngrad.batch_norm_training_reduce input(%{{.+}} : tensor<4x3xf16>) : tensor<3xf32>, tensor<3xf32>, tensor<i64>
func.func @training_reduce_without_shift(%x: tensor<4x3xf16>) -> tensor<3xf32> {
  %0:3 = bngrad.batch_norm_training_reduce input(%x : tensor<4x3xf16>) : tensor<3xf32>, tensor<3xf32>, tensor<i64>
  return %0#1 : tensor<3xf32>
}

// === canonicalization ===

// A cast that only forgets sizes folds, and each result gets every known size.
// CANON-LABEL: func @sizes_of_operands
// CANON-SAME:    (%[[X:.+]]: tensor<2x?x4xf32>, %[[P:.+]]: tensor<3xf32>)
// CANON:         bngrad.batch_norm_training input(%[[X]] : tensor<2x?x4xf32>) offset(%[[P]] : tensor<3xf32>)
// CANON-SAME:      : tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
func.func @sizes_of_operands(%x: tensor<2x?x4xf32>, %p: tensor<3xf32>)
    -> (tensor<?x?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %cast = tensor.cast %p : tensor<3xf32> to tensor<?xf32>
  %0:4 = bngrad.batch_norm_training input(%x : tensor<2x?x4xf32>) offset(%cast : tensor<?xf32>)
      : tensor<?x?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
  return %0#0, %0#1, %0#2, %0#3 : tensor<?x?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}

// CANON-LABEL: func @unused
// CANON-NEXT:    return
func.func @unused(%x: tensor<2x3xf32>, %p: tensor<3xf32>) {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<2x3xf32>) : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  %1 = bngrad.batch_norm_inference input(%x : tensor<2x3xf32>) mean(%p : tensor<3xf32>) inv_std(%p : tensor<3xf32>) : tensor<2x3xf32>
  %2:3 = bngrad.batch_norm_training_reduce input(%x : tensor<2x3xf32>) : tensor<3xf32>, tensor<3xf32>, tensor<i64>
  return
}

// Without elements, mean and variance are 0.
// CANON-LABEL: func @empty
// CANON-DAG:     %[[ZERO:.+]] = arith.constant dense<0.000000e+00> : tensor<3xf32>
// CANON-DAG:     %[[NOTHING:.+]] = arith.constant dense<0.000000e+00> : tensor<0x3xf32>
// CANON:         return %[[NOTHING]], %[[ZERO]], %[[ZERO]]
func.func @empty(%x: tensor<0x3xf32>) -> (tensor<0x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<0x3xf32>) : tensor<0x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %0#1, %0#2 : tensor<0x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// inv_std depends on epsilon.
// CANON-LABEL: func @empty_with_inv_std
// CANON:         bngrad.batch_norm_training
func.func @empty_with_inv_std(%x: tensor<0x3xf32>) -> tensor<3xf32> {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<0x3xf32>) {epsilon = 0.25 : f64} : tensor<0x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#3 : tensor<3xf32>
}

// === dynamic sizes ===

// VERIFY-LABEL: func @dynamic
// VERIFY-SAME:    (%[[X:.+]]: tensor<?x?xf32>, %[[S:.+]]: tensor<?xf32>, %[[O:.+]]: tensor<?xf32>)
// VERIFY:         cf.assert %{{.+}}, "{{.*}}expected size 0 of scale to be size 1 of input
// VERIFY:         cf.assert %{{.+}}, "{{.*}}expected size 0 of offset to be size 1 of input
// VERIFY-NOT:     cf.assert
// VERIFY:         bngrad.batch_norm_training
// DIM-LABEL: func @dynamic
// DIM-SAME:    (%[[X:.+]]: tensor<?x?xf32>
// DIM-DAG:     %[[C0:.+]] = arith.constant 0 : index
// DIM-DAG:     %[[C1:.+]] = arith.constant 1 : index
// DIM-DAG:     %[[N:.+]] = tensor.dim %[[X]], %[[C0]]
// DIM-DAG:     %[[C:.+]] = tensor.dim %[[X]], %[[C1]]
// DIM:         return %[[N]], %[[C]]
func.func @dynamic(%x: tensor<?x?xf32>, %s: tensor<?xf32>, %o: tensor<?xf32>) -> (index, index) {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<?x?xf32>) scale(%s : tensor<?xf32>) offset(%o : tensor<?xf32>)
      : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %0#0, %c0 : tensor<?x?xf32>
  %c = tensor.dim %0#3, %c0 : tensor<?xf32>
  return %n, %c : index, index
}
