// RUN: bngrad-opt %s --bngrad-expand-views --split-input-file --verify-diagnostics

// Each pipeline begins with this pass, before any canonicalization, which would read before the shape.

func.func @negative_dim_of_buffer(%m: memref<8x8xf32>) -> index {
  %n = arith.constant -1 : index
  // expected-error @below {{'memref.dim' op expected the index of a dim to be at least 0, got -1}}
  %0 = memref.dim %m, %n : memref<8x8xf32>
  return %0 : index
}

// -----

func.func @negative_dim(%t: tensor<8x8xf32>) -> index {
  %n = arith.constant -1 : index
  // expected-error @below {{'tensor.dim' op expected the index of a dim to be at least 0, got -1}}
  %0 = tensor.dim %t, %n : tensor<8x8xf32>
  return %0 : index
}
