//===- Group.cpp - bngrad-group: find groups, choose schedules ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A group is found by its structure, on tensors, where no alias analysis is
// needed: a reduction of sums, the per-channel generics that follow from it and
// the element-wise generics that read those. Sums that need per-channel values
// of the group, such as those about a mean, are a later stage. The group is
// enclosed in a region, so that no foreign op can come between its members
// before their loops exist.
//
//===----------------------------------------------------------------------===//

#include "ChooseCpuSchedule.h"
#include "ChooseGpuSchedule.h"
#include "ScheduledGroup.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Schedule/ParseSchedule.h"
#include "BNGrad/Transforms/Schedule/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-group"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADGROUPPASS
#include "BNGrad/Transforms/Schedule/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

using Group = llvm::SmallSetVector<linalg::GenericOp, 4>;

/// True if `generic` belongs to the group of `seed` because it reads results of
/// members only at its own channel or its own element: others may not be
/// computed yet.
static bool readsAsMember(linalg::GenericOp generic, linalg::GenericOp seed,
                          function_ref<bool(Value)> isChannelResult,
                          function_ref<bool(Value)> isElementResult) {
  if (!isParallel(generic) || !generic.hasPureTensorSemantics() ||
      generic->hasAttr(ScheduleAttr::kAttrName))
    return false;
  // A result that is overwritten may have other readers.
  if (llvm::any_of(generic.getDpsInits(), [&](Value init) {
        return isChannelResult(init) || isElementResult(init);
      }))
    return false;
  AffineMap ofChannel, ofElement;
  if (generic.getNumLoops() == seed.getNumLoops()) {
    if (!haveSameLoops(generic, seed))
      return false;
    SmallVector<unsigned> features;
    seed.getParallelDims(features);
    ofChannel = getFeatureMap(seed.getContext(), seed.getNumLoops(), features);
    ofElement = AffineMap::getMultiDimIdentityMap(seed.getNumLoops(),
                                                  seed.getContext());
  } else if (generic.getNumLoops() == seed.getNumParallelLoops() &&
             isChannelwise(generic) && !readsBeside(generic)) {
    ofChannel = AffineMap::getMultiDimIdentityMap(generic.getNumLoops(),
                                                  seed.getContext());
  } else {
    return false;
  }
  return llvm::all_of(generic.getDpsInputOperands(), [&](OpOperand *operand) {
    AffineMap map = generic.getMatchingIndexingMap(operand);
    if (isElementResult(operand->get()))
      return map == ofElement;
    return !isChannelResult(operand->get()) || map == ofChannel;
  });
}

/// True if the sums of `later` can be a stage of the group of `seed`: they are
/// over the same loops and in their order, read per-channel results of members
/// only at their channel and no elements of members, and the data that they
/// read are read by `seed`, too, so that they are in a cache.
static bool isLaterStage(linalg::GenericOp later, linalg::GenericOp seed,
                         function_ref<bool(Value)> isChannelResult,
                         function_ref<bool(Value)> isElementResult) {
  if (!getReductionValues(later) || !later.hasPureTensorSemantics() ||
      later->hasAttr(ScheduleAttr::kAttrName) || readsBeside(later) ||
      later.getIteratorTypesArray() != seed.getIteratorTypesArray() ||
      !haveSameLoops(later, seed))
    return false;
  SmallVector<unsigned> features;
  seed.getParallelDims(features);
  AffineMap ofChannel =
      getFeatureMap(seed.getContext(), seed.getNumLoops(), features);
  auto isReadBySeed = [&](Value value, AffineMap map) {
    return llvm::any_of(seed.getDpsInputOperands(), [&](OpOperand *operand) {
      return operand->get() == value &&
             seed.getMatchingIndexingMap(operand) == map;
    });
  };
  bool isOrdered = llvm::all_of(later->getResults(), [&](OpResult result) {
    AffineMap map = later.getIndexingMapMatchingResult(result);
    return map == ofChannel || isDataMap(map);
  });
  return isOrdered && llvm::none_of(later.getDpsInits(), isChannelResult) &&
         llvm::all_of(later.getDpsInputOperands(), [&](OpOperand *operand) {
           AffineMap map = later.getMatchingIndexingMap(operand);
           if (isElementResult(operand->get()))
             return false;
           if (isChannelResult(operand->get()))
             return map == ofChannel;
           return !isDataMap(map) || isReadBySeed(operand->get(), map);
         });
}

