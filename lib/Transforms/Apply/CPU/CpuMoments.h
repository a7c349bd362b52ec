//===- CpuMoments.h - arithmetic of moments ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUMOMENTS_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUMOMENTS_H

#include "BNGrad/Transforms/FloatBuilder.h"

#include <optional>

namespace mlir::bngrad {

/// The sum of some elements of a channel less its `first` value, and the sum of
/// squares about their mean: in f64, as scalars or vectors.
struct Moments {
  Value sum, squares;
};
/// Moments of `count` elements, a scalar of f64.
struct CountedMoments {
  Moments moments;
  Value count;
};

/// The sums of a block about a center near its mean: in f32, as scalars or
/// vectors.
struct BlockSums {
  Value first; // of the channel
  Value center;
  Value difference, square; // the sums of x - center and of its square
  Value elements;           // their number, a scalar of f64
};

/// Arithmetic on moments.
struct MomentsBuilder : FloatBuilder {
  /// 1/count in f64; 1 if there are no elements.
  Value getReciprocal(Value count) const;
  /// The moments of no elements: scalars, or vectors of `lanes`.
  CountedMoments none(std::optional<int64_t> lanes = {}) const;
  /// The mean of a block from the sum about `first`, rounded; `first` itself if
  /// it is not finite.
  Value getBlockCenter(Value first, Value sum, Value elements) const;
  Moments getBlockMoments(const BlockSums &block) const;
  /// The moments of the elements of both.
  CountedMoments join(const CountedMoments &l, const CountedMoments &r) const;
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUMOMENTS_H
