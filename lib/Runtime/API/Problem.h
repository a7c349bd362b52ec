//===- Problem.h - a described op ----------------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_PROBLEM_H
#define BNGRAD_LIB_RUNTIME_API_PROBLEM_H

#include "../Operands.h"
#include "Tensor.h"

#include <array>
#include <initializer_list>

namespace bngrad {

/// An op that was verified.
struct Problem {
  OpKind op;
  bool has[kNumOperands];
  Tensor tensors[kNumOperands];
  double epsilon;
  bool isBatch;
  bool isInvStd;
  /// The momentum of the running statistics, and whether the running variance
  /// is unbiased (with M - 1).
  double momentum;
  bool isUnbiased;
  /// Whether asynchronous calls are expected.
  bool isAsynchronous;
  int numFeatureDims;
  int featureDims[BNGRAD_MAX_FEATURE_DIMS];
  /// The accumulator type.
  bngradDtype_t accumulator;
  /// Null if only this process takes part.
  bngradProcessGroup_t group;
  /// Whether grad_scale and grad_offset cover only this process's batch.
  bool hasLocalParameters;

  bool isFeatureDim(int dim) const;
  /// M.
  int64_t countPerChannel() const;
  /// The factors of the old running statistics, and of the mean and the
  /// variance of the batch that enter them.
  struct UpdateFactors {
    double kept, mean, variance;
  };
  UpdateFactors getUpdateFactors() const;
  bool hasUpdate() const { return has[RunningMean] || has[RunningVariance]; }
  bool isOutput(int operand) const { return bngrad::isOutput(op, operand); }

  /// The problem of computing `part` within this one, for those of `results`
  /// that are wanted, or that pass between the parts. Operands that only `part`
  /// has come from another part.
  Problem makePart(OpKind part, std::initializer_list<Operand> results) const;
};

/// Checks options, null for the defaults, and sets them. The problem has its
/// op.
bngradStatus_t setOptions(const bngradBatchNormBackwardOptions_t *options,
                          Problem &problem);
bngradStatus_t setOptions(const bngradBatchNormTrainingOptions_t *options,
                          Problem &problem);
bngradStatus_t setOptions(const bngradBatchNormInferenceOptions_t *options,
                          Problem &problem);

/// Checks the options (null for the defaults) and the tensors, and makes a
/// problem of them.
template <typename Options>
bngradStatus_t
makeProblem(OpKind op, const Options *options,
            const std::array<const Tensor *, kNumOperands> &tensors,
            Problem &problem);

/// Dense data as (outer, channels, inner), and the strides of the parameters as
/// vectors over the channels.
struct Layout {
  int64_t outer, channels, inner;
  int64_t strides[kNumOperands]; // of per-channel tensors and rows of sums
};

/// The sums of `problem`, row-major.
Tensor makeSums(const Problem &problem);

/// The tensor of an operand without the first dim of sums.
Tensor getRow(const Problem &problem, int operand);

/// Finds the layout of the data; null, or the reason why there is none.
const char *findLayout(const Problem &problem, Layout &layout);

/// A descriptor of MLIR's memrefs, as the parameters of ready kernels are: of
/// rank 3 at most.
struct ReadyMemRef {
  void *allocated, *aligned;
  int64_t offset;
  /// `rank` sizes, then `rank` strides.
  int64_t sizesAndStrides[6];
};

/// The memref of an operand in a ready kernel, whose vectors have no gaps.
ReadyMemRef makeReadyMemRef(const Layout &layout, int operand, void *data);

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_PROBLEM_H
