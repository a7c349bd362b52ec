//===- MapRanges.h - ranges of indexing maps --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_LOWER_MAPRANGES_H
#define BNGRAD_LIB_TRANSFORMS_LOWER_MAPRANGES_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"

#include <optional>

namespace mlir::bngrad {

/// More elements than any memory has; sums of a few do not overflow.
inline constexpr int64_t kMostElements = int64_t(1) << 56;

/// Numbers of type index from the least to the greatest. An i1 says that
/// neither they nor those from which they were computed exceed kMostElements;
/// otherwise they are unknown.
struct IndexRange {
  Value least, greatest, isKnown;
};

/// The numbers from 0 to `count` - 1, which is at least 0.
IndexRange createLoopRange(OpBuilder &b, Location loc, Value count);

/// Emits a range that has all values of `expr` if each dim has those of a
/// range. It is exact where each dim occurs once in `expr`, or in its
/// simplified form.
///
/// Errors: nothing for divisors that are not positive constants, and symbols.
std::optional<IndexRange> createRange(OpBuilder &b, Location loc,
                                      AffineExpr expr,
                                      ArrayRef<IndexRange> dims);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_LOWER_MAPRANGES_H
