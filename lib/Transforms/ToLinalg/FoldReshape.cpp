//===- FoldReshape.cpp - loops of the finer shape on both sides -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reshape between two generics prevents their fusion, unless the loops of the
// generic with the coarse shape are split as the reshape splits its dims. All
// generics that share such a loop (the sums of a gradient, its grad_input, and
// all that is fused with them) must be split alike, or the reshape only moves.
// So one rewrite finds the class of a dim, that is, every loop of a generic and
// every dim of a tensor with the same index, and splits all of it.
//
// Upstream's patterns (populateFoldReshapeOpsByExpansionPatterns) split one
// generic at a time and put reshapes on its other operands and results. If a
// class contains a part of itself, as when a vector is expanded to 1xN and one
// loop reads both forms, those patterns never end and add a dim in each round.
//
// Measure: the number of groups of more than one dim, over all collapses that a
// generic reads, and all expansions of a generic's result that a generic reads.
// A rewrite removes at least one and adds none: it creates reshapes only at the
// ends of the class, at values that no generic computes or that no generic
// reads. Classes that cannot be split are unchanged.
//
//===----------------------------------------------------------------------===//

#include "FoldReshape.h"

#include "DimClass.h"
#include "Utils/Utils.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-fuse"

using namespace mlir;
using namespace mlir::bngrad;

using tensor::CollapseShapeOp;
using tensor::ExpandShapeOp;

/// Whether a body uses the index of a loop of the class.
static bool usesIndex(linalg::GenericOp generic, const DimClass &dimClass) {
  return generic
      .walk([&](linalg::IndexOp index) {
        return index->getParentOfType<linalg::GenericOp>() == generic &&
                       dimClass.hasLoop(generic, index.getDim())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The sizes of the dims `group` that the dims of `dimClass` are split into;
/// failure if they do not follow from the size of a dim of the class.
static FailureOr<SmallVector<int64_t>> getSplitSizes(PatternRewriter &rewriter,
                                                     const Reshape &reshape,
                                                     int64_t coarseDim,
                                                     const DimClass &dimClass) {
  std::optional<int64_t> size = dimClass.getSize();
  if (!size)
    return rewriter.notifyMatchFailure(
        reshape.op, "dims of one index have different static sizes");
  SmallVector<int64_t> sizes;
  int64_t staticProduct = 1;
  int64_t *unknown = nullptr;
  for (int64_t dim : reshape.groups[coarseDim])
    sizes.push_back(reshape.getFineSize(dim));
  for (int64_t &fineSize : sizes) {
    if (!ShapedType::isDynamic(fineSize))
      staticProduct *= fineSize;
    else if (unknown)
      return rewriter.notifyMatchFailure(
          reshape.op, "several sizes of the group are dynamic");
    else
      unknown = &fineSize;
  }
  bool isKnown = !ShapedType::isDynamic(*size);
  if (!unknown) {
    if (isKnown && *size != staticProduct)
      return rewriter.notifyMatchFailure(
          reshape.op, "the size of the dim is not the product of the group's");
    return sizes;
  }
  if (staticProduct == 0 || (isKnown && *size % staticProduct != 0))
    return rewriter.notifyMatchFailure(
        reshape.op, "the static sizes of the group do not divide that of the "
                    "dim");
  if (isKnown)
    *unknown = *size / staticProduct;
  return sizes;
}

namespace {
/// Splits all dims of a class.
class ClassSplitter {
public:
  ClassSplitter(RewriterBase &b, const DimClass &dimClass,
                ArrayRef<int64_t> sizes)
      : b(b), dimClass(dimClass), sizes(sizes) {}

  /// False if `reshape` splits a dim of the class differently, or has the class
  /// as part of a dim: such a reshape stays.
  bool canSplit(const Reshape &reshape) const {
    return getSplitShape(reshape).has_value();
  }

  /// `ops` are the ops of the class, in their order in the function.
  void split(ArrayRef<Operation *> ops);

private:
  /// Whether each dim is split.
  using Dims = SmallVector<bool>;
  /// The fine side of a reshape between split values, and its groups.
  struct SplitShape {
    SmallVector<int64_t> sizes;
    SmallVector<ReassociationIndices> groups;
  };

  Dims getDims(Value value) const;
  Dims getDims(linalg::GenericOp generic, AffineMap map) const;
  RankedTensorType getSplitType(Type type, const Dims &dims) const;
  SmallVector<ReassociationIndices> getGroups(const Dims &dims) const;
  SmallVector<OpFoldResult> getSplitSizes(Location loc, OpFoldResult size);

  Value getSplit(Value value, const Dims &dims);
  Value expand(Value value, const Dims &dims);
  Value remake(Value value, const Dims &dims);
  Value castTo(Location loc, RankedTensorType type, Value value);

  void splitGeneric(linalg::GenericOp generic);
  void splitBody(linalg::GenericOp generic, linalg::GenericOp replacement);
  bool isMatched(const ReassociationIndices &group, Value fine) const;
  std::optional<SplitShape> getSplitShape(const Reshape &reshape) const;
  void splitReshape(const Reshape &reshape);
  void eraseUnused(SetVector<Operation *> &reshapes);

  RewriterBase &b;
  const DimClass &dimClass;
  ArrayRef<int64_t> sizes;
  DenseMap<Value, Value> splitValues;
  SmallVector<std::pair<Operation *, SmallVector<Value>>> replacements;
};
} // namespace

ClassSplitter::Dims ClassSplitter::getDims(Value value) const {
  Dims dims;
  for (int64_t dim :
       llvm::seq(cast<RankedTensorType>(value.getType()).getRank()))
    dims.push_back(dimClass.hasDim(value, dim));
  return dims;
}

ClassSplitter::Dims ClassSplitter::getDims(linalg::GenericOp generic,
                                           AffineMap map) const {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
    return dimClass.hasLoop(generic, cast<AffineDimExpr>(expr).getPosition());
  });
}

RankedTensorType ClassSplitter::getSplitType(Type type,
                                             const Dims &dims) const {
  auto tensorType = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(tensorType.getShape())) {
    if (dims[dim])
      shape.append(sizes.begin(), sizes.end());
    else
      shape.push_back(size);
  }
  return RankedTensorType::get(shape, tensorType.getElementType(),
                               tensorType.getEncoding());
}

