//===- CompiledPlan.cpp - gradients by compiled kernels -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompiledPlan.h"

#include <algorithm>

using namespace bngrad;

bngradStatus_t CompiledPlan::createSteps(const Problem &problem,
                                         const bngradHandle &handle,
                                         std::string &error) {
  if (problem.isBatch) {
    sumsBytes = alignUp(static_cast<size_t>(makeSums(problem).bytes));
    for (int dim = 0; dim < problem.tensors[Input].rank; ++dim)
      if (!problem.isFeatureDim(dim))
        count *= problem.tensors[Input].shape[dim];
  }
  Problem step = problem.makePart(problem.op, {GradScale, GradOffset, Sums});
  step.has[Sums] = problem.isBatch;
  if (bngradStatus_t status = first.create(step, handle, error))
    return status;
  step = problem.makePart(problem.isBatch ? OpKind::BackwardElemt : problem.op,
                          {GradInput});
  return second.create(step, handle, error);
}

bngradStatus_t CompiledPlan::create(const Problem &problem,
                                    const bngradHandle &handle,
                                    const char *whyCompiled,
                                    std::string &error) {
  reason = whyCompiled;
  std::copy_n(problem.has, kNumOutputs, has);
  chip = handle.chip;
  if (bngradStatus_t status = all.create(problem, handle, error))
    return status;
  workspaceSize = all.getWorkspaceSize();
  hasSteps = problem.isAsynchronous && !handle.cuda && has[GradInput] &&
             (has[GradScale] || has[GradOffset]);
  if (!hasSteps)
    return BNGRAD_SUCCESS;
  if (bngradStatus_t status = createSteps(problem, handle, error))
    return status;
  workspaceSize =
      std::max(workspaceSize, sumsBytes + std::max(first.getWorkspaceSize(),
                                                   second.getWorkspaceSize()));
  return BNGRAD_SUCCESS;
}

bngradStatus_t CompiledPlan::run(const CallData &call) const {
  return all.run(call);
}

bngradStatus_t CompiledPlan::runInSteps(const CallData &call, Done done) const {
  // Copies, as the last report may destroy this plan.
  bool wantsInput = has[GradInput], wantsScale = has[GradScale],
       wantsOffset = has[GradOffset], inSteps = hasSteps;
  CallData step = call;
  if (inSteps) {
    step.data[Sums] = call.workspace;
    // The kernel only reads it.
    step.data[Count] = const_cast<int64_t *>(&count);
    step.workspace += sumsBytes;
  }
  if (bngradStatus_t status = inSteps ? first.run(step) : all.run(call))
    return status;
  if (wantsOffset)
    done(GradOffset);
  if (wantsScale)
    done(GradScale);
  if (inSteps)
    if (bngradStatus_t status = second.run(step))
      return status;
  if (wantsInput)
    done(GradInput);
  return BNGRAD_SUCCESS;
}

void CompiledPlan::describe(const bngrad_threads_t * /*threads*/,
                            Description &description) const {
  description.add("kernel", "compiled");
  if (!chip.empty())
    description.add("chip", chip.c_str());
  description.add("reason", reason);
}
