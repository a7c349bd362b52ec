//===- Split.cpp - bngrad-split: ops as their parts -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Split.h"

#include "BNGrad/Transforms/ToLinalg/Passes.h"
#include "BNGrad/Transforms/ToLinalg/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADSPLITPASS
#include "BNGrad/Transforms/ToLinalg/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

FloatType mlir::bngrad::getFloatType(Value value) {
  return cast<FloatType>(getElementTypeOrSelf(value));
}

void mlir::bngrad::replaceResults(RewriterBase &rewriter, Operation *op,
                                  ArrayRef<Value> values) {
  for (auto [result, value] : llvm::zip_equal(op->getResults(), values)) {
    Value replacement = value;
    if (!replacement)
      continue;
    if (replacement.getType() != result.getType())
      replacement = tensor::CastOp::create(rewriter, op->getLoc(),
                                           result.getType(), replacement);
    rewriter.replaceAllUsesWith(result, replacement);
  }
  rewriter.eraseOp(op);
}

namespace {
/// The sums and the count of a part, and on demand those of the whole batch.
struct HalvesBuilder {
  OpBuilder &b;
  BatchNormBackwardOp op;
  const WholeBatch &whole;
  GradientBuilder builder;
  Value partSums, partCount, wholeSums, wholeCount;

  HalvesBuilder(OpBuilder &b, BatchNormBackwardOp op, const WholeBatch &whole)
      : b(b), op(op), whole(whole), builder(b, op) {
    auto reduce = BatchNormBackwardReduceOp::create(
        b, op.getLoc(), op.getGradOutput(), op.getInput(), op.getMean(),
        op.getMask(), op.getFeatureDimsAttr());
    partSums = reduce.getSums();
    partCount = reduce.getCount();
  }

  Value getSums() {
    if (!wholeSums)
      wholeSums = whole.getSums(partSums);
    return wholeSums;
  }
  Value getCount() {
    if (!wholeCount)
      wholeCount = whole.getCount(partCount);
    return wholeCount;
  }
  ElementCount getElementCount() {
    if (!whole.isChannelLocal) {
      if (whole.count)
        return {whole.count, Value(), Value()};
      return builder.countOf(getCount());
    }
    ElementCount known = builder.countOfInput();
    return known.known.value_or(0) > 0 ? known : builder.countOf(partCount);
  }

  /// grad_scale and grad_offset.
  ChannelValues buildChannel(const UsedResults &used) {
    ChannelRequest request;
    if (used.gradScale)
      request.gradScale = getFloatType(op.getGradScale());
    if (used.gradOffset)
      request.gradOffset = getFloatType(op.getGradOffset());
    ChannelSums sums =
        builder.unstackSums(whole.isChannelLocal ? partSums : getSums());
    ElementCount count;
    if (used.gradScale)
      count = getElementCount();
    return builder.buildChannel(request, sums, count);
  }
};
} // namespace

std::array<Value, 3> mlir::bngrad::buildHalves(OpBuilder &b,
                                               BatchNormBackwardOp op,
                                               const UsedResults &used,
                                               const WholeBatch &whole) {
  bool isBatch = op.getStatistics() == Statistics::Batch;
  std::optional<HalvesBuilder> halves;
  if (used.anyOfChannel() || (used.gradInput && isBatch))
    halves.emplace(b, op, whole);
  Value sums, count;
  if (used.gradInput && isBatch) {
    // Starts communication first, as it may take long.
    sums = halves->getSums();
    count = halves->getCount();
  }
  ChannelValues channel;
  if (used.anyOfChannel())
    channel = halves->buildChannel(used);
  Value gradInput;
  if (used.gradInput)
    gradInput = BatchNormBackwardElemtOp::create(
        b, op.getLoc(),
        RankedTensorType::get(BatchNormOpInterface(op).getDataShape(),
                              getFloatType(op.getGradInput())),
        op.getGradOutput(), op.getInput(), op.getScale(), op.getMean(),
        op.getVariance(), op.getInvStd(), sums, count, op.getMask(),
        op.getFeatureDimsAttr(), op.getEpsilonAttr());
  return {gradInput, channel.gradScale, channel.gradOffset};
}

