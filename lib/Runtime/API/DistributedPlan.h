//===- DistributedPlan.h - gradients of a spread batch ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_DISTRIBUTEDPLAN_H
#define BNGRAD_LIB_RUNTIME_API_DISTRIBUTEDPLAN_H

#include "Handle.h"
#include "Plan.h"
#include "ProcessGroup.h"

#include <string>

namespace bngrad {

/// Computes the gradient of a batch that is spread over processes: the sums of
/// this process, then two concurrent all-reduces, of the sums and of the number
/// of elements, then grad_input from the totals.
class DistributedPlan : public Plan {
public:
  /// Whether `problem`, which has a process group, needs no other process.
  static bool isLocal(const Problem &problem);

  /// `makeLocalPlan` plans the work within this process.
  bngradStatus_t
  create(const Problem &problem, const bngradHandle &handle,
         bngradStatus_t (*makeLocalPlan)(const Problem &problem,
                                         const bngradHandle &handle,
                                         std::unique_ptr<Plan> &plan));

  bngradStatus_t run(const CallData &call) const override;
  /// grad_scale and grad_offset are final before grad_input is computed.
  bngradStatus_t runInSteps(const CallData &call, Done done) const override;
  void describe(const bngrad_threads_t *threads,
                Description &description) const override;

private:
  /// The parts of a workspace and, for a GPU, their host copies.
  struct Buffers {
    char *sums, *count, *rest;
    std::unique_ptr<char[]> host;
    char *hostSums, *localSums, *statistic, *result;
    int64_t hostCount;
  };
  bngradStatus_t allocate(const CallData &call, Buffers &buffers) const;
  bngradStatus_t computeSums(const CallData &call, Buffers &buffers) const;
  bngradStatus_t reduceSums(Buffers &buffers) const;
  int64_t start(const char *what, int64_t dtype, void *data,
                int64_t numElements) const;
  bngradStatus_t computeInput(const CallData &call, Buffers &buffers) const;
  bngradStatus_t computeParameter(const CallData &call, Buffers &buffers,
                                  Operand operand) const;
  void storeParameter(Operand operand, const char *sums, const char *statistic,
                      char *result) const;
  bngradStatus_t copy(const CallData &call, void *to, const void *from,
                      size_t size) const;
  bngradStatus_t verifyStrides() const;
  void writeOp();

  /// Whether sums of all processes are needed.
  bool needsTotal() const;

  Problem problem;
  /// `input` is null if grad_input is not wanted.
  std::unique_ptr<Plan> reduce, input;
  /// Null on a CPU.
  const CudaLibrary *cuda = nullptr;
  int device = 0;
  int64_t channels = 1;
  size_t sumsBytes = 0;
  /// The op in the headers that the processes compare.
  std::string op;
};

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_DISTRIBUTEDPLAN_H
