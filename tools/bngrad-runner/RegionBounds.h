//===- RegionBounds.h - bounds of values of regions ----------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNNER_REGIONBOUNDS_H
#define BNGRAD_RUNNER_REGIONBOUNDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"

#include <functional>

namespace mlir::bngrad {

/// The values of `function` that need a bound: they depend on a gradient or on
/// a sum in any order, possibly through branches and loops of scf.
DenseSet<Value> findInexactValues(func::FuncOp function);

/// Whether the regions of `op` are branches or loops of scf, so that bounds of
/// its results can be computed beside them.
bool hasBoundedRegions(Operation *op);

/// Whether `op`, for which hasBoundedRegions holds, is a loop that adds numbers
/// in any order, one in each iteration.
bool isSumInAnyOrder(Operation *op);

/// The values that determine which regions of `op` are executed, and how often.
/// hasBoundedRegions must hold.
SmallVector<Value> getControl(Operation *op);

/// Whether the inexact results and block arguments of `op`, for which
/// hasBoundedRegions holds, are tensors of floats, which can have a bound.
bool areBoundable(Operation *op, function_ref<bool(Value)> isInexact);

/// What is known of the errors of values.
struct RegionErrors {
  /// Whether a value gets a bound.
  std::function<bool(Value)> isInexact;
  /// The bound of a value; zeros if it is exact.
  std::function<Value(OpBuilder &, Value)> getErrorOrZero;
  std::function<void(Value value, Value error)> setError;
  /// Computes the bounds of the values in a block, once the bounds of its
  /// arguments are set.
  std::function<LogicalResult(Block &)> visit;
};

/// Computes the bounds of the results of `op`, for which hasBoundedRegions
/// holds, as additional results and, in loops, additional loop-carried values.
/// Replaces `op`, and returns what replaces its results. areBoundable must
/// hold.
///
/// Errors: failure if a visit failed.
FailureOr<SmallVector<Value>> buildRegionBounds(Operation *op,
                                                const RegionErrors &errors);

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_REGIONBOUNDS_H
