//===- Plan.h - descriptors of the C library, kept for later calls -*- C++ -*-//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_TORCH_PLAN_H
#define BNGRAD_PYTHON_SRC_TORCH_PLAN_H

#include "Shim.h"

namespace bngrad::torch {

/// The handle of all calls, which lives as long as the process. Null and the
/// error of this thread if the C library refuses one, as for a bad BNGRAD_ISA.
bngradHandle_t getHandle();

/// The function of the C library.
enum class Function : int64_t { Gradient, Reduce, Elemt };

/// A call of the C library: its tensors, in the order of the whole gradient's
/// arguments, and options.
struct Problem {
  enum Operand {
    GradInput,
    GradScale,
    GradOffset,
    GradOutput,
    Input,
    Scale,
    Mean,
    Statistic,
    Mask,
    Sums,
    kNumOperands
  };

  Function function;
  const bngradBatchNormBackwardOptions_t &options;
  /// Some may be none.
  const Tensor *tensors[kNumOperands];
};

/// What a call of the C library needs for tensors of certain types, shapes and
/// strides. It stays valid until the thread's next getPlan().
struct Plan {
  bngradBatchNormBackwardDescriptor_t descriptor = nullptr;
  size_t workspaceSize = 0;
};

/// The plan of a problem: one of the last of this thread, or a new one. Null
/// and the error of this thread if the C library refuses it.
const Plan *getPlan(const Problem &problem);

/// Computes `problem` by its plan; `count` is that of Function::Elemt.
bool run(const Problem &problem, const int64_t *count = nullptr);

} // namespace bngrad::torch

#endif // BNGRAD_PYTHON_SRC_TORCH_PLAN_H
