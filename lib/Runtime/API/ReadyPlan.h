//===- ReadyPlan.h - ops by the ready kernels -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_READYPLAN_H
#define BNGRAD_LIB_RUNTIME_API_READYPLAN_H

#include "Plan.h"

#include "../Kernels/Kernels.h"

namespace bngrad {

/// Computes an op by the ready kernels. They take dense parameters in the
/// accumulator type, and an inv_std. Other parameters are first converted to
/// tables in the workspace, and results are converted back.
class ReadyPlan : public Plan {
public:
  /// Plans `problem`. Null on success, otherwise the reason why it cannot.
  const char *create(const Problem &problem, const bngradKernels_t *kernels);

  bngradStatus_t run(const CallData &call) const override;
  /// grad_scale and grad_offset are final before grad_input is computed.
  bngradStatus_t runInSteps(const CallData &call, Done done) const override;
  void describe(const bngrad_threads_t *threads,
                Description &description) const override;

private:
  /// A kind of kernel. A set of roles has a bit for each.
  struct Kernel {
    OpKind op;
    unsigned results, parameters;

    bool has(Operand result) const { return results >> result & 1; }
  };
  static const Kernel &getKernel(bngradKernelKind_t kind);
  /// A table of ones, in addition to the tables of operands.
  static constexpr int kOnes = kNumOperands;

  /// How often the loops read or write each operand.
  struct Passes {
    int counts[kNumOperands];
  };
  Passes countPasses() const;
  void describeLoops(const bngrad_threads_t *threads,
                     Description &description) const;

  int64_t getRowBytes() const { return layout.channels * (isF64 ? 8 : 4); }
  /// Whether a call in steps computes grad_input after other gradients.
  bool isInSteps() const {
    return has[GradInput] && (has[GradScale] || has[GradOffset]);
  }
  bngradKernelKind_t choose() const;
  bngradKernelKind_t chooseFirstStep() const;
  void addTables();
  void addTable(int table, int64_t rows = 1);
  bool isDirect(const Problem &problem, Operand operand) const;

  /// Null if there is none.
  char *getTable(const CallData &call, int table) const;
  void fill(char *table, double value) const;
  void convert(bngradPackedFunction_t function, void *from, int64_t fromStride,
               void *to, int64_t toStride) const;
  /// Fills the tables of the operands in `parameters`.
  void prepare(const CallData &call, unsigned parameters) const;
  void finish(const CallData &call) const;
  void update(const CallData &call) const;
  /// The call with the vectors that a kernel reads or writes: the caller's or
  /// tables.
  CallData getVectors(const CallData &call) const;
  bngradStatus_t runKernel(const CallData &vectors, bngradKernelKind_t kind,
                           size_t *size = nullptr) const;
  bngradStatus_t runReduce(CallData vectors, char *sums) const;
  bngradStatus_t runSums(const CallData &call) const;
  bngradStatus_t runLastStep(const CallData &call) const;

  const bngradKernels_t *kernels;
  Layout layout;
  OpKind op;
  double epsilon;
  float epsilonF32;
  Problem::UpdateFactors factors; // of running statistics
  bool isBatch, isInvStd, isF64;
  bool has[kNumOperands];
  bngradDtype_t type; // of the data
  bngradDtype_t types[kNumOperands];
  /// Whether kernels have a vector over the channels for an operand, and
  /// whether it is the caller's.
  bool hasVector[kNumOperands], direct[kNumOperands];
  int64_t offsets[kNumOperands + 1]; // of tables in the workspace; -1: none
  int64_t kernelOffset;
};

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_READYPLAN_H
