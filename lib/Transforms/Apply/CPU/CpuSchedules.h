//===- CpuSchedules.h - loops with vectors for the CPU ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUSCHEDULES_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUSCHEDULES_H

#include "Schedule/ScheduledGroup.h"

#include "BNGrad/Dialect/BNGrad.h"

namespace mlir::bngrad {

/// Replaces the members of `group`, on memrefs and with merged loops, by the
/// loops of `schedule`, which is not `loops`.
///
/// If the schedule does not fit the actual layout (it was chosen for NCHW, but
/// the strides are those of NHWC), `rows` or `sizes` replaces it, with its
/// parameters. Returns failure and a `reason`, without any change, if no
/// schedule fits.
LogicalResult emitVectorLoops(RewriterBase &rewriter,
                              const ScheduledGroup &group,
                              ScheduleAttr schedule, std::string &reason);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUSCHEDULES_H
