//===- CompiledPlan.h - ops by compiled kernels -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_COMPILEDPLAN_H
#define BNGRAD_LIB_RUNTIME_API_COMPILEDPLAN_H

#include "CompiledCall.h"
#include "Plan.h"

#include <string>

namespace bngrad {

/// Computes an op by compiled kernels: one for all results and, for a gradient
/// on request, two for the steps of asynchronous calls.
class CompiledPlan : public Plan {
public:
  /// `reason`, a literal, says why no ready kernel covers the problem.
  ///
  /// Errors: those of findCompiledKernel.
  bngradStatus_t create(const Problem &problem, const bngradHandle &handle,
                        const char *reason, std::string &error);

  bngradStatus_t run(const CallData &call) const override;
  /// Without steps, all results become final at the end.
  bngradStatus_t runInSteps(const CallData &call, Done done) const override;
  void describe(const bngrad_threads_t *threads,
                Description &description) const override;

private:
  bngradStatus_t createSteps(const Problem &problem, const bngradHandle &handle,
                             std::string &error);

  CompiledCall all;
  const char *reason = "";
  /// The GPU's chip; empty on a CPU.
  std::string chip;
  bool hasSteps = false;
  /// `first` computes grad_scale and grad_offset and, with batch statistics,
  /// the sums at the start of the workspace; `second`, grad_input from them.
  CompiledCall first, second;
  size_t sumsBytes = 0;
  int64_t count = 1; // elements per channel
  OpKind op = OpKind::Backward;
  bool has[kNumOperands] = {};
};

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_COMPILEDPLAN_H
