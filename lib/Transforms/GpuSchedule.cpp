//===- GpuSchedule.cpp - the choice of a schedule for a GPU ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuSchedule.h"

using namespace mlir;
using namespace mlir::bngrad;

ScheduleAttr mlir::bngrad::chooseGpuSchedule(const ScheduledGroup &group,
                                             const CudaChip &chip) {
  MLIRContext *context = group.getMembers().front().getContext();
  // Blocks of 256 threads, eight of which fill a multiprocessor.
  return ScheduleAttr::get(context, ScheduleKind::TwoPass, /*threads=*/256,
                           /*vector_bits=*/128, /*streaming_bytes=*/0,
                           /*columns=*/32,
                           /*blocks=*/chip.multiprocessors * 8, /*fma=*/true);
}