/// The per-channel generics before `seed`, in the order of the block, whose
/// results it reads and that read elements of their channel, such as the first
/// one, besides their operands. Nothing else reads them before `seed`.
static SmallVector<linalg::GenericOp> findFirstStage(linalg::GenericOp seed) {
  SmallVector<unsigned> features;
  seed.getParallelDims(features);
  AffineMap ofChannel =
      getFeatureMap(seed.getContext(), seed.getNumLoops(), features);
  auto isReadEarlier = [&](linalg::GenericOp generic) {
    return llvm::any_of(generic->getUsers(), [&](Operation *user) {
      Operation *reader = seed->getBlock()->findAncestorOpInBlock(*user);
      return !reader || reader->isBeforeInBlock(seed);
    });
  };
  SmallVector<linalg::GenericOp> members;
  for (OpOperand *operand : seed.getDpsInputOperands()) {
    auto generic = operand->get().getDefiningOp<linalg::GenericOp>();
    if (generic && !llvm::is_contained(members, generic) &&
        generic->getBlock() == seed->getBlock() && isParallel(generic) &&
        generic.hasPureTensorSemantics() && isChannelwise(generic) &&
        generic.getNumLoops() == features.size() && readsBeside(generic) &&
        !generic->hasAttr(ScheduleAttr::kAttrName) &&
        seed.getMatchingIndexingMap(operand) == ofChannel &&
        readsOwnChannelBeside(generic, seed, features) &&
        !isReadEarlier(generic))
      members.push_back(generic);
  }
  llvm::sort(members, [](auto a, auto b) { return a->isBeforeInBlock(b); });
  return members;
}

/// Grows a group from `seed` over the ops that follow it in its block. If a
/// later op depends on a member through an op that is not a member (an
/// all-reduce of the sums, say), that later op is not a member either. Ops of
/// other groups are no longer in this block.
static Group growFrom(linalg::GenericOp seed) {
  SmallVector<linalg::GenericOp> firstStage = findFirstStage(seed);
  Group group;
  group.insert(firstStage.begin(), firstStage.end());
  group.insert(seed);
  // Only readers of per-channel results in loop order become members; other
  // results end the group.
  SmallVector<unsigned> features;
  seed.getParallelDims(features);
  AffineMap ofChannel =
      getFeatureMap(seed.getContext(), seed.getNumLoops(), features);
  DenseSet<Value> channelResults;
  auto addSums = [&](linalg::GenericOp reduction) {
    for (OpResult result : reduction->getResults())
      if (reduction.getIndexingMapMatchingResult(result) == ofChannel)
        channelResults.insert(result);
  };
  addSums(seed);
  for (linalg::GenericOp first : firstStage)
    channelResults.insert(first->result_begin(), first->result_end());
  auto isChannelResult = [&](Value value) {
    return channelResults.contains(value);
  };
  auto isElementResult = [&](Value value) {
    Operation *def = value.getDefiningOp();
    return def && group.contains(dyn_cast<linalg::GenericOp>(def)) &&
           !isChannelResult(value);
  };
  DenseSet<Operation *> foreign;
  bool hasForeignEffect = false;
  int64_t numLoops = seed.getNumLoops();
  for (Operation *op = seed->getNextNode(); op; op = op->getNextNode()) {
    bool readsChannel = false, readsFullSize = false, readsForeign = false;
    auto visit = [&](Value value) {
      Operation *def = value.getDefiningOp();
      if (isChannelResult(value))
        readsChannel = true;
      else if (def && foreign.contains(def))
        readsForeign = true;
      else if (isElementResult(value))
        readsFullSize = true;
    };
    llvm::for_each(op->getOperands(), visit);
    visitUsedValuesDefinedAbove(
        op->getRegions(), [&](OpOperand *operand) { visit(operand->get()); });
    // The region will precede the foreign ops, so an effect that follows one of
    // their effects must stay after it.
    bool isAfter = hasForeignEffect && !isMemoryEffectFree(op);
    if (!readsChannel && !readsFullSize && !readsForeign && !isAfter)
      continue;
    auto generic = dyn_cast<linalg::GenericOp>(op);
    bool isStage = generic && isLaterStage(generic, seed, isChannelResult,
                                           isElementResult);
    if (readsForeign || !readsChannel || !generic ||
        !(isStage ||
          readsAsMember(generic, seed, isChannelResult, isElementResult))) {
      LDBG() << "no member of its group: " << *op;
      foreign.insert(op);
      hasForeignEffect |= !isMemoryEffectFree(op);
      continue;
    }
    group.insert(generic);
    if (isStage)
      addSums(generic);
    else if (static_cast<int64_t>(generic.getNumLoops()) < numLoops)
      channelResults.insert(op->result_begin(), op->result_end());
  }
  // Sums and per-channel members read no elements of members, so they go before
  // the element-wise members.
  Group sorted;
  for (bool isElementwise : {false, true})
    for (linalg::GenericOp member : group)
      if (isElementwise ==
          (isParallel(member) && member.getNumLoops() == numLoops))
        sorted.insert(member);
  return sorted;
}

