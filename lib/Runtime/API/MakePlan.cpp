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
#include "ReadyCudaPlan.h"
#include "ReadyPlan.h"

using namespace bngrad;

/// Plans a problem on a GPU with a ready kernel; null, or the reason why it
/// cannot, which may be in `error`.
static const char *makeReadyCudaPlan(const Problem &problem,
                                     const bngradHandle &handle,
                                     std::unique_ptr<Plan> &plan,
                                     std::string &error) {
  const bngradCudaKernels_t *kernels =
      loadCudaKernels(handle.kind, handle.device, error);
  if (!kernels)
    return error.c_str();
  auto ready = std::make_unique<ReadyCudaPlan>();
  if (const char *reason = ready->create(problem, handle, *kernels))
    return reason;
  plan = std::move(ready);
  return nullptr;
}

/// Plans a problem that involves only this process. On a CPU, ready kernels
/// come first; on a GPU, kernels that are compiled for the sizes.
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
  std::string error, loadError;
  bngradStatus_t status = compiled->create(problem, handle, reason, error);
  plan = std::move(compiled);
  if (status == BNGRAD_COMPILER_NOT_FOUND && handle.cuda) {
    reason = makeReadyCudaPlan(problem, handle, plan, loadError);
    if (!reason)
      return BNGRAD_SUCCESS;
  }
  if (status == BNGRAD_COMPILER_NOT_FOUND)
    return fail(
        status,
        "expected a ready kernel or libBNGradCompiler.so of the package "
        "bngrad-compiler: %s, and %s",
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
