//===- DenseForms.cpp - dense data, merged loops --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DenseForms.h"
#include "Schedule/ScheduledGroup.h"

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-apply-schedule"

using namespace mlir;
using namespace mlir::bngrad;

static bool areOnMemRefs(const GroupMembers &members) {
  return llvm::all_of(members, [](linalg::GenericOp member) {
    return member.hasPureBufferSemantics();
  });
}

static bool isDense(Value memref) {
  return cast<MemRefType>(memref.getType()).getLayout().isIdentity();
}

/// The memrefs with an element per iteration, or nothing if one is read in
/// another order than that of the loops.
static std::optional<llvm::SetVector<Value>>
getData(const ScheduledGroup &group) {
  llvm::SetVector<Value> data;
  for (linalg::GenericOp generic : group.getDataGenerics())
    for (OpOperand &operand : generic->getOpOperands()) {
      AffineMap map = generic.getMatchingIndexingMap(&operand);
      if (!isDataMap(map))
        continue;
      if (!map.isIdentity())
        return std::nullopt;
      data.insert(operand.get());
    }
  return data;
}

/// The orders in which dense data may lie in memory: the loops from the
/// slowest to the fastest.
static SmallVector<SmallVector<int64_t>>
getOrders(const ScheduledGroup &group) {
  SmallVector<int64_t> rowMajor, sums;
  for (unsigned loop : llvm::seq(group.numLoops)) {
    rowMajor.push_back(loop);
    if (!group.isFeature(loop))
      sums.push_back(loop);
  }
  // NHWC, NCHW and CNHW, whatever the order of the loops.
  SmallVector<int64_t> features(group.features.begin(), group.features.end());
  auto withFeaturesAt = [&](unsigned position) {
    SmallVector<int64_t> order(sums);
    order.insert(order.begin() + position, features.begin(), features.end());
    return order;
  };
  SmallVector<SmallVector<int64_t>> orders = {rowMajor};
  for (unsigned position : {static_cast<unsigned>(sums.size()), 1u, 0u})
    if (SmallVector<int64_t> order = withFeaturesAt(position);
        !llvm::is_contained(orders, order))
      orders.push_back(order);
  return orders;
}

namespace {
/// Sizes and strides of one memref, and where it starts.
struct Metadata {
  Value base, offset;
  SmallVector<Value> sizes, strides;
};
} // namespace

static Metadata getMetadata(OpBuilder &b, Location loc, Value memref) {
  auto op = memref::ExtractStridedMetadataOp::create(b, loc, memref);
  auto toValues = [&](ArrayRef<OpFoldResult> mixed) {
    return getValueOrCreateConstantIndexOp(b, loc, mixed);
  };
  return {
      op.getBaseBuffer(),
      getValueOrCreateConstantIndexOp(b, loc, op.getConstifiedMixedOffset()),
      toValues(op.getConstifiedMixedSizes()),
      toValues(op.getConstifiedMixedStrides())};
}

/// An i1: the strides are those of dense data in `order`. That of a dim of one
/// element does not matter.
static Value isDenseIn(OpBuilder &b, Location loc, const Metadata &metadata,
                       ArrayRef<int64_t> order) {
  auto isEqual = [&](Value l, Value r) {
    return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, l, r);
  };
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value expected = one;
  Value result = arith::ConstantIntOp::create(b, loc, 1, 1);
  for (int64_t loop : llvm::reverse(order)) {
    Value fits = b.createOrFold<arith::OrIOp>(
        loc, isEqual(metadata.strides[loop], expected),
        isEqual(metadata.sizes[loop], one));
    result = b.createOrFold<arith::AndIOp>(loc, result, fits);
    expected =
        b.createOrFold<arith::MulIOp>(loc, expected, metadata.sizes[loop]);
  }
  return result;
}

