//===- Gradient.h - calls of the C library with tensors ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_TORCH_GRADIENT_H
#define BNGRAD_PYTHON_SRC_TORCH_GRADIENT_H

#include "Shim.h"

namespace bngrad::torch {

/// The operands of a gradient or of one of its halves. An empty Tensor is
/// absent.
struct Operands {
  Tensor gradOutput, input, scale, mean, statistic, mask, sums, count;
  bngradBatchNormBackwardOptions_t options = {};
};

struct Results {
  Tensor gradInput, gradScale, gradOffset;
};

/// Strides of a tensor of as many dims as the C library takes.
struct Strides {
  int64_t values[BNGRAD_MAX_RANK];
};

/// Computes the gradients that `wants` names, at least one. grad_input gets
/// `strides`, grad_scale and grad_offset the type and the shape of mean. Data
/// are copied if no ready kernel takes their layout.
///
/// Errors: false and the error of this thread; then there are no results.
bool computeGradient(Operands &operands, const bool (&wants)[3],
                     const Strides &strides, Results &results);

/// Computes sums, of shape (2, <feature dims>), in f32, or in f64 for f64 data.
bool computeSums(Operands &operands, Tensor &sums);

/// Computes grad_input, with `strides`, from `sums` and `count`.
bool computeFromSums(Operands &operands, const Strides &strides,
                     Tensor &gradInput);

} // namespace bngrad::torch

#endif // BNGRAD_PYTHON_SRC_TORCH_GRADIENT_H
