// Upstream's verifier compares only the lower 32 bits of the indices of reshapes of tensors. The pipelines, and all passes
// that use these indices or fold ops, check them.

// RUN: bngrad-opt %s --split-input-file --bngrad-expand-views --verify-diagnostics
// RUN: bngrad-opt %s --split-input-file --bngrad-fold-transpose --verify-diagnostics
// RUN: bngrad-opt %s --split-input-file --bngrad-fuse --verify-diagnostics
// RUN: bngrad-opt %s --split-input-file --bngrad-prepare-bufferize --verify-diagnostics
// RUN: bngrad-opt %s --split-input-file --bngrad-add-shape-functions --verify-diagnostics
// RUN: bngrad-opt %s --split-input-file --bngrad-expand-truncf --verify-diagnostics
// RUN: bngrad-opt %s --split-input-file --bngrad-cpu-pipeline --verify-diagnostics
// RUN: bngrad-opt %s --split-input-file --bngrad-cuda-pipeline --verify-diagnostics

func.func @expand(%t: tensor<24xf32>) -> tensor<6x4xf32> {
  // expected-error @below {{'tensor.expand_shape' op expected indices of reassociation to be consecutive from 0, got 4294967296 instead of 0}}
  %0 = tensor.expand_shape %t [[4294967296, 1]] output_shape [6, 4] : tensor<24xf32> into tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}

// -----

// The first group is right.
func.func @collapse(%t: tensor<2x6x4xf32>) -> tensor<2x24xf32> {
  // expected-error @below {{'tensor.collapse_shape' op expected indices of reassociation to be consecutive from 0, got 4294967298 instead of 2}}
  %0 = tensor.collapse_shape %t [[0], [1, 4294967298]] : tensor<2x6x4xf32> into tensor<2x24xf32>
  return %0 : tensor<2x24xf32>
}

// -----

func.func @negative(%t: tensor<6x4xf32>) -> tensor<24xf32> {
  // expected-error @below {{'tensor.collapse_shape' op expected indices of reassociation to be consecutive from 0, got -4294967296 instead of 0}}
  %0 = tensor.collapse_shape %t [[-4294967296, 1]] : tensor<6x4xf32> into tensor<24xf32>
  return %0 : tensor<24xf32>
}

// -----

func.func @generic_form(%t: tensor<24xf32>) -> tensor<6x4xf32> {
  // expected-error @below {{'tensor.expand_shape' op expected indices of reassociation to be consecutive from 0, got -4294967295 instead of 1}}
  %0 = "tensor.expand_shape"(%t) <{reassociation = [[0, -4294967295]], static_output_shape = array<i64: 6, 4>}>
      : (tensor<24xf32>) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}

// -----

// Upstream would read dim 4294967296 of a type of rank 2, to fold the second reshape.
func.func @both(%t: tensor<?x?xf32>, %n: index, %k: index) -> tensor<?x?xf32> {
  // expected-error @below {{'tensor.collapse_shape' op expected indices of reassociation to be consecutive from 0, got 4294967296 instead of 0}}
  %0 = tensor.collapse_shape %t [[4294967296, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %1 = tensor.expand_shape %0 [[4294967296, 1]] output_shape [%n, %k] : tensor<?xf32> into tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// -----

// In the buffer of its result this would be computed with the sizes of those dims.
func.func @written_through(%t: tensor<6x4xf32>) -> tensor<24xf32> {
  %empty = tensor.empty() : tensor<6x4xf32>
  %0 = linalg.exp ins(%t : tensor<6x4xf32>) outs(%empty : tensor<6x4xf32>) -> tensor<6x4xf32>
  // expected-error @below {{'tensor.collapse_shape' op expected indices of reassociation to be consecutive from 0, got 4294967297 instead of 1}}
  %1 = tensor.collapse_shape %0 [[0, 4294967297]] : tensor<6x4xf32> into tensor<24xf32>
  return %1 : tensor<24xf32>
}

// -----

// Upstream's verifier rejects the others.

func.func @repeated(%t: tensor<2x6x4xf32>) -> tensor<48xf32> {
  // expected-error @below {{'tensor.collapse_shape' op expected reassociation map #0 to be valid and contiguous}}
  %0 = tensor.collapse_shape %t [[0, 0, 2]] : tensor<2x6x4xf32> into tensor<48xf32>
  return %0 : tensor<48xf32>
}

// -----

func.func @expand_buffer(%m: memref<24xf32>) -> memref<6x4xf32> {
  // expected-error @below {{'memref.expand_shape' op reassociation indices must be contiguous}}
  %0 = memref.expand_shape %m [[4294967296, 1]] output_shape [6, 4] : memref<24xf32> into memref<6x4xf32>
  return %0 : memref<6x4xf32>
}

// -----

func.func @collapse_buffer(%m: memref<6x4xf32>) -> memref<24xf32> {
  // expected-error @below {{'memref.collapse_shape' op reassociation indices must be contiguous}}
  %0 = memref.collapse_shape %m [[4294967296, 1]] : memref<6x4xf32> into memref<24xf32>
  return %0 : memref<24xf32>
}
