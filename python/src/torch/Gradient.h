//===- Gradient.h - calls of the C library with tensors ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_TORCH_GRADIENT_H
#define BNGRAD_PYTHON_SRC_TORCH_GRADIENT_H

#include "Plan.h"

namespace bngrad::torch {

/// Strides of a tensor of as many dims as the C library takes.
struct Strides {
  int64_t values[BNGRAD_MAX_RANK];
};

/// The strides of a tensor without gaps, else row-major ones; undefined for a
/// tensor that compute() will reject.
Strides getDenseStrides(const Tensor &tensor);

/// The strides of empty_like: input's if it is dense, else PyTorch's choice.
bool getStridesLike(const Tensor &input, Strides &strides);

/// Makes and computes the results that `problem` wants, at least one: data with
/// `strides`, other results row-major. Results that `problem` has are written
/// to; such data have `strides`. Operands are copied if no kernel takes their
/// layout.
///
/// Errors: false and the error of this thread.
bool compute(Problem &problem, const Strides &strides);

} // namespace bngrad::torch

#endif // BNGRAD_PYTHON_SRC_TORCH_GRADIENT_H
