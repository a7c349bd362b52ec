//===- MergeLoops.cpp - merging of a group's loops ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MergeLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::bngrad;

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
    if (Value view = dataViews.lookup(operand.get())) {
      operands.push_back(view);
      maps.push_back(rewriter.getMultiDimIdentityMap(mergedLoops.size()));
      continue;
    }
    SmallVector<AffineExpr> exprs;
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim)
        exprs.push_back(expr); // a constant
      // The first of several merged loops represents all of them.
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
  if (llvm::any_of(group.getMembers(), [](linalg::GenericOp member) {
        return !member.hasPureBufferSemantics();
      }))
    return;
  SmallVector<ReassociationIndices> mergedLoops = group.getMergeableLoops();
  // Per-channel generics have only the feature loops.
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
