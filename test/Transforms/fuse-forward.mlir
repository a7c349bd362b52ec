// Element-wise producers of input join both sums, the output and the first element
// of each channel, and disappear.

// RUN: bngrad-opt %s --bngrad-decompose --bngrad-fuse --canonicalize --mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: func @producer
// CHECK-SAME:    (%[[X:.+]]: tensor<8x4x6xbf16>, %[[BIAS:.+]]: tensor<4xf32>)
// CHECK-NOT:     tensor<8x4x6xf32>
// CHECK:         linalg.generic {{.*}}iterator_types = ["parallel"]
// CHECK:           %[[C:.+]] = linalg.index 0
// CHECK-DAG:       %[[X0:.+]] = tensor.extract %[[X]][%{{.+}}, %[[C]], %{{.+}}] : tensor<8x4x6xbf16>
// CHECK-DAG:       %[[B0:.+]] = tensor.extract %[[BIAS]][%[[C]]] : tensor<4xf32>
// CHECK-DAG:       %[[WIDE:.+]] = arith.extf %[[X0]]
// CHECK-DAG:       arith.addf %[[WIDE]], %[[B0]]
// CHECK:         linalg.generic {{.*}}["reduction", "parallel", "reduction"]{{.*}} ins(%[[X]], %[[BIAS]],
// CHECK:         linalg.generic {{.*}}["reduction", "parallel", "reduction"]{{.*}} ins(%[[X]], %[[BIAS]],
// CHECK:         linalg.generic {{.*}}["parallel", "parallel", "parallel"]{{.*}} ins(%[[X]], %[[BIAS]],
// CHECK:         return
func.func @producer(%x: tensor<8x4x6xbf16>, %bias: tensor<4xf32>) -> tensor<8x4x6xbf16> {
  %empty = tensor.empty() : tensor<8x4x6xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
                         iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %bias : tensor<8x4x6xbf16>, tensor<4xf32>) outs(%empty : tensor<8x4x6xf32>) {
  ^bb0(%x_e: bf16, %bias_e: f32, %out: f32):
    %wide = arith.extf %x_e : bf16 to f32
    %0 = arith.addf %wide, %bias_e : f32
    linalg.yield %0 : f32
  } -> tensor<8x4x6xf32>
  %0:4 = bngrad.batch_norm_training input(%sum : tensor<8x4x6xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<8x4x6xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  return %0#0 : tensor<8x4x6xbf16>
}

// A producer that is needed in memory is read there.
// CHECK-LABEL: func @producer_used
// CHECK-SAME:    (%[[X:.+]]: tensor<8x4xf32>)
// CHECK:         %[[NEG:.+]] = linalg.generic
// CHECK:           arith.negf
// CHECK:         tensor.extract %[[NEG]][
// CHECK:         linalg.generic {{.*}}["reduction", "parallel"]{{.*}} ins(%[[NEG]],
// CHECK:         linalg.generic {{.*}}["reduction", "parallel"]{{.*}} ins(%[[NEG]],
// CHECK:         return %{{.+}}, %[[NEG]]
func.func @producer_used(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %empty = tensor.empty() : tensor<8x4xf32>
  %neg = linalg.negf ins(%x : tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>) -> tensor<8x4xf32>
  %0:4 = bngrad.batch_norm_training input(%neg : tensor<8x4xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  return %0#0, %neg : tensor<8x4xf32>, tensor<8x4xf32>
}
