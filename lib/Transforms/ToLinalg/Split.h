//===- Split.h - ops as their parts --------------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_TOLINALG_SPLIT_H
#define BNGRAD_LIB_TRANSFORMS_TOLINALG_SPLIT_H

#include "ForwardBuilder.h"
#include "GradientBuilder.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::bngrad {

FloatType getFloatType(Value value);

/// Replaces the results of `op` by `values`, null for an unused result.
void replaceResults(RewriterBase &rewriter, Operation *op,
                    ArrayRef<Value> values);

/// Which results of a gradient something uses.
struct UsedResults {
  bool gradInput = false, gradScale = false, gradOffset = false;

  bool anyOfChannel() const { return gradScale || gradOffset; }
};

/// Turns the sums and the count of a part of a batch, the operands of an op,
/// into those of the whole batch.
struct WholeBatch {
  /// Sums over the whole batch, from those over the part. Called once for a
  /// gradient, and twice for training.
  function_ref<Value(Value)> getSums;
  /// M of the whole batch as a tensor<i64>, from M of the part. Called at most
  /// once.
  function_ref<Value(Value)> getCount;
  /// M of the whole batch if it is known not to be 0.
  std::optional<int64_t> count;
  /// Whether grad_scale and grad_offset cover only the part.
  bool isChannelLocal = false;
};

/// Builds the two halves of `op`, and per-channel linalg for grad_scale and
/// grad_offset. Returns the value of each result, null if it is unused.
///
/// Source: docs/mathematics.md, section 7.
std::array<Value, 3> buildHalves(OpBuilder &b, BatchNormBackwardOp op,
                                 const UsedResults &used,
                                 const WholeBatch &whole);

/// Builds `op` from the sums of `batch_norm_training_reduce`, per-channel
/// linalg and `batch_norm_inference`. Returns the value of each result, null if
/// it is not requested. If `whole` is null, the batch is that of `op`.
///
/// Source: docs/mathematics.md, section 10.
std::array<Value, 4> buildTrainingParts(OpBuilder &b, BatchNormTrainingOp op,
                                        const TrainingRequest &request,
                                        const WholeBatch *whole);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_TOLINALG_SPLIT_H
