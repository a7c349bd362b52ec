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
#include "SizeRules.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Schedule/Target.h"

namespace mlir::bngrad {

/// The loops over a group's data after merging adjacent ones of a kind.
struct DataShape {
  SmallVector<int64_t> sizes;  // by loop, outermost first; may be kDynamic
  SmallVector<bool> isFeature; // by loop: the rest are summed over
  int64_t elementBytes = 4;    // of the widest element

  /// The shape of `group`, on tensors.
  static DataShape get(const ScheduledGroup &group);
};

/// Bytes of the widest element of the data of `group`.
int64_t getElementBytes(const ScheduledGroup &group);

/// True if `kind` supports loops that are features or reduced as given.
bool hasLoopsOf(ScheduleKind kind, ArrayRef<bool> isFeature);

/// The kind for loops of unknown sizes: the first of the kinds that depend on
/// loops alone for which `fits` returns true.
std::optional<ScheduleKind>
chooseByLoops(function_ref<bool(ScheduleKind)> fits);

/// The kind of loops for data of this shape.
ScheduleKind chooseCpuKind(const DataShape &shape);

/// The parameters of `kind` for data of this shape on `target`.
CpuSchedule chooseCpuSchedule(ScheduleKind kind, const DataShape &shape,
                              const Target &target);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_SCHEDULE_CHOOSECPUSCHEDULE_H
