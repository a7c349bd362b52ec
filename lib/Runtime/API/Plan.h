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

#include "BNGrad/Dialect/Alignment.h"

#include <cstddef>
#include <memory>

namespace bngrad {

using mlir::bngrad::alignUp;
using mlir::bngrad::kBufferAlignment;

/// The data of one call.
struct CallData {
  /// These include the addresses of scalars.
  void *data[kNumOperands];
  /// Starts at a multiple of kBufferAlignment.
  char *workspace;
  const bngrad_threads_t *threads;
  /// The CUDA stream.
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

  /// Computes all gradients, or submits that work to the GPU.
  virtual bngradStatus_t run(const CallData &call) const = 0;

  /// Computes all gradients, and reports each that is wanted: grad_offset,
  /// grad_scale, grad_input. The last report may destroy this plan.
  virtual bngradStatus_t runInSteps(const CallData &call, Done done) const = 0;

  /// Adds lines about the kernel and its loops. `threads` is null if unknown.
  virtual void describe(const bngrad_threads_t *threads,
                        Description &description) const = 0;

protected:
  size_t workspaceSize = 0;
};

/// Plans the problem with a ready kernel or a compiled one; with a process
/// group, as two halves.
bngradStatus_t makePlan(const Problem &problem, const bngradHandle &handle,
                        std::unique_ptr<Plan> &plan);

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_PLAN_H
