//===- PackData.h - dense copies of data with strides -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_LAYOUT_PACKDATA_H
#define BNGRAD_LIB_TRANSFORMS_LAYOUT_PACKDATA_H

#include "Schedule/ScheduledGroup.h"

#include "BNGrad/Dialect/Schedule.h"

namespace mlir::bngrad {

/// How a group uses a memref of its data.
struct DataUse {
  bool isRead = false;
  bool isWritten = false;

  static DataUse get(const ScheduledGroup &group, Value memref);
};

/// Emits an i1: whether copies of a group's data, `bytes` in total, use
/// streaming stores. The rule is the same as for the results of `schedule`.
Value areCopiesStreamed(OpBuilder &b, Location loc, CpuSchedule schedule,
                        Value bytes);

/// Copies `from` to `to`, which are data of `group` with the same sizes and any
/// strides. If `isStreamed`, an i1, is true, whole cache lines are written with
/// streaming stores.
void emitCopy(OpBuilder &b, Location loc, const ScheduledGroup &group,
              Value from, Value to, Value isStreamed);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_LAYOUT_PACKDATA_H
