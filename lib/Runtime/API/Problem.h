//===- Problem.h - a described gradient ----------------------- -*- C++ -*-===//
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

namespace bngrad {

/// A gradient that was verified.
struct Problem {
  Part part;
  bool has[kNumOperands];
  Tensor tensors[kNumOperands];
  double epsilon;
  bool isBatch;
  bool isInvStd;
  /// Whether asynchronous calls are expected.
  bool isAsynchronous;
  int numFeatureDims;
  int featureDims[BNGRAD_MAX_FEATURE_DIMS];
  /// The type of arithmetic.
  bngradDtype_t accumulator;
  /// Null if only this process takes part.
  bngradProcessGroup_t group;
  /// Whether grad_scale and grad_offset cover only this process's batch.
  bool hasLocalParameters;

  bool isFeatureDim(int dim) const;
  bool isOutput(Operand operand) const {
    return bngrad::isOutput(part, operand);
  }
};

/// Checks the options (null for the defaults) and the tensors, and makes a
/// problem of them.
bngradStatus_t makeProblem(Part part,
                           const bngradBatchNormBackwardOptions_t *options,
                           const Tensor *const (&tensors)[kNumOperands],
                           Problem &problem);

/// Dense data as (outer, channels, inner), and the strides of the parameters as
/// vectors over the channels.
struct Layout {
  int64_t outer, channels, inner;
  int64_t strides[kNumOperands]; // of scale to statistic and of their gradients
};

/// The sums of `problem`, row-major.
Tensor makeSums(const Problem &problem);

/// A row of the sums.
Tensor getRow(const Tensor &sums);

/// Finds the layout of the data; null, or the reason why there is none.
const char *findLayout(const Problem &problem, Layout &layout);

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_PROBLEM_H
