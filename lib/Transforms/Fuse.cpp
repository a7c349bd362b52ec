//===- Fuse.cpp - bngrad-fuse: element-wise fusion ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's element-wise fusion refuses a producer with two readers, which is
// what grad_output and input have (the sums and grad_input), and with a control
// function that always agrees it pulls per-channel square roots and divisions
// into the loop over the elements. The rules here are about both.
//
//===----------------------------------------------------------------------===//

#include "Utils.h"

#include "BNGrad/Transforms/Passes.h"
#include "BNGrad/Transforms/Transforms.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADFUSEPASS
#include "BNGrad/Transforms/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// True if `value` follows from a reduction through per-channel generics. What
/// is in `visited` does not.
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

/// As below; `visited` holds what is known not to be.
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
/// per-channel values that follow from sums, or takes the result of such a
/// generic further.
static bool isElementwisePart(linalg::GenericOp generic) {
  DenseSet<Operation *> visited;
  return isElementwisePart(generic, visited);
}

/// True if computing the producer where `use` reads it costs no more than
/// reading its value there would, seen from this use alone.
static bool isFusable(OpOperand &use) {
  if (!linalg::areElementwiseOpsFusable(&use))
    return false;
  auto producer = cast<linalg::GenericOp>(use.get().getDefiningOp());
  auto consumer = cast<linalg::GenericOp>(use.getOwner());
  // Read by the identity map, the producer's loops are the consumer's; else a
  // per-channel value would be computed once per element.
  if (!consumer.getMatchingIndexingMap(&use).isIdentity())
    return false;
  // A transposing producer would end contiguous loads in the consumer.
  AffineMap resultMap =
      producer.getIndexingMapMatchingResult(cast<OpResult>(use.get()));
  for (OpOperand *input : producer.getDpsInputOperands()) {
    AffineMap map = producer.getMatchingIndexingMap(input);
    if (map.getNumResults() == resultMap.getNumResults() && map != resultMap)
      return false;
  }
  // grad_input belongs to the group of its own sums, not to the next ones.
  return isParallel(consumer) || !isElementwisePart(producer);
}

/// True if every use of a result of `producer` is fusable, so that it may be
/// computed in all of them and disappear.
static bool mayDisappear(linalg::GenericOp producer) {
  return llvm::all_of(producer->getUses(), isFusable);
}

static bool isReadBySums(linalg::GenericOp producer) {
  return llvm::any_of(producer->getUsers(), [](Operation *user) {
    auto reader = dyn_cast<linalg::GenericOp>(user);
    return reader && !isParallel(reader);
  });
}

/// True if the results of `producer` may become results of `consumer`, fused:
/// whatever else reads them does so later in the same block.
static bool mayYieldResults(linalg::GenericOp producer,
                            linalg::GenericOp consumer) {
  return llvm::all_of(producer->getUsers(), [&](Operation *user) {
    if (user == consumer)
      return true;
    Operation *ancestor = consumer->getBlock()->findAncestorOpInBlock(*user);
    return ancestor && consumer->isBeforeInBlock(ancestor);
  });
}

namespace {
struct FuseIntoReaders : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp consumer,
                                PatternRewriter &rewriter) const override {
    for (OpOperand *operand : consumer.getDpsInputOperands()) {
      auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
      if (!producer || producer->getBlock() != consumer->getBlock() ||
          !isFusable(*operand))
        continue;
      // What sums and another loop read is repeated in both. A gradient is not:
      // like a value that is needed in memory anyway, or that only element-wise
      // loops read, it becomes a result of its first reader.
      bool isRepeated = mayDisappear(producer) && isReadBySums(producer) &&
                        !isElementwisePart(producer);
      if (!isRepeated && !mayYieldResults(producer, consumer))
        continue;
      FailureOr<linalg::ElementwiseOpFusionResult> fused =
          linalg::fuseElementwiseOps(rewriter, operand);
      if (failed(fused))
        continue;
      for (auto [original, replacement] : fused->replacements)
        if (!isRepeated || original.getDefiningOp() == consumer)
          rewriter.replaceUsesWithIf(original, replacement,
                                     [&](OpOperand &use) {
                                       return use.getOwner() != consumer &&
                                              use.getOwner() != fused->fusedOp;
                                     });
      rewriter.eraseOp(consumer);
      return success();
    }
    return rewriter.notifyMatchFailure(consumer, "no operand to fuse");
  }
};

/// An init that is only overwritten need not be some value that happens to have
/// the right shape.
struct UseEmptyInits : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp generic,
                                PatternRewriter &rewriter) const override {
    if (!generic.hasPureTensorSemantics())
      return failure();
    bool changed = false;
    for (OpOperand &init : generic.getDpsInitsMutable()) {
      if (generic.payloadUsesValueFromOperand(&init) ||
          init.get().getDefiningOp<tensor::EmptyOp>())
        continue;
      auto type = cast<RankedTensorType>(init.get().getType());
      Value empty = tensor::EmptyOp::create(
          rewriter, generic.getLoc(),
          tensor::getMixedSizes(rewriter, generic.getLoc(), init.get()),
          type.getElementType());
      rewriter.modifyOpInPlace(generic, [&] { init.set(empty); });
      changed = true;
    }
    return success(changed);
  }
};

/// Named element-wise ops and broadcasts as generics, which fusion works on.
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
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns)))) {
      getOperation().emitError() << "expected fusion to reach a fixed point";
      signalPassFailure();
    }
  }
};
} // namespace

void mlir::bngrad::populateFusePatterns(RewritePatternSet &patterns) {
  patterns.add<FuseIntoReaders, GeneralizeElementwise, UseEmptyInits>(
      patterns.getContext());
  // A reshape between the gradient and its neighbours is folded by giving the
  // gradient's loops the finer shape.
  linalg::populateFoldReshapeOpsByExpansionPatterns(
      patterns, [](OpOperand *) { return true; });
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  linalg::GenericOp::getCanonicalizationPatterns(patterns,
                                                 patterns.getContext());
}
