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

/// Whether the compiled program may compute `op` in any order, as it adds up
/// with fastmath<reassoc>.
bool isOrderFree(Operation *op);

/// A value, and how far the compiled program's value may be from it, as an f64
/// tensor of its shape; null if they are equal.
struct BoundedValue {
  Value value, error;
};

/// Rebuilds the results of `op`, each sum with its error so that only the last
/// rounding is left, and their bounds. `getError` gives the error of an
/// operand, as in buildErrorBounds.
///
/// `op` is a linalg.generic whose results are sums with fastmath<reassoc> of
/// values that do not depend on them, or one value per iteration.
///
/// Errors: failure without a diagnostic if no bound can be derived.
FailureOr<SmallVector<BoundedValue>>
buildSums(OpBuilder &b, Operation *op, SumOrder order,
          function_ref<Value(Value)> getError);

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_SUMBOUNDS_H
