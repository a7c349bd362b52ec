//===- Plan.h - gradients described to the C library ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_JAX_PLAN_H
#define BNGRAD_PYTHON_SRC_JAX_PLAN_H

#include "BNGrad/Runtime/Runtime.h"

#include <cstddef>
#include <memory>

namespace bngrad::jax {

/// The functions of the C library.
enum class Function { Backward, Reduce, Elemt };

/// The tensors of all functions. `Sums` is the result of Reduce and an operand
/// of Elemt.
enum Slot {
  GradInput,
  GradScale,
  GradOffset,
  Sums,
  GradOutput,
  Input,
  Scale,
  Mean,
  Statistic,
  Mask,
  kNumSlots,
};

/// A row-major tensor, without the dims that are added by `jax.vmap`.
struct Shape {
  bngradDtype_t dtype;
  int rank; // at most BNGRAD_MAX_RANK
  const int64_t *sizes;
};

/// One gradient.
struct Problem {
  Function function;
  bngradBatchNormBackwardOptions_t options;
  bool has[kNumSlots];
  Shape shapes[kNumSlots];
};

/// A problem that the C library has checked and planned. Calls do not change
/// it.
class Plan {
public:
  explicit Plan(Function function) : function(function) {}
  ~Plan();
  Plan(const Plan &) = delete;
  Plan &operator=(const Plan &) = delete;

  /// The plan of `problem`, of an earlier call or new.
  ///
  /// Errors: that of bngradGetLastError(), and `plan` as it was. Throws
  /// std::bad_alloc.
  static bngradStatus_t find(const Problem &problem,
                             std::shared_ptr<const Plan> &plan);

  size_t getWorkspaceSize() const { return workspaceSize; }

  /// Calls the C library; `count` is an operand of Elemt.
  bngradStatus_t run(void *workspace, void *const (&data)[kNumSlots],
                     const int64_t *count) const;

private:
  bngradStatus_t create(const Problem &problem);

  const Function function;
  bngradBatchNormBackwardDescriptor_t descriptor = nullptr;
  size_t workspaceSize = 0;
};

} // namespace bngrad::jax

#endif // BNGRAD_PYTHON_SRC_JAX_PLAN_H
