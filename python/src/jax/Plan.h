//===- Plan.h - problems described to the C library -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_JAX_PLAN_H
#define BNGRAD_PYTHON_SRC_JAX_PLAN_H

#include "Runtime/OpDescriptor.h"

#include <cstddef>
#include <memory>

namespace bngrad::jax {

/// A row-major tensor, without the dims that `jax.vmap` adds.
struct Shape {
  bngradDtype_t dtype;
  int rank; // at most BNGRAD_MAX_RANK
  const int64_t *sizes;
};

/// One call of the C library.
struct Problem {
  OpKind op;
  bool isCuda;
  int device; // of CUDA
  OpOptions options;
  bool has[kNumOperands];
  Shape shapes[kNumOperands];
};

/// A problem that the C library has checked and planned. Calls do not change
/// it.
class Plan {
public:
  /// Finds the plan of `problem` from an earlier call, or makes one.
  ///
  /// Errors: described by bngradGetLastError(); `plan` is unchanged. Throws
  /// std::bad_alloc.
  static bngradStatus_t find(const Problem &problem,
                             std::shared_ptr<const Plan> &plan);

  size_t getWorkspaceSize() const { return workspaceSize; }

  /// Calls the C library, on a GPU in `stream`.
  bngradStatus_t run(void *workspace, void *const (&data)[kNumOperands],
                     void *stream) const;

private:
  bngradStatus_t create(const Problem &problem);

  OpDescriptor descriptor;
  size_t workspaceSize = 0;
};

} // namespace bngrad::jax

#endif // BNGRAD_PYTHON_SRC_JAX_PLAN_H
