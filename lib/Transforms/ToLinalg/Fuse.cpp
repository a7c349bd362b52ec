//===- Fuse.cpp - bngrad-fuse: element-wise fusion ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's element-wise fusion does not fuse a producer that has two readers,
// such as grad_output or input, which both the sums and grad_input read. With a
// control function that always agrees, it moves per-channel square roots and
// divisions into the loop over the elements. The rules here avoid both.
// The measure is lexicographic. Every rewrite lowers the first of these numbers
// that it changes: named element-wise ops; the generics that each
// tensor.extract depends on, counted once per path; generics; the generics that
// each generic depends on, counted in the same way; groups of dims that
// reshapes split or merge (FoldReshape.cpp); unread inits that are not empty;
// operands and results of generics.
//
//===----------------------------------------------------------------------===//

#include "FoldConstants.h"
#include "FoldReshape.h"
#include "Utils/Utils.h"

#include "BNGrad/Transforms/ToLinalg/Passes.h"
#include "BNGrad/Transforms/ToLinalg/Patterns.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-fuse"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADFUSEPASS
#include "BNGrad/Transforms/ToLinalg/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// True if `value` depends on a reduction through per-channel generics. Those
/// in `visited` do not.
static bool followsFromReduction(Value value, DenseSet<Operation *> &visited) {
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  if (!generic || !visited.insert(generic).second)
    return false;
  if (!isParallel(generic))
    return true;
  return llvm::any_of(generic.getDpsInputs(), [&](Value input) {
    return followsFromReduction(input, visited);
  });
}

/// See below; `visited` holds generics that are known not to be such a part.
static bool isElementwisePart(linalg::GenericOp generic,
                              DenseSet<Operation *> &visited) {
  if (!isParallel(generic) || !visited.insert(generic).second)
    return false;
  return llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *operand) {
    AffineMap map = generic.getMatchingIndexingMap(operand);
    if (map.getNumResults() < map.getNumDims()) {
      DenseSet<Operation *> visitedChannels;
      return followsFromReduction(operand->get(), visitedChannels);
    }
    auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
    return producer && isElementwisePart(producer, visited);
  });
}

/// True if `generic` belongs to the element-wise part of a gradient: it reads
/// per-channel values that follow from sums, or it reads a result of such a
/// generic.
static bool isElementwisePart(linalg::GenericOp generic) {
  DenseSet<Operation *> visited;
  return isElementwisePart(generic, visited);
}

/// True if `producer` only widens the elements of its one input.
static bool isWidening(linalg::GenericOp producer) {
  Block *body = producer.getBody();
  auto widened =
      body->getTerminator()->getOperand(0).getDefiningOp<arith::ExtFOp>();
  return producer.getNumResults() == 1 && isParallel(producer) &&
         producer.getNumDpsInputs() == 1 && widened &&
         widened.getIn() == body->getArgument(0) &&
         llvm::all_of(producer.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isIdentity(); });
}

/// True if `consumer` reads an element of a tensor in every iteration, unlike a
/// matrix product.
static bool readsElements(linalg::GenericOp consumer) {
  return llvm::any_of(consumer.getDpsInputOperands(), [&](OpOperand *input) {
    return consumer.getMatchingIndexingMap(input).isPermutation();
  });
}

static bool isReadBySums(linalg::GenericOp producer) {
  return llvm::any_of(producer->getUsers(), [](Operation *user) {
    auto reader = dyn_cast<linalg::GenericOp>(user);
    return reader && !isParallel(reader);
  });
}

/// True if `generic` reads all elements of `value`.
static bool readsAllOf(linalg::GenericOp generic, Value value) {
  return llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *input) {
    return input->get() == value &&
           generic.getMatchingIndexingMap(input).isPermutation();
  });
}

/// True if all elements of `value` are equal, so that FoldUniformInputs makes
/// it a scalar.
static bool isUniform(Value value) {
  SplatElementsAttr constant;
  return value.getDefiningOp<linalg::FillOp>() ||
         value.getDefiningOp<tensor::SplatOp>() ||
         matchPattern(value, m_Constant(&constant));
}

/// The tensors from whose elements `part` computes its own, without those of
/// equal elements.
static void collectElements(linalg::GenericOp part,
                            SmallVectorImpl<Value> &elements) {
  for (OpOperand *input : part.getDpsInputOperands())
    if (part.getMatchingIndexingMap(input).isPermutation() &&
        !isUniform(input->get()))
      elements.push_back(input->get());
}

