//===- Decompose.cpp - bngrad-decompose -----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ForwardBuilder.h"
#include "GradientBuilder.h"
#include "Split.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/ToLinalg/Passes.h"
#include "BNGrad/Transforms/ToLinalg/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-decompose"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADDECOMPOSEPASS
#include "BNGrad/Transforms/ToLinalg/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// The element type of `result` if anything uses it, else null.
static FloatType getTypeIfUsed(Value result) {
  return result.use_empty() ? FloatType() : getFloatType(result);
}

/// Checks the type of the argument that replaces epsilon, if there is one.
static LogicalResult verifyEpsilon(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    Type type = argument.getType();
    if (function.getArgAttr(argument.getArgNumber(), kEpsilonArgAttrName) &&
        !type.isF64())
      return function.emitOpError()
             << "expected type of the argument with '" << kEpsilonArgAttrName
             << "' to be 'f64', got " << type;
  }
  return success();
}

namespace {
struct DecomposeBatchNormBackward : OpRewritePattern<BatchNormBackwardOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BatchNormBackwardOp op,
                                PatternRewriter &rewriter) const override {
    GradientBuilder builder(rewriter, op);
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
    GradientBuilder builder(rewriter, op);
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
    GradientBuilder builder(rewriter, op);
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

struct DecomposeTraining : OpRewritePattern<BatchNormTrainingOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BatchNormTrainingOp op,
                                PatternRewriter &rewriter) const override {
    ForwardBuilder builder(rewriter, op);
    auto request = TrainingRequest::get(
        op, [](Value result) { return !result.use_empty(); });

    Value output;
    TrainingValues channel;
    if (builder.isCountZero()) {
      LDBG() << "no sums: no elements per channel: " << op;
      channel = builder.buildTrainingOfNothing(request);
      if (request.output)
        output = builder.buildEmptyData(getFloatType(op.getOutput()));
    } else {
      channel = builder.buildTraining(request);
      if (request.output)
        output = builder.buildOutput(channel, getFloatType(op.getOutput()));
    }
    replaceResults(rewriter, op,
                   {output, channel.mean, channel.variance, channel.invStd});
    return success();
  }
};

struct DecomposeInference : OpRewritePattern<BatchNormInferenceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BatchNormInferenceOp op,
                                PatternRewriter &rewriter) const override {
    ForwardBuilder builder(rewriter, op);
    FloatType elementType = getFloatType(op.getOutput());
    TrainingValues channel;
    channel.center = op.getMean();
    channel.offset = op.getOffset();
    Value output;
    if (builder.isCountZero()) {
      LDBG() << "no values: no elements per channel: " << op;
      output = builder.buildEmptyData(elementType);
    } else {
      channel.factor = builder.buildFactor();
      output = builder.buildOutput(channel, elementType);
    }
    replaceResults(rewriter, op, {output});
    return success();
  }
};

struct DecomposeTrainingReduce : OpRewritePattern<BatchNormTrainingReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BatchNormTrainingReduceOp op,
                                PatternRewriter &rewriter) const override {
    ForwardBuilder builder(rewriter, op);
    FloatType sum = getTypeIfUsed(op.getSum());
    FloatType squareSum = getTypeIfUsed(op.getSquareSum());
    ChannelMoments moments;
    if (builder.isCountZero()) {
      LDBG() << "no sums: no elements per channel: " << op;
      if (sum)
        moments.sum = builder.buildZeroChannel(sum);
      if (squareSum)
        moments.squareSum = builder.buildZeroChannel(squareSum);
    } else {
      moments = builder.buildMoments(op.getShift(), sum != nullptr,
                                     squareSum != nullptr);
    }
    Value count;
    if (!op.getCount().use_empty())
      count = builder.buildCountTensor();
    replaceResults(rewriter, op, {moments.sum, moments.squareSum, count});
    return success();
  }
};

struct BNGradDecomposePass
    : bngrad::impl::BNGradDecomposePassBase<BNGradDecomposePass> {
  void runOnOperation() override {
    if (failed(verifyEpsilon(getOperation())))
      return signalPassFailure();
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
      return signalPassFailure();
    for (unsigned i : llvm::seq(getOperation().getNumArguments()))
      getOperation().removeArgAttr(i, kEpsilonArgAttrName);
  }
};
} // namespace

void mlir::bngrad::registerDecomposeDependentDialects(
    DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, linalg::LinalgDialect, math::MathDialect,
                  scf::SCFDialect, tensor::TensorDialect>();
}

void mlir::bngrad::populateDecomposePatterns(RewritePatternSet &patterns) {
  patterns.add<DecomposeBatchNormBackward, DecomposeElemt, DecomposeInference,
               DecomposeReduce, DecomposeTraining, DecomposeTrainingReduce>(
      patterns.getContext());
}
