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

/// A builder of the parts of `op`.
GradientBuilder makeGradientBuilder(OpBuilder &b, GradientOpInterface op);

/// Replaces the results of `op` by `values`, null where a result is unused.
void replaceResults(RewriterBase &rewriter, Operation *op,
                    ArrayRef<Value> values);

/// Which results of a gradient something uses.
struct UsedResults {
  bool gradInput = false, gradScale = false, gradOffset = false;

  bool anyOfChannel() const { return gradScale || gradOffset; }
};

/// How the sums and the count of an op become those of the whole batch, of
/// which its operands are a part. The functions are called once at most.
struct WholeBatch {
  /// The sums of the whole batch, from those of the part.
  function_ref<Value(Value)> getSums;
  /// M of the whole batch as a tensor<i64>, from that of the part.
  function_ref<Value(Value)> getCount;
  /// M of the whole batch if it is known not to be 0.
  std::optional<int64_t> count;
  /// grad_scale and grad_offset are those of the part.
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