/// True if `reader` loads no more if it computes `part`, a generic of the
/// element-wise part of a batch norm, than if it reads the value: it reads the
/// input of the batch norm in any case.
static bool isComputedWithoutLoads(linalg::GenericOp part,
                                   linalg::GenericOp reader) {
  SmallVector<Value> elements;
  collectElements(part, elements);
  auto numShared = llvm::count_if(
      elements, [&](Value value) { return readsAllOf(reader, value); });
  return numShared > 0 && elements.size() - numShared <= 1;
}

/// True if `reader` reads all tensors from whose elements `part` follows.
/// `visited` holds generics that were asked before.
static bool readsElementsOf(linalg::GenericOp reader, linalg::GenericOp part,
                            DenseSet<Operation *> &visited) {
  if (!visited.insert(part).second)
    return true;
  SmallVector<Value> elements;
  collectElements(part, elements);
  return llvm::all_of(elements, [&](Value value) {
    if (readsAllOf(reader, value))
      return true;
    auto producer = value.getDefiningOp<linalg::GenericOp>();
    return producer && isElementwisePart(producer) &&
           readsElementsOf(reader, producer, visited);
  });
}

/// True if everything that uses `value`, directly or through other generics,
/// reads all tensors from which `part` follows. Sets `hasSums` if sums do.
/// `visited` holds generics that were asked before.
static bool isForGradient(linalg::GenericOp part, linalg::GenericOp value,
                          DenseSet<Operation *> &visited, bool &hasSums) {
  if (!visited.insert(value).second)
    return true;
  return llvm::all_of(value->getUsers(), [&](Operation *user) {
    auto reader = dyn_cast<linalg::GenericOp>(user);
    if (!reader)
      return false;
    hasSums |= !isParallel(reader);
    DenseSet<Operation *> visitedParts;
    return readsElementsOf(reader, part, visitedParts) ||
           (isParallel(reader) &&
            isForGradient(part, reader, visited, hasSums));
  });
}

/// True if `consumer` reads `part`, an element-wise part of a forward pass, for
/// a gradient of its output, such as for the condition of a ReLU: the sums of
/// the gradient read the input of the batch norm in any case.
static bool isForGradient(linalg::GenericOp part, linalg::GenericOp consumer) {
  DenseSet<Operation *> visited;
  bool hasSums = false;
  return isParallel(consumer) && isElementwisePart(part) &&
         isForGradient(part, consumer, visited, hasSums) && hasSums;
}

static bool isReadByIdentity(OpOperand &use) {
  return cast<linalg::GenericOp>(use.getOwner())
      .getMatchingIndexingMap(&use)
      .isIdentity();
}

/// The reason why it costs more to compute the producer at `use` than to read
/// its value there, judged from this use alone; empty if it does not.
static StringRef findCost(OpOperand &use) {
  if (!linalg::areElementwiseOpsFusable(&use))
    return "upstream cannot fuse it";
  auto producer = cast<linalg::GenericOp>(use.get().getDefiningOp());
  auto consumer = cast<linalg::GenericOp>(use.getOwner());
  if (producer->getBlock() != consumer->getBlock())
    return "it is in another block";
  // With the identity map, producer and consumer have the same loops; else a
  // per-channel value would be computed once per element. A widening may be:
  // gradients widen their parameters there, too.
  if (!isReadByIdentity(use) &&
      !(isWidening(producer) && readsElements(consumer)))
    return "it is not read by the identity map";
  // A transposing producer would make loads of the consumer strided.
  AffineMap resultMap =
      producer.getIndexingMapMatchingResult(cast<OpResult>(use.get()));
  for (OpOperand *input : producer.getDpsInputOperands()) {
    AffineMap map = producer.getMatchingIndexingMap(input);
    if (map.getNumResults() == resultMap.getNumResults() && map != resultMap)
      return "it transposes an input";
  }
  // grad_input belongs to the group of its own sums, not of the next sums. The
  // gradient of an activation may follow from the batch norm's input.
  if (!isParallel(consumer) && isElementwisePart(producer) &&
      !isComputedWithoutLoads(producer, consumer))
    return "it is part of a gradient, and the reader is a sum";
  return "";
}