SmallVector<ReassociationIndices>
ClassSplitter::getGroups(const Dims &dims) const {
  SmallVector<ReassociationIndices> groups;
  int64_t next = 0;
  for (bool isSplit : dims) {
    ReassociationIndices &group = groups.emplace_back();
    for (int64_t count = isSplit ? sizes.size() : 1; count > 0; --count)
      group.push_back(next++);
  }
  return groups;
}

/// The sizes that a dim of `size` is split into.
SmallVector<OpFoldResult> ClassSplitter::getSplitSizes(Location loc,
                                                       OpFoldResult size) {
  int64_t product = 1;
  for (int64_t splitSize : sizes)
    if (!ShapedType::isDynamic(splitSize))
      product *= splitSize;
  AffineExpr quotient = b.getAffineSymbolExpr(0).floorDiv(product);
  return llvm::map_to_vector(sizes, [&](int64_t splitSize) {
    return ShapedType::isDynamic(splitSize)
               ? affine::makeComposedFoldedAffineApply(b, loc, quotient, size)
               : OpFoldResult(b.getIndexAttr(splitSize));
  });
}

Value ClassSplitter::castTo(Location loc, RankedTensorType type, Value value) {
  if (value.getType() == type)
    return value;
  return tensor::CastOp::create(b, loc, type, value);
}

/// A tensor.empty, or a linalg.fill of one, of the split shape.
Value ClassSplitter::remake(Value value, const Dims &dims) {
  Location loc = value.getLoc();
  if (auto fill = value.getDefiningOp<linalg::FillOp>()) {
    Value init = remake(fill.getDpsInits()[0], dims);
    return linalg::FillOp::create(b, loc, fill.getInputs(), init).getResult(0);
  }
  auto empty = value.getDefiningOp<tensor::EmptyOp>();
  SmallVector<OpFoldResult> splitSizes;
  for (auto [dim, size] : llvm::enumerate(empty.getMixedSizes())) {
    if (dims[dim])
      llvm::append_range(splitSizes, getSplitSizes(loc, size));
    else
      splitSizes.push_back(size);
  }
  Value remade = tensor::EmptyOp::create(b, loc, splitSizes,
                                         empty.getType().getElementType(),
                                         empty.getType().getEncoding());
  return castTo(loc, getSplitType(value.getType(), dims), remade);
}

