//===- SumBounds.h - sums whose order is free ----------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNNER_SUMBOUNDS_H
#define BNGRAD_RUNNER_SUMBOUNDS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::bngrad {

/// How the compiled program adds up.
enum class SumOrder {
  /// As a schedule does: docs/numerics.md, section 4.
  Scheduled,
  /// In any order.
  Any
};

/// Whether the compiled program may compute `op` in another order than it is
/// written in: it adds up with fastmath<reassoc>.
bool isOrderFree(Operation *op);

/// A value and how far the compiled program's may be from it, an f64 tensor of
/// its shape; null: not at all.
struct BoundedValue {
  Value value, error;
};

/// Builds the results of `op` anew, each sum with its error so that only the
/// last rounding is left, and their bounds. `getError` is that of an operand,
/// as in buildErrorBounds.
///
/// `op` is a linalg.generic whose results are sums with fastmath<reassoc> of
/// values that do not depend on them, or one value per iteration.
///
/// Errors: failure, silently, if no bound follows.
FailureOr<SmallVector<BoundedValue>>
buildSums(OpBuilder &b, Operation *op, SumOrder order,
          function_ref<Value(Value)> getError);

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_SUMBOUNDS_H