/// True if computing the producer at `use` costs no more than reading its value
/// there.
static bool isFusable(OpOperand &use) {
  StringRef cost = findCost(use);
  if (!cost.empty() && use.get().getDefiningOp<linalg::GenericOp>())
    LDBG() << "operand " << use.getOperandNumber() << " is not fused, as "
           << cost << ": " << *use.getOwner();
  return cost.empty();
}

/// True if every use of a result of `producer` is fusable, so that the producer
/// can be fused into all of them and disappear.
static bool mayDisappear(linalg::GenericOp producer) {
  return llvm::all_of(producer->getUses(), isFusable);
}

/// Collects in `moved` the reshapes of `producer`'s results before `consumer`.
/// False if anything else reads them before it, or in another block.
static bool collectReshapesBefore(Operation *producer,
                                  linalg::GenericOp consumer,
                                  SetVector<Operation *> &moved) {
  return llvm::all_of(producer->getUsers(), [&](Operation *user) {
    if (user == consumer)
      return !moved.contains(producer);
    Operation *ancestor = consumer->getBlock()->findAncestorOpInBlock(*user);
    if (!ancestor)
      return false;
    if (consumer->isBeforeInBlock(ancestor))
      return true;
    if (ancestor != user ||
        !isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
            user))
      return false;
    moved.insert(user);
    return collectReshapesBefore(user, consumer, moved);
  });
}

/// True if, after fusion, the results of `producer` can be results of
/// `consumer`: everything else reads them later in the same block once the
/// reshapes `moved` are moved behind the consumer.
static bool mayYieldResults(linalg::GenericOp producer,
                            linalg::GenericOp consumer,
                            SetVector<Operation *> &moved) {
  moved.clear();
  return collectReshapesBefore(producer, consumer, moved);
}

/// The first fusable operand by which `consumer` reads `producer`, or null.
static OpOperand *getRead(linalg::GenericOp consumer,
                          linalg::GenericOp producer) {
  for (OpOperand *operand : consumer.getDpsInputOperands())
    if (operand->get().getDefiningOp() == producer && isFusable(*operand))
      return operand;
  return nullptr;
}

/// True if `consumer` reads `producer` only by fusable operands.
static bool isFusableEverywhere(linalg::GenericOp producer,
                                linalg::GenericOp consumer) {
  return llvm::all_of(producer->getUses(), [&](OpOperand &use) {
    return use.getOwner() != consumer || isFusable(use);
  });
}

/// Fuses `producer` into `consumer` by all fusable operands; there is at least
/// one. If `yieldsResults`, the consumer also yields the producer's results,
/// for later readers.
static LogicalResult fuseInto(PatternRewriter &rewriter,
                              linalg::GenericOp producer,
                              linalg::GenericOp consumer, bool yieldsResults) {
  while (OpOperand *read = getRead(consumer, producer)) {
    rewriter.setInsertionPoint(consumer);
    FailureOr<linalg::ElementwiseOpFusionResult> fused =
        linalg::fuseElementwiseOps(rewriter, read);
    if (failed(fused))
      return rewriter.notifyMatchFailure(consumer, "upstream fuses no operand");
    for (auto [original, replacement] : fused->replacements)
      if (yieldsResults || original.getDefiningOp() == consumer)
        rewriter.replaceUsesWithIf(original, replacement, [&](OpOperand &use) {
          return use.getOwner() != consumer && use.getOwner() != fused->fusedOp;
        });
    rewriter.eraseOp(consumer);
    consumer = cast<linalg::GenericOp>(fused->fusedOp);
  }
  return success();
}