/// The group of an element-wise generic that needs no sums, but reads results
/// of per-channel generics, with those of them that nothing else before it
/// needs; else empty.
static Group collectFor(linalg::GenericOp elementwise) {
  Group group;
  SetVector<Operation *> needed;
  BackwardSliceOptions options;
  options.omitUsesFromAbove = false;
  bool readsChannel = false;
  for (OpOperand *operand : elementwise.getDpsInputOperands()) {
    auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
    if (!producer || producer->getBlock() != elementwise->getBlock() ||
        !isParallel(producer) || !isChannelwise(producer) ||
        producer->hasAttr(ScheduleAttr::kAttrName) ||
        producer.getNumLoops() >= elementwise.getNumLoops())
      continue;
    // Its loops are the channel loops that the reader's map names.
    AffineMap map = elementwise.getMatchingIndexingMap(operand);
    if (!map.isProjectedPermutation() ||
        map.getNumResults() != producer.getNumLoops())
      continue;
    readsChannel = true;
    if (needed.empty())
      (void)getBackwardSlice(elementwise.getOperation(), &needed, options);
    if (llvm::none_of(producer->getUsers(), [&](Operation *user) {
          return needed.contains(
              elementwise->getBlock()->findAncestorOpInBlock(*user));
        }))
      group.insert(producer);
  }
  if (readsChannel)
    group.insert(elementwise);
  return group;
}

/// True if `generic` looks like all that is left of a batch norm: it reads a
/// mean and a factor, or a constant of each channel. Others are foreign ops. A
/// mark made with the op would be lost: upstream's fusion drops attributes.
static bool isLeftOfBatchNorm(linalg::GenericOp generic) {
  int64_t count = 0;
  bool hasConstant = false;
  for (OpOperand *operand : generic.getDpsInputOperands()) {
    AffineMap map = generic.getMatchingIndexingMap(operand);
    if (isDataMap(map) || map.isConstant())
      continue;
    ++count;
    hasConstant |= matchPattern(operand->get(), m_Constant());
  }
  return count > 1 || hasConstant;
}

/// True if `a` and `b` are one value, or the same slice of one.
static bool isSameValue(Value a, Value b) {
  if (a == b)
    return true;
  auto slice = a.getDefiningOp<tensor::ExtractSliceOp>();
  auto other = b.getDefiningOp<tensor::ExtractSliceOp>();
  return slice && other &&
         OperationEquivalence::isEquivalentTo(
             slice, other, OperationEquivalence::IgnoreLocations);
}

/// Adds the per-channel generics before the last member that share an operand
/// with one of `group`: gradients of parameters whose sums come from elsewhere,
/// such as an all-reduce. A GPU has no other loops for them.
static void addSiblings(Group &group) {
  SmallVector<linalg::GenericOp> members(group.begin(), group.end());
  if (members.size() < 2)
    return;
  linalg::GenericOp elementwise = members.back();
  // The ops that the group depends on. A sibling among them would have to
  // precede and to follow the ops in between.
  SetVector<Operation *> needed;
  BackwardSliceOptions options;
  options.omitUsesFromAbove = false;
  for (linalg::GenericOp member : members)
    (void)getBackwardSlice(member.getOperation(), &needed, options);
  SmallVector<linalg::GenericOp> siblings;
  for (Operation *op = elementwise->getPrevNode(); op; op = op->getPrevNode()) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || group.contains(generic) || needed.contains(generic) ||
        !isParallel(generic) || !isChannelwise(generic) ||
        !generic.hasPureTensorSemantics() ||
        generic->hasAttr(ScheduleAttr::kAttrName))
      continue;
    bool isSibling = llvm::any_of(
        ArrayRef(members).drop_back(), [&](linalg::GenericOp member) {
          return haveSameLoops(generic, member) &&
                 llvm::any_of(generic.getDpsInputs(), [&](Value input) {
                   return llvm::any_of(member.getDpsInputs(), [&](Value own) {
                     return isSameValue(input, own);
                   });
                 });
        });
    if (!isSibling)
      continue;
    siblings.push_back(generic);
    (void)getBackwardSlice(generic.getOperation(), &needed, options);
  }
  Group all;
  all.insert(siblings.rbegin(), siblings.rend());
  all.insert(members.begin(), members.end());
  group = std::move(all);
}

