//===- Plan.h - how a gradient is computed ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_PLAN_H
#define BNGRAD_LIB_RUNTIME_API_PLAN_H

#include "Description.h"
#include "Problem.h"

#include <cstddef>
#include <memory>

namespace bngrad {

/// The alignment of a workspace and of its parts, in bytes: a line of the
/// cache, which the kernels require.
inline constexpr size_t kWorkspaceAlignment = 64;

/// The least multiple of that alignment from `bytes` on.
constexpr size_t alignUp(size_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment *
         kWorkspaceAlignment;
}

/// The data of one call.
struct CallData {
  void *data[kNumOperands];
  /// Elements per channel, of the half elemt.
  const int64_t *count;
  /// Starts at a multiple of kWorkspaceAlignment.
  char *workspace;
  const bngrad_threads_t *threads;
  /// Of CUDA.
  void *stream;
};

/// The function to call when a gradient is final.
struct Done {
  void (*function)(void *context, Operand operand);
  void *context;

  void operator()(Operand operand) const { function(context, operand); }
};

/// How a gradient is computed. Calls do not change it.
class Plan {
public:
  virtual ~Plan() = default;

  /// The size of the workspace in bytes.
  size_t getWorkspaceSize() const { return workspaceSize; }

  /// Computes all gradients, or on a GPU submits that.
  virtual bngradStatus_t run(const CallData &call) const = 0;

  /// Computes all gradients, and reports each that is wanted: grad_offset,
  /// grad_scale, grad_input. The last report may destroy this plan.
  virtual bngradStatus_t runInSteps(const CallData &call, Done done) const = 0;

  /// Adds lines about the kernel and its loops. `threads` null: not known.
  virtual void describe(const bngrad_threads_t *threads,
                        Description &description) const = 0;

protected:
  size_t workspaceSize = 0;
};

/// Plans the problem: by a ready kernel, or by one that is compiled; with a
/// process group, by both halves.
bngradStatus_t makePlan(const Problem &problem, const bngradHandle &handle,
                        std::unique_ptr<Plan> &plan);

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_PLAN_H