namespace {
/// Every rewrite removes a generic, the producer, or makes its reader depend on
/// one generic less.
struct FuseIntoReaders : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp consumer,
                                PatternRewriter &rewriter) const override {
    for (OpOperand *operand : consumer.getDpsInputOperands()) {
      auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
      if (!producer || !isFusable(*operand))
        continue;
      // If the consumer also reads the producer in another way, the producer
      // stays. The element-wise part of a gradient is then computed in the
      // consumer as well, so that the consumer can form a group or a kernel.
      if (!isFusableEverywhere(producer, consumer)) {
        bool isInit = llvm::any_of(consumer.getDpsInits(), [&](Value init) {
          return init.getDefiningOp() == producer;
        }); // until UseEmptyInits has seen it
        if (!isInit && isElementwisePart(producer))
          return fuseInto(rewriter, producer, consumer,
                          /*yieldsResults=*/false);
        LDBG() << "not fused, as the reader would still read it: " << producer;
        continue;
      }
      // A producer that is read by sums and by another loop is computed in
      // both. A gradient is not: like a value that is needed in memory anyway
      // or that only element-wise loops read, it becomes a result of its first
      // reader. Only a reader with the same loops can have it as a result.
      bool isRepeated =
          mayDisappear(producer) &&
          (isReadBySums(producer) ||
           (!isElementwisePart(producer) && !isReadByIdentity(*operand)));
      if (isRepeated)
        return repeat(rewriter, producer);
      // Between a forward pass and its gradient, the condition of a ReLU is
      // computed again from the input, which the gradient reads in any case.
      if (isReadByIdentity(*operand) && isForGradient(producer, consumer))
        return fuseInto(rewriter, producer, consumer, /*yieldsResults=*/false);
      if (!isReadByIdentity(*operand)) {
        LDBG() << "not fused, as the widened value is needed: " << producer;
        continue;
      }
      if (!isParallel(consumer) && isElementwisePart(producer)) {
        LDBG() << "not fused, as something else reads it: " << producer;
        continue;
      }
      SetVector<Operation *> moved;
      if (!mayYieldResults(producer, consumer, moved)) {
        LDBG() << "not fused, as something reads it before the reader, or in "
                  "another block: "
               << producer;
        continue;
      }
      for (Operation *reshape : llvm::reverse(moved.getArrayRef()))
        rewriter.moveOpAfter(reshape, consumer);
      return fuseInto(rewriter, producer, consumer, /*yieldsResults=*/true);
    }
    return rewriter.notifyMatchFailure(consumer, "no operand to fuse");
  }

private:
  /// Fuses `producer` into all of its readers.
  static LogicalResult repeat(PatternRewriter &rewriter,
                              linalg::GenericOp producer) {
    llvm::SetVector<Operation *> readers(producer->user_begin(),
                                         producer->user_end());
    for (Operation *reader : readers)
      if (failed(fuseInto(rewriter, producer, cast<linalg::GenericOp>(reader),
                          /*yieldsResults=*/false)))
        return rewriter.notifyMatchFailure(producer, "not fused everywhere");
    return success();
  }
};

/// True if `producer` can disappear once no tensor.extract reads it: all other
/// uses are fusable, and it computes each element from elements at the indices
/// of its loops.
static bool computesElements(linalg::GenericOp producer) {
  if (!isParallel(producer) || !producer.hasPureTensorSemantics() ||
      isElementwisePart(producer))
    return false;
  for (OpOperand &use : producer->getUses())
    if (!isa<tensor::ExtractOp>(use.getOwner()) && !isFusable(use))
      return false;
  for (OpOperand *input : producer.getDpsInputOperands())
    if (!producer.getMatchingIndexingMap(input).isProjectedPermutation())
      return false;
  for (OpResult result : producer->getResults())
    if (!producer.getIndexingMapMatchingResult(result).isIdentity())
      return false;
  return llvm::all_of(producer.getRegionOutputArgs(),
                      [](BlockArgument init) { return init.use_empty(); }) &&
         llvm::all_of(producer.getBody()->without_terminator(),
                      [](Operation &op) {
                        return isPure(&op) && op.getNumRegions() == 0 &&
                               !isa<linalg::IndexOp>(op);
                      });
}

/// Computes a single element that a generic reads, such as the first one of a
/// channel, so that the producer of all elements can disappear.
struct FoldExtractOfElementwise : OpRewritePattern<tensor::ExtractOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ExtractOp extract,
                                PatternRewriter &rewriter) const override {
    auto producer = extract.getTensor().getDefiningOp<linalg::GenericOp>();
    if (!producer || !extract->getParentOfType<linalg::GenericOp>() ||
        !computesElements(producer))
      return rewriter.notifyMatchFailure(extract, "no producer to fuse");
    IRMapping mapping;
    for (OpOperand *input : producer.getDpsInputOperands()) {
      SmallVector<Value> indices;
      for (AffineExpr expr :
           producer.getMatchingIndexingMap(input).getResults())
        indices.push_back(
            extract.getIndices()[cast<AffineDimExpr>(expr).getPosition()]);
      Value element = input->get();
      if (isa<RankedTensorType>(element.getType()))
        element = tensor::ExtractOp::create(rewriter, extract.getLoc(), element,
                                            indices);
      mapping.map(producer.getMatchingBlockArgument(input), element);
    }
    for (Operation &op : producer.getBody()->without_terminator())
      rewriter.clone(op, mapping);
    unsigned number = cast<OpResult>(extract.getTensor()).getResultNumber();
    rewriter.replaceOp(
        extract, mapping.lookupOrDefault(
                     producer.getBody()->getTerminator()->getOperand(number)));
    return success();
  }
};