/// Gives `operand`, the init of a group member, a tensor.empty (and fill) of
/// its own at the builder's insertion point.
static void ownInit(OpBuilder &b, OpOperand &operand) {
  Value shared = operand.get();
  Value own = cloneInit(b, shared);
  if (!own)
    return;
  operand.set(own);
  // The fill, then its tensor.empty.
  for (Operation *def = shared.getDefiningOp(); def && def->use_empty();) {
    auto fill = dyn_cast<linalg::FillOp>(def);
    Operation *next = fill ? fill.getDpsInits()[0].getDefiningOp() : nullptr;
    def->erase();
    def = next;
  }
}

/// Moves the ops that precede `region`, but read its results, to after it.
/// Keeps their order and the order of all effects.
static void moveReadersAfter(Operation *region) {
  DenseSet<Operation *> late = {region};
  bool hasLateEffect = false;
  Operation *end = region;
  for (Operation *op = &region->getBlock()->front(); op != region;) {
    Operation *next = op->getNextNode();
    bool isLate = hasLateEffect && !isMemoryEffectFree(op);
    op->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *def = operand.getDefiningOp())
          isLate |= late.contains(def);
    });
    if (isLate) {
      late.insert(op);
      hasLateEffect |= !isMemoryEffectFree(op);
      op->moveAfter(end);
      end = op;
    }
    op = next;
  }
}

/// Moves the members into one scf.execute_region and writes `schedule` on them.
static void closeGroup(ArrayRef<linalg::GenericOp> members,
                       ScheduleAttr schedule) {
  DenseSet<Operation *> inside(members.begin(), members.end());
  linalg::GenericOp last =
      *llvm::max_element(members, [](linalg::GenericOp a, linalg::GenericOp b) {
        return a->isBeforeInBlock(b);
      });
  Block *block = last->getBlock();
  auto escapes = [&](Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return !inside.contains(block->findAncestorOpInBlock(*user));
    });
  };
  SmallVector<Value> escaping;
  for (linalg::GenericOp member : members)
    for (Value result : member->getResults())
      if (escapes(result))
        escaping.push_back(result);

  OpBuilder b(last);
  auto region = scf::ExecuteRegionOp::create(
      b, last.getLoc(), TypeRange(ValueRange(escaping)), /*no_inline=*/true);
  Block *body = b.createBlock(&region.getRegion());
  OpBuilder outside(region);
  for (linalg::GenericOp member : members) {
    // Inits of results that leave the region stay outside, so that these
    // results are written to their final buffers.
    for (auto [init, result] :
         llvm::zip_equal(member.getDpsInitsMutable(), member->getResults()))
      ownInit(llvm::is_contained(escaping, result) ? outside : b, init);
    member->moveBefore(body, body->end());
    member->setAttr(ScheduleAttr::kAttrName, schedule);
    b.setInsertionPointToEnd(body);
  }
  scf::YieldOp::create(b, last.getLoc(), escaping);
  for (auto [value, result] : llvm::zip_equal(escaping, region.getResults()))
    value.replaceUsesWithIf(result, [&](OpOperand &use) {
      return !region->isProperAncestor(use.getOwner());
    });
  moveReadersAfter(region);
}

/// The schedule of a group on `target`, or on `chip` if there is one.
static ScheduleAttr chooseSchedule(MLIRContext *context,
                                   ArrayRef<linalg::GenericOp> members,
                                   const Target &target,
                                   std::optional<CudaChip> chip) {
  std::string reason;
  std::optional<ScheduledGroup> group = ScheduledGroup::get(members, reason);
  if (group && chip)
    return chooseGpuSchedule(*group, *chip);
  if (chip)
    emitMissed(members.front(), "bngrad-group",
               "loops of the host instead of kernels: " + reason);
  if (!group)
    return ScheduleAttr::get(context, ScheduleKind::Loops);
  DataShape shape = DataShape::get(*group);
  ScheduleKind kind = chooseCpuKind(shape);
  return ScheduleAttr::get(context, kind,
                           chooseCpuSchedule(kind, shape, target));
}

/// Replaces a cast by an equal one before it. Canonicalization casts the
/// operands of each generic to the static sizes that others imply, and the
/// generics of a group must read the same value.
static void mergeCasts(func::FuncOp function) {
  DenseMap<std::tuple<Block *, Value, Type>, Value> casts;
  function.walk([&](tensor::CastOp cast) {
    auto [first, isNew] = casts.try_emplace(
        {cast->getBlock(), cast.getSource(), cast.getType()}, cast);
    if (isNew)
      return;
    cast.replaceAllUsesWith(first->second);
    cast.erase();
  });
}

