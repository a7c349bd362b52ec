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

/// Adds `addends` to the pairs (sum, error) in `sums`, of floats or vectors of
/// them: exactly, except for one rounding when the error so far is added to the
/// addend.
///
/// Source: docs/numerics.md, section 4.
SmallVector<Value> addCompensated(OpBuilder &b, Location loc, ValueRange sums,
                                  ValueRange addends);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_SUMS_H