/// `memref`, dense in `order`, with its dims in that order and identity layout.
static Value getDenseView(OpBuilder &b, Location loc, MemRefType type,
                          const Metadata &metadata, ArrayRef<int64_t> order) {
  // memref.view is the op that gives an identity layout at an offset; it wants
  // bytes.
  SmallVector<int64_t> shape = applyPermutation(type.getShape(), order);
  SmallVector<Value> sizes =
      applyPermutation(ArrayRef<Value>(metadata.sizes), order);
  auto bytesType =
      MemRefType::get({ShapedType::kDynamic}, b.getI8Type(),
                      MemRefLayoutAttrInterface(), type.getMemorySpace());
  auto flatType =
      MemRefType::get({ShapedType::kDynamic}, type.getElementType(),
                      MemRefLayoutAttrInterface(), type.getMemorySpace());
  Value count = arith::ConstantIndexOp::create(b, loc, 1);
  for (Value size : metadata.sizes)
    count = b.createOrFold<arith::MulIOp>(loc, count, size);
  count = b.createOrFold<arith::AddIOp>(loc, count, metadata.offset);
  Value flat = memref::ReinterpretCastOp::create(
      b, loc, flatType, metadata.base, OpFoldResult(b.getIndexAttr(0)),
      ArrayRef<OpFoldResult>{count}, ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
  Value bytes = ElementCastOp::create(b, loc, bytesType, flat);
  int64_t width =
      llvm::divideCeil(type.getElementType().getIntOrFloatBitWidth(), 8);
  Value byteOffset = arith::MulIOp::create(
      b, loc, metadata.offset, arith::ConstantIndexOp::create(b, loc, width));
  SmallVector<Value> dynamicSizes;
  for (auto [known, size] : llvm::zip_equal(shape, sizes))
    if (ShapedType::isDynamic(known))
      dynamicSizes.push_back(size);
  auto viewType =
      MemRefType::get(shape, type.getElementType(), MemRefLayoutAttrInterface(),
                      type.getMemorySpace());
  return memref::ViewOp::create(b, loc, viewType, bytes, byteOffset,
                                dynamicSizes);
}

/// The generics of `region`, in order.
static GroupMembers getGenerics(Operation *region) {
  GroupMembers members;
  for (linalg::GenericOp generic :
       region->getRegion(0).getOps<linalg::GenericOp>())
    members.push_back(generic);
  return members;
}

static bool hasWholeBytes(Value memref) {
  Type type = getElementTypeOrSelf(memref);
  return type.isIntOrFloat() &&
         (type.isInteger(1) || type.getIntOrFloatBitWidth() % 8 == 0);
}

/// Whether only generics of `region` use `memref` in it, so that its dims may
/// come in another order there.
static bool isReadByGenerics(Value memref, scf::ExecuteRegionOp region) {
  return llvm::all_of(memref.getUsers(), [&](Operation *user) {
    return !region->isProperAncestor(user) || isa<linalg::GenericOp>(user);
  });
}

namespace {
/// Makes versions of a region.
class RegionVersioner {
public:
  RegionVersioner(RewriterBase &rewriter, scf::ExecuteRegionOp region,
                  const ScheduledGroup &group,
                  const llvm::SetVector<Value> &data)
      : rewriter(rewriter), region(region), loc(region.getLoc()), group(group) {
    // Dense data have no other order.
    mayReorder = llvm::all_of(data, [&](Value memref) {
      return !isDense(memref) && isReadByGenerics(memref, region);
    });
    rewriter.setInsertionPoint(region);
    for (Value memref : data)
      if (!isDense(memref))
        metadata[memref] = getMetadata(rewriter, loc, memref);
  }

  /// As versionByStrides, of which `members` are the generics of the region.
  FailureOr<SmallVector<GroupMembers>> build(const GroupMembers &members);

private:
  Value buildTest(ArrayRef<int64_t> order);
  FailureOr<GroupMembers> cloneWithDenseData(ArrayRef<int64_t> order);
  LogicalResult reorderLoops(linalg::GenericOp generic,
                             ArrayRef<int64_t> order);

  RewriterBase &rewriter;
  scf::ExecuteRegionOp region;
  Location loc;
  const ScheduledGroup &group;
  bool mayReorder;
  llvm::MapVector<Value, Metadata> metadata; // of the data with strides
};
} // namespace

/// An i1: all data with strides are dense in `order`.
Value RegionVersioner::buildTest(ArrayRef<int64_t> order) {
  Value result = arith::ConstantIntOp::create(rewriter, loc, 1, 1);
  for (auto &[memref, strided] : metadata)
    result = rewriter.createOrFold<arith::AndIOp>(
        loc, result, isDenseIn(rewriter, loc, strided, order));
  return result;
}

/// Makes the loops of `generic` follow `order`, that of its data's dims.
LogicalResult RegionVersioner::reorderLoops(linalg::GenericOp generic,
                                            ArrayRef<int64_t> order) {
  SmallVector<AffineMap> maps = generic.getIndexingMapsArray();
  for (AffineMap &map : maps)
    if (isDataMap(map))
      map = AffineMap::getPermutationMap(order, rewriter.getContext());
  generic.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
  SmallVector<unsigned> interchange(order.begin(), order.end());
  if (failed(linalg::interchangeGenericOp(rewriter, generic, interchange)))
    return generic.emitOpError() << "expected loops that can be interchanged";
  return success();
}

FailureOr<GroupMembers>
RegionVersioner::cloneWithDenseData(ArrayRef<int64_t> order) {
  IRMapping mapping;
  for (auto &[memref, strided] : metadata)
    mapping.map(memref,
                getDenseView(rewriter, loc, cast<MemRefType>(memref.getType()),
                             strided, order));
  Operation *version = rewriter.clone(*region, mapping);
  bool isRowMajor = llvm::is_sorted(order);
  for (linalg::GenericOp generic : getGenerics(version))
    if (!isRowMajor && generic.getNumLoops() == group.numLoops &&
        failed(reorderLoops(generic, order)))
      return failure();
  return getGenerics(version);
}

FailureOr<SmallVector<GroupMembers>>
RegionVersioner::build(const GroupMembers &members) {
  SmallVector<GroupMembers> versions;
  for (const SmallVector<int64_t> &order : getOrders(group)) {
    if (!llvm::is_sorted(order) && !mayReorder)
      continue;
    Value isDenseForm = buildTest(order);
    if (matchPattern(isDenseForm, m_Zero()))
      continue;
    bool isCertain = matchPattern(isDenseForm, m_One());
    scf::IfOp choice;
    if (!isCertain) {
      choice = scf::IfOp::create(rewriter, loc, isDenseForm,
                                 /*withElseRegion=*/true);
      rewriter.setInsertionPointToStart(choice.thenBlock());
    }
    FailureOr<GroupMembers> version = cloneWithDenseData(order);
    if (failed(version))
      return failure();
    versions.push_back(*version);
    if (isCertain) {
      rewriter.eraseOp(region);
      return versions;
    }
    rewriter.setInsertionPointToStart(choice.elseBlock());
  }
  rewriter.moveOpBefore(region, rewriter.getInsertionBlock(),
                        rewriter.getInsertionPoint());
  versions.push_back(members);
  return versions;
}

FailureOr<SmallVector<GroupMembers>>
mlir::bngrad::versionByStrides(RewriterBase &rewriter,
                               const GroupMembers &members) {
  SmallVector<GroupMembers> unversioned = {members};
  auto region = dyn_cast<scf::ExecuteRegionOp>(members.front()->getParentOp());
  if (!areOnMemRefs(members))
    return unversioned;
  std::string reason;
  std::optional<ScheduledGroup> group = ScheduledGroup::get(members, reason);
  if (!region || !region.getRegion().hasOneBlock() ||
      region.getNumResults() > 0 || !group || getGenerics(region) != members) {
    LDBG() << "no versions: expected a group alone in its region, without "
              "results; "
           << reason;
    return unversioned;
  }
  std::optional<llvm::SetVector<Value>> data = getData(*group);
  // Strides are read before the region, where its own views do not exist yet.
  auto isStridedInside = [&](Value memref) {
    return !isDense(memref) &&
           region.getRegion().isAncestor(memref.getParentRegion());
  };
  if (data && llvm::all_of(*data, isDense))
    return unversioned;
  if (!data || !llvm::all_of(*data, hasWholeBytes) ||
      llvm::any_of(*data, isStridedInside)) {
    LDBG() << "no versions: expected data of whole bytes from outside of the "
              "region, read in the order of the loops: "
           << members.front();
    return unversioned;
  }
  OpBuilder::InsertionGuard guard(rewriter);
  return RegionVersioner(rewriter, region, *group, *data).build(members);
}

namespace {
/// Makes generics with merged loops.
class LoopMerger {
public:
  explicit LoopMerger(RewriterBase &rewriter) : rewriter(rewriter) {}

  /// `generic` with merged loops, in its place.
  linalg::GenericOp merge(linalg::GenericOp generic,
                          ArrayRef<ReassociationIndices> mergedLoops);

private:
  Value getView(Location loc, Value operand, AffineMap map,
                ArrayRef<ReassociationIndices> mergedLoops);
  /// Expresses `linalg.index` in terms of the merged loops.
  void splitIndices(linalg::GenericOp merged,
                    ArrayRef<ReassociationIndices> mergedLoops,
                    ValueRange sizes);

  RewriterBase &rewriter;
  // By source and type: readers of the same data see the same value.
  DenseMap<std::pair<Value, Type>, Value> views;
};
} // namespace

static bool isMerged(const ReassociationIndices &mergedLoop) {
  return mergedLoop.size() > 1;
}

Value LoopMerger::getView(Location loc, Value operand, AffineMap map,
                          ArrayRef<ReassociationIndices> mergedLoops) {
  SmallVector<ReassociationIndices> dims = getMergedDims(map, mergedLoops);
  auto type = dyn_cast<MemRefType>(operand.getType());
  if (!type || llvm::none_of(dims, isMerged))
    return operand;
  MemRefType viewType =
      memref::CollapseShapeOp::computeCollapsedType(type, dims);
  Value &view = views[{operand, viewType}];
  if (!view)
    view =
        memref::CollapseShapeOp::create(rewriter, loc, viewType, operand, dims);
  return view;
}

void LoopMerger::splitIndices(linalg::GenericOp merged,
                              ArrayRef<ReassociationIndices> mergedLoops,
                              ValueRange sizes) {
  OpBuilder::InsertionGuard guard(rewriter);
  for (auto op : llvm::to_vector(merged.getBody()->getOps<linalg::IndexOp>())) {
    int64_t loop = op.getDim();
    auto mergedLoop =
        llvm::find_if(mergedLoops, [&](const ReassociationIndices &loops) {
          return llvm::is_contained(loops, loop);
        });
    rewriter.setInsertionPoint(op);
    Location loc = op.getLoc();
    Value index = linalg::IndexOp::create(rewriter, loc,
                                          mergedLoop - mergedLoops.begin());
    for (int64_t inner : llvm::reverse(*mergedLoop)) {
      if (inner == loop)
        break;
      index = rewriter.createOrFold<arith::DivSIOp>(loc, index, sizes[inner]);
    }
    if (loop != mergedLoop->front())
      index = rewriter.createOrFold<arith::RemSIOp>(loc, index, sizes[loop]);
    rewriter.replaceOp(op, index);
  }
}

linalg::GenericOp
LoopMerger::merge(linalg::GenericOp generic,
                  ArrayRef<ReassociationIndices> mergedLoops) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(generic);
  Location loc = generic.getLoc();
  SmallVector<Value> operands, sizes;
  SmallVector<AffineMap> maps;
  for (OpOperand &operand : generic->getOpOperands()) {
    AffineMap map = generic.getMatchingIndexingMap(&operand);
    SmallVector<AffineExpr> exprs;
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim)
        exprs.push_back(expr); // a constant
      // The first of several merged loops stands for all.
      for (auto [i, mergedLoop] : llvm::enumerate(mergedLoops))
        if (dim && dim.getPosition() == mergedLoop.front())
          exprs.push_back(rewriter.getAffineDimExpr(i));
    }
    operands.push_back(getView(loc, operand.get(), map, mergedLoops));
    maps.push_back(
        AffineMap::get(mergedLoops.size(), 0, exprs, rewriter.getContext()));
  }
  SmallVector<utils::IteratorType> iterators;
  for (const ReassociationIndices &mergedLoop : mergedLoops)
    iterators.push_back(generic.getIteratorTypesArray()[mergedLoop.front()]);
  if (generic.hasIndexSemantics())
    for (Range range : cast<linalg::LinalgOp>(generic.getOperation())
                           .createLoopRanges(rewriter, loc))
      sizes.push_back(
          getValueOrCreateConstantIndexOp(rewriter, loc, range.size));
  ArrayRef<Value> all = operands;
  auto merged = linalg::GenericOp::create(
      rewriter, loc, all.take_front(generic.getNumDpsInputs()),
      all.drop_front(generic.getNumDpsInputs()), maps, iterators);
  merged->setDiscardableAttrs(generic->getDiscardableAttrDictionary());
  merged.getRegion().takeBody(generic.getRegion());
  splitIndices(merged, mergedLoops, sizes);
  rewriter.eraseOp(generic);
  return merged;
}

void mlir::bngrad::mergeLoops(RewriterBase &rewriter, ScheduledGroup &group) {
  if (!areOnMemRefs(group.getMembers()))
    return;
  SmallVector<ReassociationIndices> mergedLoops = group.getMergeableLoops();
  // The loops of per-channel generics are the features.
  SmallVector<ReassociationIndices> channelLoops;
  SmallVector<unsigned> features;
  for (auto [loop, mergedLoop] : llvm::enumerate(mergedLoops))
    if (group.isFeature(mergedLoop.front())) {
      channelLoops.push_back(group.getChannelLoops(mergedLoop));
      features.push_back(loop);
    }
  LoopMerger merger(rewriter);
  for (linalg::GenericOp *member : group.getMemberSlots()) {
    ArrayRef<ReassociationIndices> merged =
        member->getNumLoops() == group.numLoops ? mergedLoops : channelLoops;
    if (llvm::any_of(merged, isMerged))
      *member = merger.merge(*member, merged);
  }
  group.numLoops = mergedLoops.size();
  group.features = std::move(features);
}
