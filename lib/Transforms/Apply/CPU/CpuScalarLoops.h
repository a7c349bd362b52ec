//===- CpuScalarLoops.h - the schedule loops --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUSCALARLOOPS_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUSCALARLOOPS_H

#include "Schedule/ScheduledGroup.h"

namespace mlir::bngrad {

/// Replaces `generic`, on memrefs, by loops: parallel ones outside, scalar ones
/// inside.
///
/// Errors: failure and a `reason`, without any change, for tensors, a generic
/// without loops, and a reduction whose results are not sums that may be
/// reassociated.
LogicalResult emitScalarLoops(linalg::GenericOp generic, std::string &reason);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUSCALARLOOPS_H
