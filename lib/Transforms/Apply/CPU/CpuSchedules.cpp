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

/// True if every operand of `group` is data, per-channel, or uniform in the
/// runs that a table covers. These runs are over the loops from `firstRunLoop`
/// on.
static bool takesTables(const ScheduledGroup &group, unsigned firstRunLoop) {
  auto isTabulated = [&](AffineMap map) {
    bool isChannel =
        map.getNumResults() == 1 && map.isFunctionOfDim(group.features.front());
    return isDataMap(map) || isChannel ||
           llvm::none_of(
               llvm::seq(firstRunLoop, group.numLoops),
               [&](unsigned loop) { return map.isFunctionOfDim(loop); });
  };
  return llvm::all_of(group.getDataGenerics(), [&](linalg::GenericOp generic) {
    return !generic.hasIndexSemantics() &&
           llvm::all_of(generic.getIndexingMapsArray(), isTabulated);
  });
}

/// True if `kind` supports the loops of `group`.
static bool fits(const ScheduledGroup &group, ScheduleKind kind) {
  SmallVector<bool> isFeature;
  for (unsigned loop : llvm::seq(group.numLoops))
    isFeature.push_back(group.isFeature(loop));
  if (!hasLoopsOf(kind, isFeature))
    return false;
  switch (getInfo(kind).tables) {
  case ScheduleTables::None:
    return true;
  case ScheduleTables::LastTwoLoops:
    return takesTables(group, group.numLoops - 2) && !hasDataWithStrides(group);
  case ScheduleTables::AllLoops:
    return takesTables(group, 0);
  }
  llvm_unreachable("unknown tables");
}

/// Emits the loops of a `kind` that fits the group.
static void emitKind(OpBuilder &b, ScheduleKind kind, const CpuLoops &shared) {
  switch (kind) {
#define BNGRAD_SCHEDULE_Cpu(kind)                                              \
  case ScheduleKind::kind:                                                     \
    return emit##kind(b, shared);
#include "BNGrad/Dialect/Schedules.def"
  default:
    llvm_unreachable("expected loops with vectors");
  }
}

namespace {
/// Emits the choice between `channels`, `split` and `tiles` for sizes known at
/// run time.
class Sizes : public CpuLoops {
public:
  explicit Sizes(const CpuLoops &shared) : CpuLoops(shared) {}

  void emit(OpBuilder &b) const { emitFrom(b, kSizeRules); }

private:
  /// The schedule of the first of `rules` that applies.
  void emitFrom(OpBuilder &b, ArrayRef<SizeRule> rules) const;
  /// An i1: whether `rule` applies.
  Value applies(OpBuilder &b, const SizeRule &rule) const;
};
} // namespace

Value Sizes::applies(OpBuilder &b, const SizeRule &rule) const {
  IndexBuilder index = at(b);
  Value result = arith::ConstantIntOp::create(b, loc, 1, 1);
  auto require = [&](arith::CmpIPredicate predicate, Value size,
                     int64_t limit) {
    result = index.bitAnd(
        result, index.compare(predicate, size, index.constant(limit)));
  };
  if (rule.channelsBelow != SizeRule::kAny)
    require(arith::CmpIPredicate::ult,
            index.product(pick(sizes, group.features)), rule.channelsBelow);
  int64_t elements = rule.getLeastElements(getElementBytes(group));
  if (elements > 0)
    require(arith::CmpIPredicate::uge, count, elements);
  if (rule.rowElementsBelow != SizeRule::kAny)
    require(arith::CmpIPredicate::ult, sizes.back(), rule.rowElementsBelow);
  if (rule.rowsFrom > 0)
    require(arith::CmpIPredicate::uge,
            index.product(ArrayRef(sizes).drop_back()), rule.rowsFrom);
  // Such a rule chooses `tiles`; all but its last two loops are samples.
  if (rule.samplesFrom > 0)
    require(arith::CmpIPredicate::uge,
            index.product(ArrayRef(sizes).drop_back(2)), rule.samplesFrom);
  return result;
}

void mlir::bngrad::emitSizes(OpBuilder &b, const CpuLoops &shared) {
  Sizes(shared).emit(b);
}

void Sizes::emitFrom(OpBuilder &b, ArrayRef<SizeRule> rules) const {
  if (rules.empty())
    return emitChannels(b, *this);
  ScheduleKind kind = rules.front().kind;
  // Adjacent rules of one kind share its loops, which are emitted once.
  ArrayRef<SizeRule> same =
      rules.take_while([&](const SizeRule &rule) { return rule.kind == kind; });
  ArrayRef<SizeRule> rest = rules.drop_front(same.size());
  if (!fits(group, kind))
    return emitFrom(b, rest);
  Value condition = applies(b, same.front());
  for (const SizeRule &rule : same.drop_front())
    condition = at(b).bitOr(condition, applies(b, rule));
  emitIf(
      b, condition, [&](OpBuilder &nested) { emitKind(nested, kind, *this); },
      [&](OpBuilder &nested) { emitFrom(nested, rest); });
}

/// Why `group` cannot have vector loops; empty if it can.
static std::string findObstacle(const ScheduledGroup &group) {
  for (linalg::GenericOp reduction : group.getReductions())
    if (!getReductionValues(reduction))
      return kNotSums.str();
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
          (!map.isIdentity() || !(isMemRefWithIdentity(operand.get()) ||
                                  hasContiguousRows(operand.get()))))
        return "expected data in the order of the loops, with contiguous rows";
      // Vectors along the last loop read it.
      if (!isDataMap(map) && !group.isFeature(inner) &&
          map.isFunctionOfDim(inner) &&
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
  // The layout may differ from the one that the schedule was chosen for.
  std::optional<ScheduleKind> kind = schedule.getKind();
  auto fitsGroup = [&](ScheduleKind kind) { return fits(group, kind); };
  if (!fitsGroup(*kind)) {
    kind = chooseByLoops(fitsGroup);
    if (!kind) {
      reason = "expected loops [N, C, S], [C, S] or [N, C] over dense data";
      return failure();
    }
    emitMissed(group.getMembers().front(), "bngrad-apply-schedule",
               stringifyScheduleKind(*kind) + " instead of " +
                   stringifyScheduleKind(schedule.getKind()) +
                   ", which has other loops");
  }
  SmallVector<linalg::GenericOp> members = group.getMembers();
  for (linalg::GenericOp generic : group.getDataGenerics())
    extendBeforeChoices(rewriter, generic);
  rewriter.setInsertionPoint(members.back());
  CpuLoops shared(rewriter, group, schedule.getCpu());
  emitKind(rewriter, *kind, shared);
  for (linalg::GenericOp member : members)
    rewriter.eraseOp(member);
  return success();
}
