//===- GpuSchedules.h - the kernels of each schedule ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUSCHEDULES_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUSCHEDULES_H

#include "DeviceBuffers.h"
#include "Schedule/ScheduledGroup.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Schedule/CudaChip.h"

namespace mlir::bngrad {

/// Emit the kernels of one schedule for `group`, whose loops are merged, or,
/// with a remark, the kernels of `two_pass` if the schedule does not support
/// these loops.
///
/// Errors: a diagnostic if the kernels need more than `chip` has.
#define BNGRAD_SCHEDULE_Gpu(kind)                                              \
  LogicalResult emit##kind(OpBuilder &b, const ScheduledGroup &group,          \
                           const GpuSchedule &schedule, const CudaChip &chip,  \
                           DeviceBuffers &buffers);
#include "BNGrad/Dialect/Schedules.def"

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUSCHEDULES_H
