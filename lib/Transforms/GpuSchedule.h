//===- GpuSchedule.h - the choice of a schedule for a GPU ------- -*- C++
//-*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_GPUSCHEDULE_H
#define BNGRAD_LIB_TRANSFORMS_GPUSCHEDULE_H

#include "ScheduledGroup.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/CudaChip.h"

namespace mlir::bngrad {

/// The schedule of `group`, on tensors or memrefs, on `chip`.
ScheduleAttr chooseGpuSchedule(const ScheduledGroup &group,
                               const CudaChip &chip);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_GPUSCHEDULE_H
