//===- ErrorBounds.h - bounds of values after a gradient --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNNER_ERRORBOUNDS_H
#define BNGRAD_RUNNER_ERRORBOUNDS_H

#include "mlir/IR/Builders.h"

namespace mlir::bngrad {

/// Scalar f64 arithmetic beside the body of a linalg.generic.
class BodyErrors {
public:
  BodyErrors(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  void setError(Value value, Value error) {
    if (error)
      errors[value] = error;
  }
  /// Null if exact.
  Value getError(Value value) const { return errors.lookup(value); }

  /// Computes the error of the result of `op`, a clone in the new body.
  ///
  /// Errors: failure without a diagnostic if no error can be derived.
  LogicalResult visit(Operation *op);

private:
  Value constant(double value);
  // Null counts as 0.
  Value add(Value l, Value r);
  Value mul(Value l, Value r);
  Value div(Value l, Value r);
  Value max(Value l, Value r);
  Value magnitude(Value value);
  Value rounded(Operation *op, Value total);

  OpBuilder &b;
  Location loc;
  DenseMap<Value, Value> errors;
};

/// The error of a tensor, or zeros where `getError(value)` is null.
Value getErrorOrZero(OpBuilder &b, Value value,
                     function_ref<Value(Value)> getError);

/// Whether the body of `op` reads an inexact outer value, for which `getError`
/// is not null, other than as an operand.
bool readsErrorsBeside(Operation *op, function_ref<Value(Value)> getError);

/// Builds, for each result of `op`, an f64 tensor of its shape: how far an
/// element may be from the one computed here if each operand may be off by its
/// `getError` (an f64 tensor of the operand's shape, null if exact) and each
/// operation rounds once more on either side.
///
/// `op` is an element-wise linalg.generic, or an op that only moves elements.
///
/// Errors: failure without a diagnostic if there is no bound: for another op,
/// or
///         a comparison of inexact values.
FailureOr<SmallVector<Value>>
buildErrorBounds(OpBuilder &b, Operation *op,
                 function_ref<Value(Value)> getError);

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_ERRORBOUNDS_H
