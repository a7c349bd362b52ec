//===- EmitKernels.cpp - kernels for a group ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmitKernels.h"
#include "Apply/MergeLoops.h"
#include "OnePass.h"
#include "Schedule/ChooseGpuSchedule.h"
#include "Schedule/OnePassLayout.h"
#include "TwoPass.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Emits `one_pass` for data that are aligned as its copies need, else
/// `two_pass`; alignments not known yet are tested at run time.
static void emitAlignedOnePass(OpBuilder &b, const ScheduledGroup &group,
                               const OnePassLayout &layout,
                               const GpuSchedule &schedule,
                               const CudaChip &chip, DeviceBuffers &buffers) {
  Location loc = group.getMembers().front().getLoc();
  SmallVector<linalg::GenericOp> generics = group.getDataGenerics();
  // Data with gaps are read element by element, wherever they start.
  bool isDense = llvm::all_of(generics, [](linalg::GenericOp generic) {
    return llvm::all_of(generic->getOpOperands(), [&](OpOperand &operand) {
      auto type = dyn_cast<MemRefType>(operand.get().getType());
      return !type || type.getLayout().isIdentity() ||
             !isDataMap(generic.getMatchingIndexingMap(&operand));
    });
  });
  Value isAligned;
  if (isDense)
    isAligned = buffers.testAlignment(b, generics, group.numLoops - 1);
  if (!isAligned)
    return emitOnePass(b, group, layout, schedule, buffers);
  scf::IfOp::create(
      b, loc, isAligned,
      [&](OpBuilder &nested, Location) {
        buffers.setAligned(true);
        emitOnePass(nested, group, layout, schedule, buffers);
        buffers.setAligned(false);
        scf::YieldOp::create(nested, loc);
      },
      [&](OpBuilder &nested, Location) {
        emitTwoPass(nested, group, chip,
                    getTwoPassInstead(group, schedule, chip), buffers);
        scf::YieldOp::create(nested, loc);
      });
}

/// True if the integers in `generic` fill bytes, or are i1. Vectors of others
/// are packed by some of the passes that lower kernels, and not by the rest.
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

/// Emits the kernels of `schedule`, or of two passes if it does not allow the
/// loops of `group`.
static LogicalResult emitSchedule(RewriterBase &rewriter,
                                  const ScheduledGroup &group,
                                  ScheduleAttr schedule, const CudaChip &chip,
                                  DeviceBuffers &buffers) {
  linalg::GenericOp first = group.getMembers().front();
  const GpuSchedule &parameters = schedule.getGpu();
  std::string reason;
  switch (schedule.getKind()) {
  case ScheduleKind::TwoPass:
    emitTwoPass(rewriter, group, chip, parameters, buffers);
    return success();
  case ScheduleKind::OnePass: {
    FailureOr<OnePassLayout> layout =
        getOnePassLayout(group, parameters, reason);
    if (failed(layout)) {
      emitMissed(first, "bngrad-apply-schedule",
                 "two passes instead of one: " + reason);
      emitTwoPass(rewriter, group, chip,
                  getTwoPassInstead(group, parameters, chip), buffers);
      return success();
    }
    if (failed(layout->verifySharedMemory(parameters, chip, reason)))
      return first.emitOpError() << reason;
    emitAlignedOnePass(rewriter, group, *layout, parameters, chip, buffers);
    return success();
  }
  case ScheduleKind::Loops:
  case ScheduleKind::Channels:
  case ScheduleKind::Split:
  case ScheduleKind::Tiles:
  case ScheduleKind::Rows:
  case ScheduleKind::Sizes:
    break;
  }
  llvm_unreachable("not kernels");
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
  int64_t sumBytes = group.reduction ? getSumBytes(group.reduction) : 0;
  if (sumBytes > kMostSumBytes) {
    reason = "expected sums of at most " + std::to_string(kMostSumBytes) +
             " bytes per channel, got " + std::to_string(sumBytes);
    return false;
  }
  reason = findObstacleBetween(members);
  if (!reason.empty())
    return false;
  OpBuilder::InsertionGuard guard(rewriter);
  // The members beside each other, after all that makes their operands.
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
