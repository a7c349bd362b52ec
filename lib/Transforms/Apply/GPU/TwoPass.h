//===- TwoPass.h - kernels that read the data twice -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GPU_TWOPASS_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GPU_TWOPASS_H

#include "DeviceBuffers.h"
#include "Schedule/ScheduledGroup.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Schedule/CudaChip.h"

namespace mlir::bngrad {

/// Emits the kernels of `#bngrad.schedule<two_pass>` for `group`, of any
/// layout.
void emitTwoPass(OpBuilder &b, const ScheduledGroup &group,
                 const CudaChip &chip, const GpuSchedule &schedule,
                 DeviceBuffers &buffers);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_TWOPASS_H
