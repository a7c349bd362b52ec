//===- MakePlan.cpp - the choice of a plan --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompiledPlan.h"
#include "DistributedPlan.h"
#include "Error.h"
#include "ReadyPlan.h"

using namespace bngrad;

/// Plans a problem that involves only this process.
static bngradStatus_t makeLocalPlan(const Problem &problem,
                                    const bngradHandle &handle,
                                    std::unique_ptr<Plan> &plan) {
  const char *reason = "kernels for GPUs are compiled";
  if (!handle.cuda) {
    auto ready = std::make_unique<ReadyPlan>();
    reason = ready->create(problem, handle.kernels);
    if (!reason) {
      plan = std::move(ready);
      return BNGRAD_SUCCESS;
    }
  }
  auto compiled = std::make_unique<CompiledPlan>();
  std::string error;
  bngradStatus_t status = compiled->create(problem, handle, reason, error);
  plan = std::move(compiled);
  if (status == BNGRAD_COMPILER_NOT_FOUND)
    return fail(status,
                "expected a ready kernel or libBNGradCompiler.so: %s, and %s",
                reason, error.c_str());
  if (status != BNGRAD_SUCCESS)
    return fail(status, "%s", error.c_str());
  return status;
}

bngradStatus_t bngrad::makePlan(const Problem &problem,
                                const bngradHandle &handle,
                                std::unique_ptr<Plan> &plan) {
  if (!problem.group || DistributedPlan::isLocal(problem))
    return makeLocalPlan(problem, handle, plan);
  auto distributed = std::make_unique<DistributedPlan>();
  bngradStatus_t status = distributed->create(problem, handle, makeLocalPlan);
  plan = std::move(distributed);
  return status;
}
