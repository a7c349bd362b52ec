//===- ChooseCpuSchedule.h - the schedule of a group on a CPU - -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_SCHEDULE_CHOOSECPUSCHEDULE_H
#define BNGRAD_LIB_TRANSFORMS_SCHEDULE_CHOOSECPUSCHEDULE_H

#include "ScheduledGroup.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Schedule/Target.h"

#include <limits>

namespace mlir::bngrad {

/// Sizes at which one schedule takes over from another. Their measurements are
/// in bench/results/thresholds.md.
namespace limits {
/// `split` for fewer channels than this, which would leave threads without
/// work, unless there is little of it.
inline constexpr int64_t kFewChannels = 8;
/// Fewer elements than this are work for one thread.
inline constexpr int64_t kSerialElements = 16 << 10;
/// `tiles` for rows of fewer elements than kShortRow if there are kManyRows of
/// them. Fewer stay in near caches, where the order of reading matters less
/// than the cost of a tile, unless a row is less than a vector.
inline constexpr int64_t kShortRow = 256, kManyRows = 8 << 10,
                         kVeryShortRow = 16, kManyVeryShortRows = 64;
} // namespace limits

/// A rule for data whose last loop is reduced, in the order [N, C, S]. It
/// applies to data below and from the limits given.
struct SizeRule {
  static constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

  ScheduleKind kind;
  int64_t channelsBelow = kAny;    // C
  int64_t elementsFrom = 0;        // N * C * S
  int64_t rowElementsBelow = kAny; // S
  int64_t rowsFrom = 0;            // N * C
};

/// The first rule that applies is taken; `channels` if none does. Sizes that
/// are known at compile time are compared there, others at run time.
inline constexpr SizeRule kSizeRules[] = {
    {ScheduleKind::Split, limits::kFewChannels, limits::kSerialElements},
    {ScheduleKind::Tiles, SizeRule::kAny, 0, limits::kVeryShortRow,
     limits::kManyVeryShortRows},
    {ScheduleKind::Tiles, SizeRule::kAny, 0, limits::kShortRow,
     limits::kManyRows},
};

/// The loops over a group's data after adjacent ones of a kind are merged.
struct DataShape {
  SmallVector<int64_t> sizes;  // by loop, outermost first; or kDynamic
  SmallVector<bool> isFeature; // by loop: the rest are summed over
  int64_t elementBytes = 4;    // of the widest element

  /// The shape of `group`, on tensors.
  static DataShape get(const ScheduledGroup &group);
};

/// True if loops that are features or reduced, as given, are those of `kind`, a
/// kind of a CPU.
bool hasLoopsOf(ScheduleKind kind, ArrayRef<bool> isFeature);

/// The kind of loops for data of this shape.
ScheduleKind chooseCpuKind(const DataShape &shape);

/// The parameters of `kind` for data of this shape on `target`.
CpuSchedule chooseCpuSchedule(ScheduleKind kind, const DataShape &shape,
                              const Target &target);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_SCHEDULE_CHOOSECPUSCHEDULE_H
