//===- EmitKernels.h - kernels for a group ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GPU_EMITKERNELS_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GPU_EMITKERNELS_H

#include "Schedule/ScheduledGroup.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Schedule/CudaChip.h"

namespace mlir::bngrad {

/// The device and the buffers of a program.
struct DeviceOptions {
  /// Whether the function's arguments are device buffers.
  bool arguments = false;
  /// The common properties of the chips.
  CudaChip chip;
};

/// Replaces the members of `group`, on memrefs, by kernels and the host code
/// around them: copies, launches and a wait.
///
/// Merges loops once the device buffers are known, as a copy of data with
/// strides is dense. If `one_pass` does not support the resulting loops, two
/// passes run, with a remark.
///
/// Returns false and a `reason`, without any change, for tensors, integers that
/// do not fill bytes, and an obstacle between the members.
///
/// Errors: a diagnostic if a block of `one_pass` needs more shared memory than
/// the chip has.
FailureOr<bool> emitKernels(RewriterBase &rewriter, ScheduledGroup group,
                            ScheduleAttr schedule, const DeviceOptions &options,
                            std::string &reason);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_EMITKERNELS_H
