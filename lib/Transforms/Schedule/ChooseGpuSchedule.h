//===- ChooseGpuSchedule.h - the schedule of a group on a GPU - -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_SCHEDULE_CHOOSEGPUSCHEDULE_H
#define BNGRAD_LIB_TRANSFORMS_SCHEDULE_CHOOSEGPUSCHEDULE_H

#include "OnePassLayout.h"
#include "ScheduledGroup.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Schedule/CudaChip.h"

namespace mlir::bngrad {

/// The parameters of `two_pass` on `chip` if `onePass` does not apply.
GpuSchedule getTwoPassInstead(const ScheduledGroup &group,
                              const GpuSchedule &onePass, const CudaChip &chip);

/// The parameters of `one_pass` for data of this layout on `chip`; nothing if
/// the chip has no clusters, or none holds the data. docs/schedules.md has the
/// rules.
std::optional<GpuSchedule> chooseOnePass(const OnePassLayout &layout,
                                         const CudaChip &chip);

/// The parameters of `two_pass` on `chip` for data with at least `tiles` tiles
/// of channels, in pieces of `lanes` elements.
GpuSchedule chooseTwoPass(int64_t tiles, int64_t lanes, const CudaChip &chip);

/// The schedule of `group`, on tensors or memrefs, on `chip`.
ScheduleAttr chooseGpuSchedule(const ScheduledGroup &group,
                               const CudaChip &chip);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_SCHEDULE_CHOOSEGPUSCHEDULE_H
