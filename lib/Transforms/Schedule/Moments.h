//===- Moments.h - the stages of a mean and of squares about it -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_SCHEDULE_MOMENTS_H
#define BNGRAD_LIB_TRANSFORMS_SCHEDULE_MOMENTS_H

#include "ScheduledGroup.h"

namespace mlir::bngrad {

/// Two adjacent stages of a group that compute, per channel, a mean and squares
/// about it: a sum of `x - first`, and sums of `x - center` and of its square,
/// for the same elements x and any two values of the channel.
struct MomentStages {
  unsigned sum;                // the number of the first of the two stages
  OpOperand *first, *center;   // operands of their reductions
  unsigned difference, square; // the positions of the second stage's sums

  /// The only stages with sums, if they are such stages, their sums are in f32,
  /// and their reductions have no other results.
  static std::optional<MomentStages> get(const ScheduledGroup &group);
  /// As get, if the group has three stages: the first computes `first`, such as
  /// the first element of the channel, and the second `center`.
  static std::optional<MomentStages> getAboutFirst(const ScheduledGroup &group);
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_SCHEDULE_MOMENTS_H
