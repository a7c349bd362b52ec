//===- Decompose.cpp - bngrad-decompose and bngrad-split ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GradientBuilder.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/ToLinalg/Passes.h"
#include "BNGrad/Transforms/ToLinalg/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-decompose"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADDECOMPOSEPASS
#define GEN_PASS_DEF_BNGRADSPLITPASS
#include "BNGrad/Transforms/ToLinalg/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

static FloatType getFloatType(Value value) {
  return cast<FloatType>(getElementTypeOrSelf(value));
}

/// The element type of `result` if anything uses it, else null.
static FloatType getTypeIfUsed(Value result) {
  return result.use_empty() ? FloatType() : getFloatType(result);
}

/// Replaces the results of `op` by `values`, null where a result is unused.
static void replaceResults(RewriterBase &rewriter, Operation *op,
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

static GradientBuilder makeBuilder(OpBuilder &b, GradientOpInterface op) {
  GradientOperands operands;
  operands.gradOutput = op.getOperandOf(Role::GradOutput);
  operands.input = op.getOperandOf(Role::Input);
  operands.scale = op.getOperandOf(Role::Scale);
  operands.mean = op.getOperandOf(Role::Mean);
  operands.variance = op.getOperandOf(Role::Variance);
  operands.invStd = op.getOperandOf(Role::InvStd);
  operands.mask = op.getOperandOf(Role::Mask);
  operands.featureDims = op.getFeatureDims();
  operands.epsilon = op.getEpsilon().convertToDouble();
  return GradientBuilder(b, op.getLoc(), operands, op.getDataShape(),
                         op.getAccumulatorType());
}

namespace {
struct DecomposeBatchNormBackward : OpRewritePattern<BatchNormBackwardOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BatchNormBackwardOp op,
                                PatternRewriter &rewriter) const override {
    GradientBuilder builder = makeBuilder(rewriter, op);
    ChannelRequest request;
    request.gradInput = !op.getGradInput().use_empty();
    request.isBatch = op.getStatistics() == Statistics::Batch;
    request.gradScale = getTypeIfUsed(op.getGradScale());
    request.gradOffset = getTypeIfUsed(op.getGradOffset());

    Value gradInput;
    ChannelValues channel;
    if (builder.isCountZero()) {
      LDBG() << "no sums: no elements per channel: " << op;
      if (request.gradInput)
        gradInput = builder.buildEmptyData(getFloatType(op.getGradInput()));
      if (request.gradScale)
        channel.gradScale = builder.buildZeroChannel(request.gradScale);
      if (request.gradOffset)
        channel.gradOffset = builder.buildZeroChannel(request.gradOffset);
    } else {
      bool needsMeans = request.gradInput && request.isBatch;
      ChannelSums sums = builder.buildSums(needsMeans || request.gradOffset,
                                           needsMeans || request.gradScale);
      ElementCount count;
      if (needsMeans || request.gradScale)
        count = builder.countOfInput();
      channel = builder.buildChannel(request, sums, count);
      if (request.gradInput)
        gradInput =
            builder.buildGradInput(channel, getFloatType(op.getGradInput()));
    }
    replaceResults(rewriter, op,
                   {gradInput, channel.gradScale, channel.gradOffset});
    return success();
  }
};

struct DecomposeReduce : OpRewritePattern<BatchNormBackwardReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BatchNormBackwardReduceOp op,
                                PatternRewriter &rewriter) const override {
    GradientBuilder builder = makeBuilder(rewriter, op);
    Value sums, count;
    if (!op.getSums().use_empty())
      sums = builder.buildStackedSums();
    if (!op.getCount().use_empty())
      count = builder.buildCountTensor();
    replaceResults(rewriter, op, {sums, count});
    return success();
  }
};

