//===- Sums.h - sums whose error does not grow ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_SUMS_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_SUMS_H

#include "mlir/IR/Builders.h"

namespace mlir::bngrad {

/// A running sum and its error so far: floats, vectors of them, or tables.
struct Accumulator {
  Value sum, error;
};
using Accumulators = SmallVector<Accumulator>;

/// The values that a loop carries for `sums`: of each, the sum and the error.
SmallVector<Value> toCarried(ArrayRef<Accumulator> sums);
Accumulators fromCarried(ValueRange carried);

/// Adds `addends` to `sums`: exactly, except for one rounding when the error so
/// far is added to the addend.
///
/// Source: docs/numerics.md, section 4.
Accumulators addCompensated(OpBuilder &b, Location loc,
                            ArrayRef<Accumulator> sums, ValueRange addends);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_SUMS_H
