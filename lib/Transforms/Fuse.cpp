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

#include "BNGrad/Transforms/Passes.h"
#include "BNGrad/Transforms/Transforms.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADFUSEPASS
#include "BNGrad/Transforms/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// True if `generic` is element-wise and reads per-channel values: the loop
/// over the elements that computes grad_input.
static bool isElementwiseWithChannels(linalg::GenericOp generic) {
  if (generic.getNumLoops() != generic.getNumParallelLoops())
    return false;
  return llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *operand) {
    AffineMap map = generic.getMatchingIndexingMap(operand);
    return map.getNumResults() > 0 && map.getNumResults() < map.getNumDims();
  });
}

/// True if computing `producer` where `use` reads it costs no more than reading
/// its value there would, seen from this use alone.
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
  return !(isElementwiseWithChannels(producer) &&
           consumer.getNumReductionLoops() > 0);
}

namespace {
struct FuseIntoReaders : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp consumer,
                                PatternRewriter &rewriter) const override {
    for (OpOperand *operand : consumer.getDpsInputOperands()) {
      auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
      if (!producer || producer->getNumResults() != 1)
        continue;
      // Only a producer that every reader takes disappears.
      if (!llvm::all_of(operand->get().getUses(), isFusable))
        continue;
      if (isElementwiseWithChannels(producer) && !operand->get().hasOneUse())
        continue;
      FailureOr<linalg::ElementwiseOpFusionResult> fused =
          linalg::fuseElementwiseOps(rewriter, operand);
      if (failed(fused))
        continue;
      for (OpResult result : consumer->getResults())
        rewriter.replaceAllUsesWith(result, fused->replacements.lookup(result));
      rewriter.eraseOp(consumer);
      return success();
    }
    return rewriter.notifyMatchFailure(consumer, "no operand to fuse");
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
  patterns.add<FuseIntoReaders>(patterns.getContext());
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  linalg::GenericOp::getCanonicalizationPatterns(patterns,
                                                 patterns.getContext());
}
