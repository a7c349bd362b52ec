//===- CpuSchedules.cpp - loops with vectors for the CPU ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CpuSchedules.h"
#include "Apply/ElementCloner.h"
#include "CpuLoops.h"
#include "Schedule/ChooseCpuSchedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-apply-schedule"

using namespace mlir;
using namespace mlir::bngrad;

/// True if the loops of `group` are those of `kind`.
static bool fits(const ScheduledGroup &group, ScheduleKind kind) {
  unsigned numLoops = group.numLoops;
  // Operands that can be spread out, and no other that differs in a run.
  auto takesTables = [&](unsigned firstRunLoop) {
    return llvm::all_of(
        group.getDataGenerics(), [&](linalg::GenericOp generic) {
          if (generic.hasIndexSemantics())
            return false;
          return llvm::all_of(
              generic.getIndexingMapsArray(), [&](AffineMap map) {
                bool isChannel = map.getNumResults() == 1 &&
                                 map.isFunctionOfDim(group.features.front());
                return isDataMap(map) || isChannel ||
                       llvm::none_of(llvm::seq(firstRunLoop, numLoops),
                                     [&](unsigned loop) {
                                       return map.isFunctionOfDim(loop);
                                     });
              });
        });
  };
  SmallVector<bool> isFeature;
  for (unsigned loop : llvm::seq(numLoops))
    isFeature.push_back(group.isFeature(loop));
  if (!hasLoopsOf(kind, isFeature))
    return false;
  if (kind == ScheduleKind::Tiles)
    return takesTables(numLoops - 2);
  return kind != ScheduleKind::Rows || takesTables(0);
}

namespace {
/// The choice between `channels`, `split` and `tiles` for sizes that are known
/// at run time.
class Sizes : public CpuLoops {
public:
  explicit Sizes(const CpuLoops &shared) : CpuLoops(shared) {}

  void emit(OpBuilder &b) const;

private:
  Value isBelow(OpBuilder &b, Value size, int64_t limit) const {
    return at(b).compare(arith::CmpIPredicate::ult, size, constant(b, limit));
  }
  /// An i1: the data are for `tiles`.
  Value hasShortRows(OpBuilder &b) const;
};
} // namespace

Value Sizes::hasShortRows(OpBuilder &b) const {
  IndexBuilder index = at(b);
  Value manyRows = index.select(isBelow(b, sizes.back(), limits::kVeryShortRow),
                                index.constant(limits::kManyVeryShortRows),
                                index.constant(limits::kManyRows));
  Value hasManyRows = index.compare(
      arith::CmpIPredicate::uge,
      index.product(ArrayRef<Value>(sizes).drop_back()), manyRows);
  if (!fits(group, ScheduleKind::Tiles))
    return arith::ConstantIntOp::create(b, loc, 0, 1);
  return index.both(isBelow(b, sizes.back(), limits::kShortRow), hasManyRows);
}

/// Where there is work for several threads, few channels are split and short
/// rows are tiled; all else is read by channel.
void Sizes::emit(OpBuilder &b) const {
  IndexBuilder index = at(b);
  Value isLarge = index.compare(arith::CmpIPredicate::uge, count,
                                index.constant(limits::kSerialElements));
  Value hasFewChannels =
      index.both(isLarge, isBelow(b, index.product(pick(sizes, group.features)),
                                  limits::kFewChannels));
  Value isTiled = hasShortRows(b);
  emitIf(
      b, hasFewChannels, [&](OpBuilder &nested) { emitSplit(nested, *this); },
      [&](OpBuilder &many) {
        emitIf(
            many, isTiled, [&](OpBuilder &nested) { emitTiles(nested, *this); },
            [&](OpBuilder &nested) { emitChannels(nested, *this); });
      });
}

/// Why `group` has no loops with vectors; empty: it has.
static std::string findObstacle(const ScheduledGroup &group) {
  if (group.reduction && !getReductionValues(group.reduction))
    return "expected every result of the reduction to be a sum with "
           "fastmath<reassoc>, indexed by the parallel loops";
  for (linalg::GenericOp generic : group.getMembers())
    if (!generic.hasPureBufferSemantics())
      return "expected memrefs";
  unsigned inner = group.numLoops - 1;
  for (linalg::GenericOp generic : group.getDataGenerics()) {
    if (!isVectorizable(generic))
      return "expected element-wise arithmetic in the body";
    for (OpOperand &operand : generic->getOpOperands()) {
      AffineMap map = generic.getMatchingIndexingMap(&operand);
      if (!map.isProjectedPermutation())
        return "expected operands that are indexed by loops alone";
      if (!isa<MemRefType>(operand.get().getType()))
        continue;
      if (!isVectorElement(getElementTypeOrSelf(operand.get())))
        return "expected elements of 1, 8, 16, 32 or 64 bits";
      if (isDataMap(map) &&
          (!map.isIdentity() || !isMemRefWithIdentity(operand.get())))
        return "expected dense data in the order of the loops";
      // Read by vectors along the last loop.
      if (!group.isFeature(inner) && map.isFunctionOfDim(inner) &&
          (cast<AffineDimExpr>(map.getResults().back()).getPosition() !=
               inner ||
           !isMemRefWithIdentity(operand.get())))
        return "expected the last loop to index the last dim";
    }
  }
  return findObstacleBetween(group.getMembers());
}

LogicalResult mlir::bngrad::emitVectorLoops(RewriterBase &rewriter,
                                            const ScheduledGroup &group,
                                            ScheduleAttr schedule,
                                            std::string &reason) {
  reason = findObstacle(group);
  if (!reason.empty())
    return failure();
  // The layout may be another than the one the schedule was chosen for.
  ScheduleKind kind = schedule.getKind();
  if (!fits(group, kind)) {
    kind = fits(group, ScheduleKind::Rows) ? ScheduleKind::Rows
                                           : ScheduleKind::Sizes;
    LDBG() << stringifyScheduleKind(kind) << " instead of "
           << stringifyScheduleKind(schedule.getKind())
           << ", which does not fit the layout";
  }
  if (!fits(group, kind)) {
    reason = "expected loops [N, C, S], [C, S] or [N, C] over dense data";
    return failure();
  }
  SmallVector<linalg::GenericOp> members = group.getMembers();
  rewriter.setInsertionPoint(members.back());
  CpuLoops shared(rewriter, group, schedule.getCpu());
  switch (kind) {
  case ScheduleKind::Channels:
    emitChannels(rewriter, shared);
    break;
  case ScheduleKind::Tiles:
    emitTiles(rewriter, shared);
    break;
  case ScheduleKind::Rows:
    emitRows(rewriter, shared);
    break;
  case ScheduleKind::Split:
    emitSplit(rewriter, shared);
    break;
  case ScheduleKind::Sizes:
    Sizes(shared).emit(rewriter);
    break;
  case ScheduleKind::Loops:
  case ScheduleKind::TwoPass:
  case ScheduleKind::OnePass:
    llvm_unreachable("not loops with vectors");
  }
  for (linalg::GenericOp member : members)
    rewriter.eraseOp(member);
  return success();
}
