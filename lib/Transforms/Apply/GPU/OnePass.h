//===- OnePass.h - one kernel that reads each byte once ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GPU_ONEPASS_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GPU_ONEPASS_H

#include "DeviceBuffers.h"
#include "Schedule/OnePassLayout.h"

#include "BNGrad/Dialect/BNGrad.h"

namespace mlir::bngrad {

/// Emits the kernel of `#bngrad.schedule<one_pass>` for `group`.
void emitOnePass(OpBuilder &b, const ScheduledGroup &group,
                 const OnePassLayout &layout, const GpuSchedule &schedule,
                 DeviceBuffers &buffers);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_ONEPASS_H