/// Splits a value that comes from outside of the class.
Value ClassSplitter::expand(Value value, const Dims &dims) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(value);
  Location loc = value.getLoc();
  // Use sizes that are known elsewhere in the class.
  auto type = cast<RankedTensorType>(value.getType());
  bool isStatic = llvm::none_of(sizes, ShapedType::isDynamic);
  SmallVector<int64_t> shape(type.getShape());
  for (auto [dim, isSplit] : llvm::enumerate(dims))
    if (isSplit && isStatic)
      shape[dim] = llvm::product_of(sizes);
  Value known = castTo(loc, type.clone(shape), value);
  return ExpandShapeOp::create(b, loc, getSplitType(value.getType(), dims),
                               known, getGroups(dims));
}

/// `value` with the dims `dims` split.
Value ClassSplitter::getSplit(Value value, const Dims &dims) {
  if (llvm::none_of(dims, [](bool isSplit) { return isSplit; }))
    return value;
  if (isRemade(value))
    return remake(value, dims);
  Value &split = splitValues[value];
  if (!split)
    split = expand(value, dims);
  return split;
}

void ClassSplitter::splitBody(linalg::GenericOp generic,
                              linalg::GenericOp replacement) {
  SmallVector<int64_t> firstLoops;
  int64_t next = 0;
  for (int64_t loop : llvm::seq<int64_t>(generic.getNumLoops())) {
    firstLoops.push_back(next);
    next += dimClass.hasLoop(generic, loop) ? sizes.size() : 1;
  }
  b.cloneRegionBefore(generic.getRegion(), replacement.getRegion(),
                      replacement.getRegion().begin());
  SmallVector<linalg::IndexOp> indices;
  replacement.walk([&](linalg::IndexOp index) {
    if (index->getParentOfType<linalg::GenericOp>() == replacement)
      indices.push_back(index);
  });
  for (linalg::IndexOp index : indices) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(index);
    Location loc = index.getLoc();
    int64_t loop = index.getDim();
    Value linear = linalg::IndexOp::create(b, loc, firstLoops[loop]);
    if (dimClass.hasLoop(generic, loop))
      for (int64_t i : llvm::seq<int64_t>(1, sizes.size())) {
        Value size = arith::ConstantIndexOp::create(b, loc, sizes[i]);
        Value inner = linalg::IndexOp::create(b, loc, firstLoops[loop] + i);
        linear = arith::AddIOp::create(
            b, loc, arith::MulIOp::create(b, loc, linear, size), inner);
      }
    b.replaceOp(index, linear);
  }
}

void ClassSplitter::splitGeneric(linalg::GenericOp generic) {
  SmallVector<AffineExpr> firstLoops;
  SmallVector<utils::IteratorType> iterators;
  auto countOf = [&](int64_t loop) -> int64_t {
    return dimClass.hasLoop(generic, loop) ? sizes.size() : 1;
  };
  for (auto [loop, iterator] :
       llvm::enumerate(generic.getIteratorTypesArray())) {
    firstLoops.push_back(b.getAffineDimExpr(iterators.size()));
    iterators.append(countOf(loop), iterator);
  }
  SmallVector<AffineMap> maps;
  SmallVector<Value> operands;
  for (OpOperand &operand : generic->getOpOperands()) {
    AffineMap map = generic.getMatchingIndexingMap(&operand);
    SmallVector<AffineExpr> results;
    for (AffineExpr expr : map.getResults()) {
      int64_t loop = cast<AffineDimExpr>(expr).getPosition();
      int64_t first = cast<AffineDimExpr>(firstLoops[loop]).getPosition();
      for (int64_t i : llvm::seq(countOf(loop)))
        results.push_back(b.getAffineDimExpr(first + i));
    }
    maps.push_back(
        AffineMap::get(iterators.size(), 0, results, b.getContext()));
    operands.push_back(getSplit(operand.get(), getDims(generic, map)));
  }
  auto inits = ArrayRef(operands).drop_front(generic.getNumDpsInputs());
  auto split = linalg::GenericOp::create(
      b, generic.getLoc(), ValueRange(inits).getTypes(),
      ArrayRef(operands).take_front(generic.getNumDpsInputs()), inits,
      b.getAffineMapArrayAttr(maps),
      b.getArrayAttr(llvm::map_to_vector(
          iterators,
          [&](utils::IteratorType iterator) -> Attribute {
            return linalg::IteratorTypeAttr::get(b.getContext(), iterator);
          })),
      generic.getDocAttr(), generic.getLibraryCallAttr());
  split->setDiscardableAttrs(generic->getDiscardableAttrDictionary());
  splitBody(generic, split);
  SmallVector<Value> collapsed;
  for (auto [result, splitResult] :
       llvm::zip_equal(generic.getResults(), split.getResults())) {
    Dims dims = getDims(generic, generic.getIndexingMapMatchingResult(result));
    splitValues[result] = splitResult;
    Value whole = splitResult;
    if (llvm::is_contained(dims, true))
      whole =
          CollapseShapeOp::create(b, result.getLoc(), whole, getGroups(dims));
    collapsed.push_back(castTo(
        result.getLoc(), cast<RankedTensorType>(result.getType()), whole));
  }
  replacements.push_back({generic, std::move(collapsed)});
}

