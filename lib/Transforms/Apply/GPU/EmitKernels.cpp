//===- EmitKernels.cpp - kernels for a group ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmitKernels.h"
#include "GpuSchedules.h"
#include "Layout/MergeLoops.h"
#include "Schedule/OnePassLayout.h"

using namespace mlir;
using namespace mlir::bngrad;

/// True if the integers in `generic` fill bytes, or are i1. Of the passes that
/// lower kernels, some pack vectors of other integers and some do not.
static bool hasWholeBytes(linalg::GenericOp generic) {
  auto isWhole = [](Type type) {
    auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
    return !integer || integer.getWidth() == 1 ||
           (integer.getWidth() >= 8 && llvm::isPowerOf2_32(integer.getWidth()));
  };
  WalkResult walk = generic.getRegion().walk([&](Operation *op) {
    return llvm::all_of(op->getOperandTypes(), isWhole) &&
                   llvm::all_of(op->getResultTypes(), isWhole)
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return !walk.wasInterrupted() &&
         llvm::all_of(generic.getRegion().getArgumentTypes(), isWhole);
}

/// The most bytes of the sums of a channel. The warps of a block, of which
/// there are at most 32, exchange the sums in static shared memory.
static constexpr int64_t kMostSumBytes = 1024;

/// Emits the kernels of `schedule`.
static LogicalResult emitSchedule(RewriterBase &rewriter,
                                  const ScheduledGroup &group,
                                  ScheduleAttr schedule, const CudaChip &chip,
                                  DeviceBuffers &buffers) {
  switch (schedule.getKind()) {
#define BNGRAD_SCHEDULE_Gpu(kind)                                              \
  case ScheduleKind::kind:                                                     \
    return emit##kind(rewriter, group, schedule.getGpu(), chip, buffers);
#include "BNGrad/Dialect/Schedules.def"
  default:
    llvm_unreachable("expected kernels");
  }
}

FailureOr<bool> mlir::bngrad::emitKernels(RewriterBase &rewriter,
                                          ScheduledGroup group,
                                          ScheduleAttr schedule,
                                          const DeviceOptions &options,
                                          std::string &reason) {
  GroupMembers members = group.getMembers();
  if (!llvm::all_of(members, [](linalg::GenericOp generic) {
        return generic.hasPureBufferSemantics();
      })) {
    reason = "expected memrefs";
    return false;
  }
  if (!llvm::all_of(members, hasWholeBytes)) {
    reason = "expected integers of 1, 8, 16, 32 or 64 bits";
    return false;
  }
  for (linalg::GenericOp reduction : group.getReductions()) {
    int64_t sumBytes = getSumBytes(reduction);
    if (sumBytes <= kMostSumBytes)
      continue;
    reason = "expected sums of at most " + std::to_string(kMostSumBytes) +
             " bytes per channel, got " + std::to_string(sumBytes);
    return false;
  }
  reason = findObstacleBetween(members);
  if (!reason.empty())
    return false;
  OpBuilder::InsertionGuard guard(rewriter);
  // Moves the members together, after the ops that define their operands.
  for (linalg::GenericOp member : ArrayRef(members).drop_back())
    rewriter.moveOpBefore(member, members.back());
  rewriter.setInsertionPoint(members.front());
  DeviceBuffers buffers(rewriter, group, options.arguments);
  mergeLoops(rewriter, group);
  members = group.getMembers();
  rewriter.setInsertionPoint(members.back());
  if (failed(emitSchedule(rewriter, group, schedule, options.chip, buffers)))
    return failure();
  buffers.finish(rewriter);
  for (linalg::GenericOp member : members)
    rewriter.eraseOp(member);
  return true;
}
