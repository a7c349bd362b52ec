//===- BNGradCanonicalize.cpp - canonicalization patterns -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::bngrad;

/// True if the type has a size that is known to be 0.
static bool isEmpty(Value value) {
  return llvm::is_contained(cast<RankedTensorType>(value.getType()).getShape(),
                            0);
}

/// Zeros of a static type.
static Value buildZeros(PatternRewriter &rewriter, Location loc,
                        RankedTensorType type) {
  return arith::ConstantOp::create(rewriter, loc,
                                   cast<TypedAttr>(rewriter.getZeroAttr(type)));
}

namespace {
/// Reads through a tensor.cast that only forgets sizes.
template <typename OpTy> struct FoldCastOfOperand : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (OpOperand &operand : op->getOpOperands()) {
      auto cast = operand.get().template getDefiningOp<tensor::CastOp>();
      if (!cast || !tensor::canFoldIntoConsumerOp(cast))
        continue;
      rewriter.modifyOpInPlace(op, [&] { operand.set(cast.getSource()); });
      changed = true;
    }
    return success(changed);
  }
};

/// Adds every size that the operands know to the result types. A tensor.cast
/// converts each result to the type that its users expect.
template <typename OpTy> struct RefineResultTypes : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    SmallVector<Type> refined(op->getResultTypes());
    if (failed(OpTy::refineReturnTypes(
            op.getContext(), std::nullopt, op->getOperands(),
            op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
            op->getRegions(), refined)))
      return failure();
    if (TypeRange(refined) == TypeRange(op->getResultTypes()))
      return rewriter.notifyMatchFailure(op, "result types know every size");
    SmallVector<Type> types(op->getResultTypes());
    rewriter.modifyOpInPlace(op, [&] {
      for (auto [result, type] : llvm::zip_equal(op->getResults(), refined))
        result.setType(cast<RankedTensorType>(type));
    });
    rewriter.setInsertionPointAfter(op);
    for (auto [result, type] : llvm::zip_equal(op->getResults(), types)) {
      if (result.getType() == type)
        continue;
      auto cast = tensor::CastOp::create(rewriter, op.getLoc(), type, result);
      rewriter.replaceAllUsesExcept(result, cast.getResult(), cast);
    }
    return success();
  }
};

/// Without elements there is nothing to sum: grad_scale and grad_offset are 0,
/// whatever mean and variance are, and grad_input is empty.
struct FoldEmptyInput : OpRewritePattern<BatchNormBackwardOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BatchNormBackwardOp op,
                                PatternRewriter &rewriter) const override {
    if (!isEmpty(op.getInput()))
      return rewriter.notifyMatchFailure(op, "input is not known to be empty");
    auto isStatic = [](Type type) {
      return cast<RankedTensorType>(type).hasStaticShape();
    };
    if (!llvm::all_of(op->getResultTypes(), isStatic))
      return rewriter.notifyMatchFailure(op, "sizes are not known");
    SmallVector<Value> zeros;
    for (Type type : op->getResultTypes())
      zeros.push_back(
          buildZeros(rewriter, op.getLoc(), cast<RankedTensorType>(type)));
    rewriter.replaceOp(op, zeros);
    return success();
  }
};

/// The sums and the count of no elements.
struct FoldEmptyReduce : OpRewritePattern<BatchNormBackwardReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BatchNormBackwardReduceOp op,
                                PatternRewriter &rewriter) const override {
    bool hasElements = true;
    for (auto [dim, size] : llvm::enumerate(op.getInput().getType().getShape()))
      if (size == 0 && !op.isFeatureDim(dim))
        hasElements = false;
    if (hasElements || !op.getSums().getType().hasStaticShape())
      return rewriter.notifyMatchFailure(op, "input is not known to be empty");
    Value sums = buildZeros(rewriter, op.getLoc(), op.getSums().getType());
    Value count = buildZeros(rewriter, op.getLoc(), op.getCount().getType());
    rewriter.replaceOp(op, {sums, count});
    return success();
  }
};

/// grad_input of no elements.
struct FoldEmptyElemt : OpRewritePattern<BatchNormBackwardElemtOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BatchNormBackwardElemtOp op,
                                PatternRewriter &rewriter) const override {
    if (!isEmpty(op.getInput()) ||
        !op.getGradInput().getType().hasStaticShape())
      return rewriter.notifyMatchFailure(op, "input is not known to be empty");
    rewriter.replaceOp(
        op, buildZeros(rewriter, op.getLoc(), op.getGradInput().getType()));
    return success();
  }
};
} // namespace

void BatchNormBackwardOp::getCanonicalizationPatterns(
    RewritePatternSet &results, MLIRContext *context) {
  results.add<FoldCastOfOperand<BatchNormBackwardOp>,
              RefineResultTypes<BatchNormBackwardOp>, FoldEmptyInput>(context);
}

void BatchNormBackwardReduceOp::getCanonicalizationPatterns(
    RewritePatternSet &results, MLIRContext *context) {
  results.add<FoldCastOfOperand<BatchNormBackwardReduceOp>,
              RefineResultTypes<BatchNormBackwardReduceOp>, FoldEmptyReduce>(
      context);
}

void BatchNormBackwardElemtOp::getCanonicalizationPatterns(
    RewritePatternSet &results, MLIRContext *context) {
  results.add<FoldCastOfOperand<BatchNormBackwardElemtOp>,
              RefineResultTypes<BatchNormBackwardElemtOp>, FoldEmptyElemt>(
      context);
}