struct DecomposeElemt : OpRewritePattern<BatchNormBackwardElemtOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BatchNormBackwardElemtOp op,
                                PatternRewriter &rewriter) const override {
    GradientBuilder builder = makeBuilder(rewriter, op);
    FloatType elementType = getFloatType(op.getGradInput());
    if (builder.isCountZero()) {
      LDBG() << "no values: no elements per channel: " << op;
      replaceResults(rewriter, op, {builder.buildEmptyData(elementType)});
      return success();
    }
    ChannelRequest request;
    request.gradInput = true;
    request.isBatch = op.getStatistics() == Statistics::Batch;
    ChannelSums sums;
    ElementCount count;
    if (op.getSums()) {
      sums = builder.unstackSums(op.getSums());
      count = op.getCount() ? builder.countOf(op.getCount())
                            : builder.countOfInput();
    }
    ChannelValues channel = builder.buildChannel(request, sums, count);
    replaceResults(rewriter, op,
                   {builder.buildGradInput(channel, elementType)});
    return success();
  }
};

/// The op as its two halves, and per-channel linalg for the rest.
struct SplitBatchNormBackward : OpRewritePattern<BatchNormBackwardOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BatchNormBackwardOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    GradientBuilder builder = makeBuilder(rewriter, op);
    ChannelRequest request;
    request.gradScale = getTypeIfUsed(op.getGradScale());
    request.gradOffset = getTypeIfUsed(op.getGradOffset());
    bool needsGradInput = !op.getGradInput().use_empty();
    bool isBatch = op.getStatistics() == Statistics::Batch;

    Value sums, count;
    if (request.gradScale || request.gradOffset ||
        (needsGradInput && isBatch)) {
      auto reduce = BatchNormBackwardReduceOp::create(
          rewriter, loc, op.getGradOutput(), op.getInput(), op.getMean(),
          op.getMask(), op.getFeatureDimsAttr());
      sums = reduce.getSums();
      count = reduce.getCount();
    }
    ChannelValues channel;
    if (request.gradScale || request.gradOffset) {
      // Counts of other devices may be added to this one, so that only a count
      // known not to be 0 stays so.
      ElementCount known = builder.countOfInput();
      channel = builder.buildChannel(
          request, builder.unstackSums(sums),
          known.known.value_or(0) > 0 ? known : builder.countOf(count));
    }
    Value gradInput;
    if (needsGradInput)
      gradInput = BatchNormBackwardElemtOp::create(
          rewriter, loc,
          RankedTensorType::get(GradientOpInterface(op).getDataShape(),
                                getFloatType(op.getGradInput())),
          op.getGradOutput(), op.getInput(), op.getScale(), op.getMean(),
          op.getVariance(), op.getInvStd(), isBatch ? sums : Value(),
          isBatch ? count : Value(), op.getMask(), op.getFeatureDimsAttr(),
          op.getEpsilonAttr());
    replaceResults(rewriter, op,
                   {gradInput, channel.gradScale, channel.gradOffset});
    return success();
  }
};

struct BNGradDecomposePass
    : bngrad::impl::BNGradDecomposePassBase<BNGradDecomposePass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateDecomposePatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    WalkResult left = getOperation().walk([](Operation *op) {
      if (!isa_and_present<BNGradDialect>(op->getDialect()))
        return WalkResult::advance();
      op->emitOpError() << "expected a decomposition into linalg, got none";
      return WalkResult::interrupt();
    });
    if (left.wasInterrupted())
      signalPassFailure();
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

void mlir::bngrad::registerDecomposeDependentDialects(
    DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, linalg::LinalgDialect, math::MathDialect,
                  tensor::TensorDialect>();
}

void mlir::bngrad::populateDecomposePatterns(RewritePatternSet &patterns) {
  patterns.add<DecomposeBatchNormBackward, DecomposeReduce, DecomposeElemt>(
      patterns.getContext());
}

void mlir::bngrad::populateSplitPatterns(RewritePatternSet &patterns) {
  patterns.add<SplitBatchNormBackward>(patterns.getContext());
}
