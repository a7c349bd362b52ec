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
    count = problem.countPerChannel();
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
  op = problem.op;
  std::copy_n(problem.has, kNumOperands, has);
  chip = handle.chip;
  if (bngradStatus_t status = all.create(problem, handle, error))
    return status;
  workspaceSize = all.getWorkspaceSize();
  hasSteps = problem.isAsynchronous && op == OpKind::Backward && !handle.cuda &&
             has[GradInput] && (has[GradScale] || has[GradOffset]);
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
  // These are copies, because the last report may destroy this plan.
  bool isReported[kNumOperands];
  for (int i = 0; i < kNumOperands; ++i)
    isReported[i] = has[i] && isWritten(op, i);
  bool inSteps = hasSteps;
  const OpKind kind = op;
  CallData step = call;
  if (inSteps) {
    step.data[Sums] = call.workspace;
    // The kernel only reads it.
    step.data[Count] = const_cast<int64_t *>(&count);
    step.workspace += sumsBytes;
  }
  if (bngradStatus_t status = inSteps ? first.run(step) : all.run(call))
    return status;
  bngradStatus_t status = BNGRAD_SUCCESS;
  forEachWritten(kind, [&](Operand operand) {
    if (inSteps && operand == GradInput)
      status = second.run(step);
    if (status == BNGRAD_SUCCESS && isReported[operand])
      done(operand);
  });
  return status;
}

void CompiledPlan::describe(const bngrad_threads_t * /*threads*/,
                            Description &description) const {
  description.add("kernel", "compiled");
  if (!chip.empty())
    description.add("chip", chip.c_str());
  description.add("reason", reason);
}