/// The scalar that all elements of `value` equal, from a fill, a splat, or a
/// constant, which is created at the insertion point of `rewriter`; else null.
static Value getUniformElement(PatternRewriter &rewriter, Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return fill.getInputs().front();
  if (auto splat = value.getDefiningOp<tensor::SplatOp>())
    return splat.getInput();
  SplatElementsAttr constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return {};
  auto element = constant.getSplatValue<Attribute>();
  Type type = constant.getElementType();
  if (!arith::ConstantOp::isBuildableWith(element, type))
    return {}; // such as a signed integer
  return arith::ConstantOp::create(rewriter, value.getLoc(),
                                   cast<TypedAttr>(element));
}

/// Replaces an input whose elements are all the same, such as the zeros of a
/// ReLU's gradient, by a scalar in the body. The operand is erased later,
/// unless it alone determines the size of a loop.
struct FoldUniformInputs : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp generic,
                                PatternRewriter &rewriter) const override {
    if (!generic.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(generic, "not on tensors");
    for (OpOperand *input : generic.getDpsInputOperands()) {
      BlockArgument argument = generic.getMatchingBlockArgument(input);
      if (argument.use_empty())
        continue;
      rewriter.setInsertionPoint(generic);
      Value element = getUniformElement(rewriter, input->get());
      if (!element || element.getType() != argument.getType())
        continue;
      rewriter.replaceAllUsesWith(argument, element);
      return success();
    }
    return rewriter.notifyMatchFailure(generic, "no input of equal elements");
  }
};

/// Makes an init that is never read a tensor.empty: it need not be a value that
/// merely has the right shape.
struct UseEmptyInits : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp generic,
                                PatternRewriter &rewriter) const override {
    if (!generic.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(generic, "not on tensors");
    SmallVector<OpOperand *> unread;
    for (OpOperand &init : generic.getDpsInitsMutable())
      if (!generic.payloadUsesValueFromOperand(&init) &&
          !init.get().getDefiningOp<tensor::EmptyOp>())
        unread.push_back(&init);
    if (unread.empty())
      return rewriter.notifyMatchFailure(generic,
                                         "every init is read or empty");
    for (OpOperand *init : unread) {
      auto type = cast<RankedTensorType>(init->get().getType());
      Value empty = tensor::EmptyOp::create(
          rewriter, generic.getLoc(),
          tensor::getMixedSizes(rewriter, generic.getLoc(), init->get()),
          type.getElementType());
      rewriter.modifyOpInPlace(generic, [&] { init->set(empty); });
    }
    return success();
  }
};

/// Generalizes named element-wise ops and broadcasts, as fusion needs generics.
struct GeneralizeElementwise : OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (isa<linalg::GenericOp, linalg::FillOp, linalg::TransposeOp>(op) ||
        !op.hasPureTensorSemantics() ||
        op.getNumLoops() != op.getNumParallelLoops())
      return rewriter.notifyMatchFailure(op, "not an element-wise named op");
    return linalg::generalizeNamedOp(rewriter, op);
  }
};

struct BNGradFusePass : bngrad::impl::BNGradFusePassBase<BNGradFusePass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateFusePatterns(patterns);
    if (failed(
            applyToFixedPoint(getOperation(), std::move(patterns), "fusion")))
      signalPassFailure();
  }
};
} // namespace

void mlir::bngrad::populateFusePatterns(RewritePatternSet &patterns) {
  patterns.add<FoldExtractOfElementwise, FoldUniformInputs,
               GeneralizeElementwise, UseEmptyInits>(patterns.getContext());
  // After upstream has merged equal operands: each would get a copy of the
  // producer's body, which grows exponentially in a chain of such readers.
  patterns.add<FuseIntoReaders>(patterns.getContext(), /*benefit=*/0);
  populateFoldConstantsPatterns(patterns);
  populateFoldReshapePatterns(patterns);
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  linalg::GenericOp::getCanonicalizationPatterns(patterns,
                                                 patterns.getContext());
}
