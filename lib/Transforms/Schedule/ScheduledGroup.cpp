//===- ScheduledGroup.cpp - the members of a group and their loops --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduledGroup.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::bngrad;

std::optional<ReductionValues>
mlir::bngrad::getReductionValues(linalg::GenericOp generic) {
  SmallVector<unsigned> reductionDims;
  generic.getReductionDims(reductionDims);
  ReductionValues values;
  auto yield = cast<linalg::YieldOp>(generic.getBody()->getTerminator());
  for (auto [i, value] : llvm::enumerate(yield.getValues())) {
    AffineMap map =
        generic.getMatchingIndexingMap(generic.getDpsInitOperand(i));
    BlockArgument accumulator = generic.getRegionOutputArgs()[i];
    if (isDataMap(map)) {
      if (!accumulator.use_empty())
        return std::nullopt;
      values.stores.push_back({i, value});
      continue;
    }
    auto add = value.getDefiningOp<arith::AddFOp>();
    bool isIndexedByChannel =
        map.isProjectedPermutation() &&
        map.getNumResults() == generic.getNumParallelLoops() &&
        llvm::none_of(reductionDims,
                      [&](unsigned dim) { return map.isFunctionOfDim(dim); });
    if (!add || !accumulator.hasOneUse() || !value.hasOneUse() ||
        !isIndexedByChannel ||
        !bitEnumContainsAll(add.getFastmath(), arith::FastMathFlags::reassoc))
      return std::nullopt;
    if (add.getLhs() == accumulator)
      values.terms.push_back({i, add.getRhs()});
    else if (add.getRhs() == accumulator)
      values.terms.push_back({i, add.getLhs()});
    else
      return std::nullopt;
  }
  if (values.terms.empty())
    return std::nullopt;
  return values;
}

bool mlir::bngrad::readsBeside(linalg::GenericOp generic) {
  bool found = false;
  visitUsedValuesDefinedAbove(generic.getRegion(), [&](OpOperand *operand) {
    found |= isa<ShapedType>(operand->get().getType());
  });
  return found;
}

/// True if the body of `generic` indexes a dim by `index` as a data generic
/// with loops of `sizes` indexes it by loop `expr`: by the same feature, which
/// is 0 in a loop of one iteration, or by a constant along a loop that is
/// summed over.
static bool isIndexOfChannel(Value index, AffineExpr expr,
                             ArrayRef<int64_t> sizes,
                             ArrayRef<unsigned> features) {
  auto dim = dyn_cast<AffineDimExpr>(expr);
  if (!dim)
    return false;
  const unsigned *feature = llvm::find(features, dim.getPosition());
  if (feature == features.end())
    return getConstantIntValue(index).has_value();
  if (sizes[dim.getPosition()] == 1 && isZeroInteger(index))
    return true;
  auto loop = index.getDefiningOp<linalg::IndexOp>();
  return loop &&
         static_cast<int64_t>(loop.getDim()) == feature - features.begin();
}

/// The memory of a memref, or a tensor itself.
static Value getData(Value value) {
  return isa<MemRefType>(value.getType()) ? getMemory(value) : value;
}

