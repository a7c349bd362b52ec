//===- Split.h - a gradient as its two halves ----------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_TOLINALG_SPLIT_H
#define BNGRAD_LIB_TRANSFORMS_TOLINALG_SPLIT_H

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
/// into those of the whole batch. Each function is called at most once.
struct WholeBatch {
  /// The sums of the whole batch, from the sums of the part.
  function_ref<Value(Value)> getSums;
  /// M of the whole batch as a tensor<i64>, from M of the part.
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

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_TOLINALG_SPLIT_H