/// True if a dim of the class is split into the dims `group` of `fine`.
bool ClassSplitter::isMatched(const ReassociationIndices &group,
                              Value fine) const {
  auto type = cast<RankedTensorType>(fine.getType());
  if (group.size() != sizes.size())
    return false;
  // One size follows from the others.
  int64_t unknown = 0;
  for (auto [dim, size] : llvm::zip_equal(group, sizes)) {
    // The class would contain a part of itself.
    if (dimClass.hasDim(fine, dim))
      return false;
    if (type.isDynamicDim(dim) || ShapedType::isDynamic(size))
      ++unknown;
    else if (type.getDimSize(dim) != size)
      return false;
  }
  return unknown <= 1;
}

std::optional<ClassSplitter::SplitShape>
ClassSplitter::getSplitShape(const Reshape &reshape) const {
  Dims coarseDims = getDims(reshape.coarse);
  Dims fineDims = getDims(reshape.fine);
  SplitShape split;
  for (auto [dim, group] : llvm::enumerate(reshape.groups)) {
    if (coarseDims[dim]) {
      if (group.size() > 1 && !isMatched(group, reshape.fine))
        return std::nullopt;
      for (int64_t size : sizes) {
        split.groups.push_back({static_cast<int64_t>(split.sizes.size())});
        split.sizes.push_back(size);
      }
      continue;
    }
    split.groups.emplace_back();
    for (int64_t fineDim : group) {
      if (fineDims[fineDim])
        return std::nullopt;
      split.groups.back().push_back(split.sizes.size());
      split.sizes.push_back(reshape.getFineSize(fineDim));
    }
  }
  return split;
}

/// Recreates a reshape between split values.
void ClassSplitter::splitReshape(const Reshape &reshape) {
  std::optional<SplitShape> splitShape = getSplitShape(reshape);
  if (!splitShape) {
    LDBG() << "between values that are not split: another split of the dim, or "
              "a part of it: "
           << *reshape.op;
    return;
  }
  ArrayRef<ReassociationIndices> groups = splitShape->groups;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(reshape.op);
  Location loc = reshape.op->getLoc();
  bool isWhole = llvm::all_of(groups, [](const ReassociationIndices &group) {
    return group.size() == 1;
  });
  Dims coarseDims = getDims(reshape.coarse);
  Dims fineDims = getDims(reshape.fine);
  auto fineType = cast<RankedTensorType>(reshape.fine.getType());
  RankedTensorType type = fineType.clone(splitShape->sizes);
  if (isa<CollapseShapeOp>(reshape.op)) {
    Value split = castTo(loc, type, getSplit(reshape.fine, fineDims));
    if (!isWhole)
      split = CollapseShapeOp::create(b, loc, split, groups);
    splitValues[reshape.coarse] = split;
    return;
  }
  Value split = getSplit(reshape.coarse, coarseDims);
  if (!isWhole) {
    SmallVector<OpFoldResult> splitSizes;
    SmallVector<OpFoldResult> fineSizes =
        cast<ExpandShapeOp>(reshape.op).getMixedOutputShape();
    int64_t splitDim = 0;
    for (auto [dim, group] : llvm::enumerate(reshape.groups)) {
      if (!coarseDims[dim]) {
        for (int64_t fineDim : group)
          splitSizes.push_back(fineSizes[fineDim]);
        ++splitDim;
        continue;
      }
      for (size_t i = 0; i < sizes.size(); ++i)
        splitSizes.push_back(tensor::getMixedSize(b, loc, split, splitDim++));
    }
    split = ExpandShapeOp::create(b, loc, type, split, groups, splitSizes);
  }
  splitValues[reshape.fine] = split;
  // Without dims of the class, readers see the same value.
  if (!llvm::is_contained(fineDims, true))
    replacements.push_back({reshape.op, {castTo(loc, fineType, split)}});
}