namespace {
struct BNGradGroupPass : bngrad::impl::BNGradGroupPassBase<BNGradGroupPass> {
  using Base::Base;

  /// Runs once for all functions.
  LogicalResult initialize(MLIRContext *context) override {
    target = {vectorBits, threads, l1Bytes, lastLevelBytes, fma};
    auto emitOptionError = [&] { return emitError(UnknownLoc::get(context)); };
    std::pair<StringRef, int64_t> caches[] = {
        {"l1-bytes", target.l1Bytes},
        {"last-level-bytes", target.lastLevelBytes}};
    for (auto [option, bytes] : caches)
      if (bytes < 0)
        return emitOptionError()
               << "expected " << option << " to be at least 0, got " << bytes;
    CpuSchedule cpu;
    cpu.threads = threads;
    cpu.vectorBits = vectorBits;
    if (failed(ScheduleAttr::verify(emitOptionError, ScheduleKind::Rows, cpu,
                                    GpuSchedule())))
      return failure();
    if (!chip.empty()) {
      std::string reason;
      auto chips = CudaChip::parse(chip, reason);
      if (failed(chips))
        return emitOptionError() << reason;
      commonChip = CudaChip::getCommon(*chips);
    }
    if (!activeClusters.empty()) {
      std::string reason;
      if (!commonChip)
        return emitOptionError()
               << "option 'active-clusters': expected a chip, got none";
      if (failed(commonChip->setActiveClusters(activeClusters, reason)))
        return emitOptionError() << "option 'active-clusters': " << reason;
    }
    if (schedule.empty())
      return success();
    std::string reason;
    FailureOr<ScheduleAttr> parsed = parseSchedule(schedule, context, reason);
    if (failed(parsed))
      return emitOptionError() << "option 'schedule': " << reason;
    given = *parsed;
    return checkChip(given, emitOptionError);
  }

  void runOnOperation() override {
    mergeCasts(getOperation());
    SmallVector<linalg::GenericOp> generics;
    getOperation().walk([&](linalg::GenericOp generic) {
      // A generic with a schedule keeps it.
      if (generic.hasPureTensorSemantics() &&
          !generic->hasAttr(ScheduleAttr::kAttrName))
        generics.push_back(generic);
    });
    getOperation().walk([&](linalg::GenericOp generic) {
      auto written =
          generic->getAttrOfType<ScheduleAttr>(ScheduleAttr::kAttrName);
      if (written &&
          failed(checkChip(written, [&] { return generic.emitOpError(); })))
        signalPassFailure();
    });
    DenseSet<Operation *> grouped;
    auto close = [&](const Group &group) {
      grouped.insert(group.begin(), group.end());
      ScheduleAttr schedule =
          given ? given
                : chooseSchedule(&getContext(), group.getArrayRef(), target,
                                 commonChip);
      LDBG() << "a group of " << group.size() << ": " << schedule;
      closeGroup(group.getArrayRef(), schedule);
    };
    for (linalg::GenericOp generic : generics)
      if (!grouped.contains(generic) && getReductionValues(generic))
        close(growFrom(generic));
    for (linalg::GenericOp generic : generics) {
      if (!isParallel(generic) || grouped.contains(generic))
        continue;
      Group group = collectFor(generic);
      if (commonChip)
        addSiblings(group);
      // On a GPU, upstream's loops cannot run a single generic.
      std::string reason;
      if (group.empty() && (commonChip || isLeftOfBatchNorm(generic)) &&
          ScheduledGroup::get({generic}, reason))
        group.insert(generic);
      if (!group.empty())
        close(group);
    }
  }

private:
  /// Reports a GPU schedule on a CPU, a CPU schedule on a GPU, or a schedule
  /// whose kernel needs clusters on a chip without them. `loops` runs on the
  /// host of a GPU.
  LogicalResult checkChip(ScheduleAttr attr,
                          function_ref<InFlightDiagnostic()> emitError) const {
    if (isGpuKind(attr.getKind()) && !commonChip)
      return emitError() << "expected the schedule of a CPU, as no chip is "
                            "given, got "
                         << attr;
    if (isCpuKind(attr.getKind()) && commonChip)
      return emitError() << "expected the schedule of a GPU, or loops, as a "
                            "chip is given, got "
                         << attr;
    std::string reason;
    if (commonChip && failed(commonChip->verifySupport(attr, reason)))
      return emitError() << reason;
    return success();
  }

  Target target;
  std::optional<CudaChip> commonChip; // of the chips given; none on a CPU
  ScheduleAttr given;                 // by the option; null if none
};
} // namespace
