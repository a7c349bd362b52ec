//===- ReadyPlan.h - gradients by the ready kernels -------------*- C++ -*-===//
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

/// Computes a gradient by the ready kernels. They take dense parameters in the
/// type of arithmetic, and an inv_std. Other parameters are first converted to
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
  /// The parameters of kernels that are vectors over the channels.
  enum Table {
    ScaleTable,
    MeanTable,
    InvStdTable,
    GradScaleTable,
    GradOffsetTable,
    OnesTable,
    SumsTable, // rows: sums of grad_output, of grad_output * (x - mean)
    kNumTables
  };
  /// The operands that a kernel accesses besides grad_output and input.
  struct Uses {
    bool scale, mean, invStd, gradInput, gradScale, gradOffset;
  };
  static Uses getUses(bngradKernelKind_t kind);
  /// What a kernel reads and writes per channel, and the number of elements per
  /// channel.
  struct Vectors {
    void *scale, *mean, *invStd, *gradScale, *gradOffset, *sums;
    const int64_t *count;
  };

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
  void addTable(Table table, int64_t rows = 1);
  bool isDirect(const Problem &problem, Operand operand) const;

  /// Null if there is none.
  char *getTable(const CallData &call, Table table) const;
  /// The vector that a kernel reads or writes: the caller's or a table.
  void *getVector(const CallData &call, Operand operand, Table table) const;
  void fillOnes(char *table) const;
  void convert(bngradPackedFunction_t function, void *from, int64_t fromStride,
               void *to, int64_t toStride) const;
  void prepare(const CallData &call, const Uses &uses) const;
  void finish(const CallData &call, Operand operand) const;
  Vectors getVectors(const CallData &call) const;
  bngradStatus_t runKernel(const CallData &call, bngradKernelKind_t kind,
                           const Vectors &vectors,
                           size_t *size = nullptr) const;
  bngradStatus_t runReduce(const CallData &call, char *sums) const;
  bngradStatus_t runSums(const CallData &call) const;

  const bngradKernels_t *kernels;
  Layout layout;
  Part part;
  double epsilon;
  float epsilonF32;
  bool isBatch, isInvStd, isF64;
  bool has[kNumOperands];
  bngradDtype_t type; // of the data
  bngradDtype_t types[kNumOperands];
  bool direct[kNumOperands];
  int64_t offsets[kNumTables]; // in the workspace; -1: none
  int64_t kernelOffset;
};

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_READYPLAN_H