void ClassSplitter::split(ArrayRef<Operation *> ops) {
  for (Operation *op : ops) {
    b.setInsertionPoint(op);
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      splitGeneric(generic);
    else
      splitReshape(*Reshape::get(op));
  }
  SetVector<Operation *> left(ops.begin(), ops.end());
  for (auto &[op, values] : replacements) {
    b.replaceOp(op, values);
    left.remove(op);
    for (Value value : values)
      for (Operation *def = value.getDefiningOp();
           isa_and_present<tensor::CastOp, CollapseShapeOp>(def);
           def = def->getOperand(0).getDefiningOp())
        left.insert(def);
  }
  eraseUnused(left);
}

/// Erases unused reshapes: fusion would count them as readers.
void ClassSplitter::eraseUnused(SetVector<Operation *> &reshapes) {
  for (bool changed = true; changed;) {
    changed = reshapes.remove_if([&](Operation *op) {
      if (!isOpTriviallyDead(op))
        return false;
      b.eraseOp(op);
      return true;
    });
  }
}

/// The ops of a class in their order in the function.
static SmallVector<Operation *> getInOrder(const SetVector<Operation *> &ops,
                                           Operation *function) {
  SmallVector<Operation *> inOrder;
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (ops.contains(op))
      inOrder.push_back(op);
  });
  return inOrder;
}

/// True if splitting the class would split an element-wise loop over more dims
/// than the reshaped value has, such as a loop over all elements for a vector
/// of channels: nothing could then be fused with it.
static bool isPartOfLoops(const DimClass &dimClass, Value coarse) {
  int64_t rank = cast<RankedTensorType>(coarse.getType()).getRank();
  return llvm::any_of(dimClass.getOps(), [&](Operation *op) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    return generic && isParallel(generic) && generic.getNumLoops() > rank;
  });
}

/// Splits dim `coarseDim` of the coarse side and its whole class.
static LogicalResult foldGroup(PatternRewriter &rewriter,
                               const Reshape &reshape, int64_t coarseDim) {
  Operation *op = reshape.op;
  DimClass dimClass(reshape.coarse, coarseDim);
  if (isPartOfLoops(dimClass, reshape.coarse))
    return rewriter.notifyMatchFailure(op, "a part of the loops' dims");
  FailureOr<SmallVector<int64_t>> sizes =
      getSplitSizes(rewriter, reshape, coarseDim, dimClass);
  if (failed(sizes))
    return failure();
  // Computing the index takes the sizes of all dims but the first.
  if (llvm::any_of(ArrayRef(*sizes).drop_front(), ShapedType::isDynamic))
    for (Operation *member : dimClass.getOps())
      if (auto generic = dyn_cast<linalg::GenericOp>(member);
          generic && usesIndex(generic, dimClass))
        return rewriter.notifyMatchFailure(op, "an index of dynamic sizes");
  ClassSplitter splitter(rewriter, dimClass, *sizes);
  if (!splitter.canSplit(reshape))
    return rewriter.notifyMatchFailure(
        op, "it splits its dim in another way, or another dim of it is in the "
            "class");
  Operation *function = op->getParentWithTrait<OpTrait::IsIsolatedFromAbove>();
  splitter.split(getInOrder(dimClass.getOps(), function));
  return success();
}

namespace {
/// Matches a collapse that a generic reads, or an expansion of a generic's
/// result that a generic reads.
template <typename OpTy> struct FoldReshape : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (llvm::none_of(op->getUsers(), getSplittable))
      return rewriter.notifyMatchFailure(op, "no generic reads it");
    if (isa<ExpandShapeOp>(op) && !getSplittable(op.getSrc().getDefiningOp()))
      return rewriter.notifyMatchFailure(op, "no generic's result");
    Reshape reshape(op);
    for (auto [dim, group] : llvm::enumerate(reshape.groups))
      if (group.size() > 1 && succeeded(foldGroup(rewriter, reshape, dim)))
        return success();
    return rewriter.notifyMatchFailure(op, "no group of dims to split");
  }
};
} // namespace

void mlir::bngrad::populateFoldReshapePatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<FoldReshape<CollapseShapeOp>, FoldReshape<ExpandShapeOp>>(
      context);
  CollapseShapeOp::getCanonicalizationPatterns(patterns, context);
  ExpandShapeOp::getCanonicalizationPatterns(patterns, context);
}