namespace {
/// The sums of a batch about a number near its mean, and its M.
struct BatchMoments {
  Value center;
  ChannelMoments moments;
  ElementCount count;
};
} // namespace

/// Builds the moments of the whole batch from the moments of a part and its
/// count, a tensor.
static BatchMoments joinParts(ForwardBuilder &builder, FloatType f64,
                              const BatchMoments &part, Value partCount,
                              const WholeBatch &whole) {
  BatchMoments joined;
  Value sum = whole.getSums(builder.buildWeightedCenter(part.center));
  ElementCount countForF64{whole.count, Value(), Value()};
  joined.count = countForF64;
  if (!whole.count) {
    Value count = whole.getCount(partCount);
    joined.count = builder.countOf(count);
    countForF64 = builder.countOf(count, f64);
  }
  joined.center = builder.buildWholeCenter(sum, countForF64);
  ChannelMoments moved =
      builder.buildMovedMoments(joined.center, part.center, part.moments);
  if (!moved.squareSum) {
    joined.moments.sum = whole.getSums(moved.sum);
    return joined;
  }
  auto [sums, squareSums] = builder.unstack(
      whole.getSums(builder.stack({moved.sum, moved.squareSum})));
  joined.moments = {sums, squareSums};
  return joined;
}

std::array<Value, 4>
mlir::bngrad::buildTrainingParts(OpBuilder &b, BatchNormTrainingOp op,
                                 const TrainingRequest &request,
                                 const WholeBatch *whole) {
  if (request.isEmpty())
    return {};
  ForwardBuilder builder(b, op);
  auto reduce = [&](Value shift) {
    return BatchNormTrainingReduceOp::create(b, op.getLoc(), op.getInput(),
                                             shift, op.getFeatureDimsAttr());
  };
  BatchMoments batch;
  batch.count = builder.countOfInput();
  Value first = builder.buildFirst(batch.count);
  batch.center =
      builder.buildCenter(first, reduce(first).getSum(), batch.count);
  auto sums = reduce(batch.center);
  batch.moments.sum = sums.getSum();
  if (request.needsVariance())
    batch.moments.squareSum = sums.getSquareSum();
  if (whole)
    batch = joinParts(builder, b.getF64Type(), batch, sums.getCount(), *whole);

  TrainingValues channel =
      builder.buildChannel(request, batch.center, batch.moments, batch.count);
  Value output;
  if (request.output)
    output = BatchNormInferenceOp::create(
        b, op.getLoc(),
        RankedTensorType::get(BatchNormOpInterface(op).getDataShape(),
                              getFloatType(op.getOutput())),
        op.getInput(), /*scale=*/Value(), channel.offset, channel.center,
        /*variance=*/Value(), channel.factor, op.getFeatureDimsAttr(),
        b.getF64FloatAttr(0.0));
  return {output, channel.mean, channel.variance, channel.invStd};
}

namespace {
struct SplitBatchNormBackward : OpRewritePattern<BatchNormBackwardOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BatchNormBackwardOp op,
                                PatternRewriter &rewriter) const override {
    UsedResults used{!op.getGradInput().use_empty(),
                     !op.getGradScale().use_empty(),
                     !op.getGradOffset().use_empty()};
    auto keep = [](Value value) { return value; };
    WholeBatch whole{keep, keep, std::nullopt, /*isChannelLocal=*/true};
    replaceResults(rewriter, op, buildHalves(rewriter, op, used, whole));
    return success();
  }
};

struct SplitBatchNormTraining : OpRewritePattern<BatchNormTrainingOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BatchNormTrainingOp op,
                                PatternRewriter &rewriter) const override {
    if (BatchNormBuilder(rewriter, op).isCountZero())
      return rewriter.notifyMatchFailure(op, "no elements per channel");
    auto request = TrainingRequest::get(
        op, [](Value result) { return !result.use_empty(); });
    replaceResults(
        rewriter, op,
        buildTrainingParts(rewriter, op, request, /*whole=*/nullptr));
    return success();
  }
};

struct BNGradSplitPass : bngrad::impl::BNGradSplitPassBase<BNGradSplitPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateSplitPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace

void mlir::bngrad::populateSplitPatterns(RewritePatternSet &patterns) {
  patterns.add<SplitBatchNormBackward, SplitBatchNormTraining>(
      patterns.getContext());
}
