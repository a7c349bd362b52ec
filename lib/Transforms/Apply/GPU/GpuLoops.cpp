//===- GpuLoops.cpp - kernels for a group ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuLoops.h"
#include "OnePass.h"
#include "Schedule/GpuSchedule.h"
#include "TwoPass.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Emits `one_pass` for data that are aligned as its copies need, else
/// `two_pass`; alignments not known yet are tested at run time.
static void emitAlignedOnePass(OpBuilder &b, const ScheduledGroup &group,
                               ScheduleAttr schedule, DeviceBuffers &buffers) {
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
    return emitOnePass(b, group, schedule, buffers);
  scf::IfOp::create(
      b, loc, isAligned,
      [&](OpBuilder &nested, Location) {
        buffers.setAligned(true);
        emitOnePass(nested, group, schedule, buffers);
        buffers.setAligned(false);
        scf::YieldOp::create(nested, loc);
      },
      [&](OpBuilder &nested, Location) {
        emitTwoPass(nested, group, getTwoPassInstead(schedule), buffers);
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

LogicalResult mlir::bngrad::emitGpuLoops(RewriterBase &rewriter,
                                         const GroupMembers &members,
                                         ScheduleAttr schedule,
                                         bool deviceArguments,
                                         std::string &reason) {
  std::optional<ScheduledGroup> group = ScheduledGroup::get(members, reason);
  if (!group)
    return failure();
  if (!llvm::all_of(members, [](linalg::GenericOp generic) {
        return generic.hasPureBufferSemantics();
      })) {
    reason = "expected memrefs";
    return failure();
  }
  if (!llvm::all_of(members, hasWholeBytes)) {
    reason = "expected integers of 1, 8, 16, 32 or 64 bits";
    return failure();
  }
  reason = findObstacleBetween(members);
  if (!reason.empty())
    return failure();
  OpBuilder::InsertionGuard guard(rewriter);
  // The members beside each other, after all that makes their operands.
  GroupMembers onDevice(members);
  for (linalg::GenericOp member : ArrayRef(members).drop_back())
    rewriter.moveOpBefore(member, members.back());
  rewriter.setInsertionPoint(members.front());
  DeviceBuffers buffers(rewriter, *group, deviceArguments);
  mergeLoops(rewriter, onDevice);
  group = ScheduledGroup::get(onDevice, reason);
  rewriter.setInsertionPoint(onDevice.back());
  if (schedule.getKind() == ScheduleKind::OnePass &&
      !fitsOnePass(*group, schedule, reason)) {
    emitMissed(onDevice.front(), "bngrad-apply-schedule",
               "two passes instead of one: " + reason);
    schedule = getTwoPassInstead(schedule);
  }
  switch (schedule.getKind()) {
  case ScheduleKind::TwoPass:
    emitTwoPass(rewriter, *group, schedule, buffers);
    break;
  case ScheduleKind::OnePass:
    emitAlignedOnePass(rewriter, *group, schedule, buffers);
    break;
  case ScheduleKind::Loops:
  case ScheduleKind::Channels:
  case ScheduleKind::Split:
  case ScheduleKind::Tiles:
  case ScheduleKind::Rows:
  case ScheduleKind::Sizes:
    llvm_unreachable("not kernels");
  }
  buffers.finish(rewriter);
  for (linalg::GenericOp generic : onDevice)
    rewriter.eraseOp(generic);
  return success();
}
