//===- BNGradCanonicalize.cpp - canonicalization patterns -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::bngrad;

namespace {
/// Reads through a tensor.cast that only forgets sizes.
template <typename OpTy>
struct FoldCastOfOperand : OpRewritePattern<OpTy> {
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

/// Gives each result every size that the operands know, behind a tensor.cast to
/// the type its users expect.
template <typename OpTy>
struct RefineResultTypes : OpRewritePattern<OpTy> {
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
} // namespace

void BatchNormBackwardOp::getCanonicalizationPatterns(
    RewritePatternSet &results, MLIRContext *context) {
  results.add<FoldCastOfOperand<BatchNormBackwardOp>,
              RefineResultTypes<BatchNormBackwardOp>>(context);
}

void BatchNormBackwardReduceOp::getCanonicalizationPatterns(
    RewritePatternSet &results, MLIRContext *context) {
  results.add<FoldCastOfOperand<BatchNormBackwardReduceOp>,
              RefineResultTypes<BatchNormBackwardReduceOp>>(context);
}

void BatchNormBackwardElemtOp::getCanonicalizationPatterns(
    RewritePatternSet &results, MLIRContext *context) {
  results.add<FoldCastOfOperand<BatchNormBackwardElemtOp>,
              RefineResultTypes<BatchNormBackwardElemtOp>>(context);
}