bool mlir::bngrad::readsOwnChannelBeside(linalg::GenericOp generic,
                                         ArrayRef<linalg::GenericOp> data,
                                         ArrayRef<unsigned> features) {
  auto isOwn = [&](Value source, ValueRange indices) {
    return llvm::any_of(data, [&](linalg::GenericOp reader) {
      SmallVector<int64_t> sizes = reader.getStaticLoopRanges();
      return llvm::any_of(reader.getDpsInputOperands(), [&](OpOperand *input) {
        AffineMap map = reader.getMatchingIndexingMap(input);
        return getData(input->get()) == getData(source) &&
               map.getNumResults() == indices.size() &&
               llvm::all_of(
                   llvm::zip_equal(indices, map.getResults()), [&](auto pair) {
                     auto [index, expr] = pair;
                     return isIndexOfChannel(index, expr, sizes, features);
                   });
      });
    });
  };
  auto isWritten = [&](Value memref) {
    return llvm::any_of(data, [&](linalg::GenericOp writer) {
      return llvm::any_of(writer.getDpsInits(), [&](Value output) {
        return getData(output) == getData(memref);
      });
    });
  };
  WalkResult walk = generic.getRegion().walk([&](Operation *op) {
    bool isAllowed = true;
    if (auto extract = dyn_cast<tensor::ExtractOp>(op))
      isAllowed = isOwn(extract.getTensor(), extract.getIndices());
    else if (auto load = dyn_cast<memref::LoadOp>(op))
      isAllowed = !isWritten(load.getMemRef()) ||
                  isOwn(load.getMemRef(), load.getIndices());
    else
      isAllowed = llvm::none_of(op->getOperandTypes(), [](Type type) {
        return isa<ShapedType>(type);
      });
    return isAllowed ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walk.wasInterrupted();
}

bool mlir::bngrad::isChannelwise(linalg::GenericOp generic) {
  return llvm::all_of(generic.getIndexingMapsArray(), [](AffineMap map) {
    return map.isIdentity() || map.isConstant();
  });
}

std::string
mlir::bngrad::findObstacleBetween(ArrayRef<linalg::GenericOp> members) {
  // The loops replace the last member. A buffer that is filled in between must
  // not be used earlier.
  auto fillsForLater = [&](Operation *op) {
    auto fill = dyn_cast<linalg::FillOp>(op);
    return fill && llvm::none_of(members, [&](linalg::GenericOp member) {
             return member->isBeforeInBlock(fill) &&
                    llvm::is_contained(member->getOperands(),
                                       fill.getDpsInits()[0]);
           });
  };
  for (Operation *op = members.front(); op != members.back();
       op = op->getNextNode())
    if (!llvm::is_contained(members, dyn_cast<linalg::GenericOp>(op)) &&
        !isa<memref::AllocOp>(op) && !isMemoryEffectFree(op) &&
        !fillsForLater(op))
      return ("expected no '" + op->getName().getStringRef() +
              "' between the members")
          .str();
  return "";
}

Value mlir::bngrad::getViewed(Value value) {
  while (auto collapse = value.getDefiningOp<memref::CollapseShapeOp>())
    value = collapse.getSrc();
  return value;
}

bool mlir::bngrad::haveSameLoops(linalg::GenericOp a, linalg::GenericOp b) {
  if (a.getNumLoops() != b.getNumLoops())
    return false;
  SmallVector<int64_t> sizes = a.getStaticLoopRanges();
  if (sizes == b.getStaticLoopRanges() && !ShapedType::isDynamicShape(sizes))
    return true;
  if (failed(verifyCompatibleShape(sizes, b.getStaticLoopRanges())))
    return false;
  // Data that both index, including their results.
  auto getData = [](linalg::GenericOp generic) {
    SmallVector<std::pair<Value, AffineMap>> data;
    for (OpOperand &operand : generic->getOpOperands())
      if (AffineMap map = generic.getMatchingIndexingMap(&operand);
          isDataMap(map))
        data.push_back({getViewed(operand.get()), map});
    for (OpResult result : generic->getResults())
      if (AffineMap map = generic.getIndexingMapMatchingResult(result);
          isDataMap(map))
        data.push_back({result, map});
    return data;
  };
  SmallVector<std::pair<Value, AffineMap>> dataOfB = getData(b);
  return llvm::any_of(
      getData(a), [&](auto data) { return llvm::is_contained(dataOfB, data); });
}

AffineMap mlir::bngrad::getFeatureMap(MLIRContext *context, unsigned numLoops,
                                      ArrayRef<unsigned> features) {
  SmallVector<AffineExpr> exprs;
  for (unsigned loop : features)
    exprs.push_back(getAffineDimExpr(loop, context));
  return AffineMap::get(numLoops, 0, exprs, context);
}

/// Why the loops of `group` cannot run together, channel by channel; empty if
/// they can.
static std::string findConflict(const ScheduledGroup &group,
                                ArrayRef<linalg::GenericOp> members) {
  // The sums precede the values that depend on them.
  auto isElementwise = [&](linalg::GenericOp member) {
    return llvm::is_contained(group.elementwise, member);
  };
  if (!std::is_partitioned(members.begin(), members.end(),
                           [&](auto member) { return !isElementwise(member); }))
    return "expected reductions and per-channel loops, then loops over the "
           "data";
  SmallVector<linalg::GenericOp> data = group.getDataGenerics();
  for (linalg::GenericOp generic : data)
    if (!haveSameLoops(data.front(), generic))
      return "expected all loops over the data to have the same sizes";
  // Per-channel results must be read at their channel.
  DenseSet<Value> channelValues;
  auto addOutputs = [&](linalg::GenericOp generic) {
    for (OpOperand &init : generic.getDpsInitsMutable()) {
      if (isDataMap(generic.getMatchingIndexingMap(&init)) &&
          generic.getNumLoops() == group.numLoops)
        continue;
      channelValues.insert(getViewed(init.get()));
      if (!generic->getResults().empty())
        channelValues.insert(generic.getTiedOpResult(&init));
    }
  };
  AffineMap featureMap =
      getFeatureMap(data.front().getContext(), group.numLoops, group.features);
  auto readsAtChannel = [&](linalg::GenericOp generic) {
    return llvm::all_of(generic.getDpsInputOperands(), [&](OpOperand *operand) {
      return !channelValues.contains(getViewed(operand->get())) ||
             generic.getMatchingIndexingMap(operand) == featureMap;
    });
  };
  bool areReadAtChannel = true;
  for (const Stage &stage : group.stages) {
    if (linalg::GenericOp reduction = stage.reduction) {
      areReadAtChannel &= readsAtChannel(reduction);
      addOutputs(reduction);
    }
    llvm::for_each(stage.channelwise, addOutputs);
  }
  areReadAtChannel &= llvm::all_of(group.elementwise, readsAtChannel);
  return areReadAtChannel
             ? ""
             : "expected per-channel values to be read at the channel";
}

/// Sorts `members` by role, or says in `reason` why they do not form a group.
static std::optional<ScheduledGroup>
sortByRole(ArrayRef<linalg::GenericOp> members, std::string &reason) {
  ScheduledGroup group;
  for (linalg::GenericOp member : members)
    group.numLoops = std::max<unsigned>(group.numLoops, member.getNumLoops());
  group.stages.emplace_back();
  for (linalg::GenericOp member : members) {
    bool isOverData = member.getNumLoops() == group.numLoops;
    if (isParallel(member)) {
      (isOverData ? group.elementwise : group.stages.back().channelwise)
          .push_back(member);
      continue;
    }
    if (!isOverData) {
      reason = "expected reductions over all loops of the group";
      return std::nullopt;
    }
    if (!getReductionValues(member)) {
      reason = kNotSums.str();
      return std::nullopt;
    }
    // The first stage has no sums if per-channel values precede them.
    if (Stage &last = group.stages.back();
        !last.reduction && last.channelwise.empty())
      last.reduction = member;
    else
      group.stages.push_back({member, {}});
  }
  return group;
}

/// The parallel loops of `reduction`.
static SmallVector<unsigned> getParallelLoops(linalg::GenericOp reduction) {
  SmallVector<unsigned> loops;
  reduction.getParallelDims(loops);
  return loops;
}

/// The loops over data that are features: the parallel loops of the reductions
/// or, without any, the loops that index per-channel operands.
static SmallVector<unsigned> findFeatures(const ScheduledGroup &group) {
  if (SmallVector<linalg::GenericOp> reductions = group.getReductions();
      !reductions.empty())
    return getParallelLoops(reductions.front());
  llvm::SmallBitVector features(group.numLoops);
  for (linalg::GenericOp generic : group.elementwise)
    for (AffineMap map : generic.getIndexingMapsArray())
      if (!isDataMap(map))
        for (unsigned dim : llvm::seq(group.numLoops))
          if (map.isFunctionOfDim(dim))
            features.set(dim);
  return SmallVector<unsigned>(features.set_bits());
}

/// True if the sums of every stage are over the same loops, and are stored in
/// the order of the loops over channels.
static bool hasOrderedSums(const ScheduledGroup &group) {
  return llvm::all_of(group.getReductions(), [&](linalg::GenericOp reduction) {
    AffineMap features =
        getFeatureMap(reduction.getContext(), group.numLoops, group.features);
    return getParallelLoops(reduction) == group.features &&
           llvm::all_of(reduction.getDpsInitsMutable(), [&](OpOperand &init) {
             AffineMap map = reduction.getMatchingIndexingMap(&init);
             return isDataMap(map) || map == features;
           });
  });
}

/// True if the bodies of `group` read no data but their operands and, per
/// channel, elements of that channel.
static bool readsAsGroup(const ScheduledGroup &group) {
  SmallVector<linalg::GenericOp> data = group.getDataGenerics();
  return llvm::none_of(data, readsBeside) &&
         llvm::all_of(group.getChannelwise(), [&](linalg::GenericOp generic) {
           return readsOwnChannelBeside(generic, data, group.features);
         });
}

std::optional<ScheduledGroup>
ScheduledGroup::get(ArrayRef<linalg::GenericOp> members, std::string &reason) {
  reason.clear();
  std::optional<ScheduledGroup> group = sortByRole(members, reason);
  if (!group)
    return std::nullopt;
  group->features = findFeatures(*group);
  auto hasFeatureLoops = [&](linalg::GenericOp generic) {
    return generic.getNumLoops() == group->features.size() &&
           isChannelwise(generic);
  };
  if (group->features.empty() || group->features.size() == group->numLoops)
    reason = "expected loops over channels and loops over their elements";
  else if (!readsAsGroup(*group))
    reason = "expected bodies that read no data but the operands";
  else if (!llvm::all_of(group->getChannelwise(), hasFeatureLoops))
    reason = "expected the per-channel ops to have the loops of the sums";
  else if (!hasOrderedSums(*group))
    reason = "expected sums in the order of the loops over channels";
  else
    reason = findConflict(*group, members);
  if (!reason.empty())
    return std::nullopt;
  return group;
}

SmallVector<linalg::GenericOp> ScheduledGroup::getReductions() const {
  SmallVector<linalg::GenericOp> reductions;
  for (const Stage &stage : stages)
    if (stage.reduction)
      reductions.push_back(stage.reduction);
  return reductions;
}

SmallVector<linalg::GenericOp> ScheduledGroup::getChannelwise() const {
  SmallVector<linalg::GenericOp> generics;
  for (const Stage &stage : stages)
    llvm::append_range(generics, stage.channelwise);
  return generics;
}

SmallVector<linalg::GenericOp> ScheduledGroup::getDataGenerics() const {
  SmallVector<linalg::GenericOp> generics = getReductions();
  llvm::append_range(generics, elementwise);
  return generics;
}

GroupMembers ScheduledGroup::getMembers() const {
  GroupMembers members = getDataGenerics();
  llvm::append_range(members, getChannelwise());
  llvm::sort(members, [](linalg::GenericOp a, linalg::GenericOp b) {
    return a->isBeforeInBlock(b);
  });
  return members;
}

SmallVector<linalg::GenericOp *> ScheduledGroup::getMemberSlots() {
  SmallVector<linalg::GenericOp *> slots;
  for (Stage &stage : stages)
    if (stage.reduction)
      slots.push_back(&stage.reduction);
  for (linalg::GenericOp &generic : elementwise)
    slots.push_back(&generic);
  for (Stage &stage : stages)
    for (linalg::GenericOp &generic : stage.channelwise)
      slots.push_back(&generic);
  llvm::sort(slots, [](linalg::GenericOp *a, linalg::GenericOp *b) {
    return (*a)->isBeforeInBlock(*b);
  });
  return slots;
}

SmallVector<int64_t> ScheduledGroup::getLoopSizes() const {
  SmallVector<int64_t> sizes(numLoops, ShapedType::kDynamic);
  for (linalg::GenericOp generic : getDataGenerics())
    for (auto [known, size] :
         llvm::zip_equal(sizes, generic.getStaticLoopRanges()))
      if (ShapedType::isDynamic(known))
        known = size;
  return sizes;
}

SmallVector<ReassociationIndices>
mlir::bngrad::getMergedDims(AffineMap map,
                            ArrayRef<ReassociationIndices> mergedLoops) {
  SmallVector<ReassociationIndices> dims;
  const ReassociationIndices *last = nullptr;
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    const ReassociationIndices *mergedLoop =
        llvm::find_if(mergedLoops, [&](auto &loops) {
          return dim && llvm::is_contained(loops, dim.getPosition());
        });
    if (mergedLoop == mergedLoops.end())
      mergedLoop = nullptr;
    if (!mergedLoop || mergedLoop != last)
      dims.emplace_back();
    dims.back().push_back(position);
    last = mergedLoop;
  }
  return dims;
}

/// True if the dims of `operand` that `map` indexes by `mergedLoop` can be one
/// dim: they are adjacent in that order and, in a memref, their strides agree.
/// A tensor will be dense.
static bool keepsTogether(Value operand, AffineMap map,
                          const ReassociationIndices &mergedLoop) {
  if (!map.isProjectedPermutation() ||
      !linalg::isDimSequencePreserved(map, mergedLoop))
    return false;
  auto type = dyn_cast<MemRefType>(operand.getType());
  return !type || memref::CollapseShapeOp::isGuaranteedCollapsible(
                      type, getMergedDims(map, mergedLoop));
}

/// True if every operand of `generic` allows `mergedLoop` to be one loop.
static bool keepsTogether(linalg::GenericOp generic,
                          const ReassociationIndices &mergedLoop) {
  return llvm::all_of(generic->getOpOperands(), [&](OpOperand &operand) {
    AffineMap map = generic.getMatchingIndexingMap(&operand);
    // Per-channel loops may read scalars.
    return map.isConstant() || keepsTogether(operand.get(), map, mergedLoop);
  });
}

ReassociationIndices
ScheduledGroup::getChannelLoops(const ReassociationIndices &mergedLoop) const {
  ReassociationIndices loops;
  for (auto [position, loop] : llvm::enumerate(features))
    if (llvm::is_contained(mergedLoop, loop))
      loops.push_back(position);
  return loops;
}

SmallVector<ReassociationIndices> ScheduledGroup::getMergeableLoops() const {
  auto isMergeable = [&](const ReassociationIndices &mergedLoop) {
    return llvm::all_of(getDataGenerics(),
                        [&](auto generic) {
                          return keepsTogether(generic, mergedLoop);
                        }) &&
           (!isFeature(mergedLoop.front()) ||
            llvm::all_of(getChannelwise(), [&](auto generic) {
              return keepsTogether(generic, getChannelLoops(mergedLoop));
            }));
  };
  SmallVector<ReassociationIndices> mergedLoops;
  for (unsigned loop : llvm::seq(numLoops)) {
    if (!mergedLoops.empty() &&
        isFeature(mergedLoops.back().back()) == isFeature(loop)) {
      ReassociationIndices longer = mergedLoops.back();
      longer.push_back(loop);
      if (isMergeable(longer)) {
        mergedLoops.back() = longer;
        continue;
      }
    }
    mergedLoops.push_back({static_cast<int64_t>(loop)});
  }
  return mergedLoops;
}

SmallVector<ReassociationIndices> ScheduledGroup::getMergedLoops() const {
  bool onTensors =
      llvm::all_of(getDataGenerics(), [](linalg::GenericOp generic) {
        return generic.hasPureTensorSemantics();
      });
  if (onTensors)
    return getMergeableLoops();
  SmallVector<ReassociationIndices> loops;
  for (int64_t loop : llvm::seq<int64_t>(numLoops))
    loops.push_back({loop});
  return loops;
}

void mlir::bngrad::emitMissed(linalg::GenericOp generic, StringRef pass,
                              const Twine &text) {
  remark::missed(
      generic.getLoc(),
      remark::RemarkOpts::name("schedule")
          .category(pass)
          .function(generic->getParentOfType<func::FuncOp>().getName()))
      << text.str();
}
