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
#include "mlir/IR/TypeUtilities.h"

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
struct FoldCastOfOperand : OpInterfaceRewritePattern<BatchNormOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(BatchNormOpInterface op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (OpOperand &operand : op->getOpOperands()) {
      auto cast = operand.get().getDefiningOp<tensor::CastOp>();
      if (!cast || !tensor::canFoldIntoConsumerOp(cast))
        continue;
      rewriter.modifyOpInPlace(op, [&] { operand.set(cast.getSource()); });
      changed = true;
    }
    if (!changed)
      return rewriter.notifyMatchFailure(op, "no operand is a foldable cast");
    return success();
  }
};

/// Adds every size known from the operands to the result types. A tensor.cast
/// converts each result to the type that its users expect.
struct RefineResultTypes : OpInterfaceRewritePattern<BatchNormOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(BatchNormOpInterface op,
                                PatternRewriter &rewriter) const override {
    SmallVector<Type> refined(op->getResultTypes());
    auto inferring = cast<InferTypeOpInterface>(op.getOperation());
    if (failed(inferring.refineReturnTypes(
            op.getContext(), std::nullopt, op->getOperands(),
            op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
            op->getRegions(), refined)))
      return rewriter.notifyMatchFailure(op, "result types do not follow");
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

/// Without elements there is nothing to sum: every per-channel result but
/// inv_std is 0, whatever mean and variance are, and every other result is 0 or
/// empty.
struct FoldEmptyInput : OpInterfaceRewritePattern<BatchNormOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(BatchNormOpInterface op,
                                PatternRewriter &rewriter) const override {
    Value input = op.getOperandOf(Role::Input);
    if (!isEmpty(input))
      return rewriter.notifyMatchFailure(op, "input is not known to be empty");
    auto isStatic = [](Type type) {
      return cast<RankedTensorType>(type).hasStaticShape();
    };
    if (!llvm::all_of(op->getResultTypes(), isStatic))
      return rewriter.notifyMatchFailure(op, "sizes are not known");
    // Without channels, there may still be elements to count.
    bool isCountZero = false;
    for (auto [dim, size] :
         llvm::enumerate(cast<RankedTensorType>(input.getType()).getShape()))
      isCountZero |= size == 0 && !op.isFeatureDim(dim);
    bool mayBeNonzero = !isCountZero;
    for (auto [role, result] :
         llvm::zip_equal(op.getResultRoles(), op->getResults()))
      mayBeNonzero |= role == Role::InvStd && !result.use_empty();
    if (mayBeNonzero && !llvm::all_of(op->getResults(), isEmpty))
      return rewriter.notifyMatchFailure(op, "a result may not be 0");
    SmallVector<Value> zeros;
    for (Type type : op->getResultTypes())
      zeros.push_back(
          buildZeros(rewriter, op.getLoc(), cast<RankedTensorType>(type)));
    rewriter.replaceOp(op, zeros);
    return success();
  }
};

/// Takes the inv_std of the training op that computed the variance, where it
/// has the same bits: 1/sqrt(variance + epsilon) of the same numbers, in the
/// accumulator type of both ops, without a rounding to another type.
template <typename Op> struct ShareInvStd : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    Value variance = op.getVariance();
    auto training =
        variance ? variance.getDefiningOp<BatchNormTrainingOp>() : nullptr;
    if (!training || variance != training.getVariance() ||
        op.getEpsilon() != training.getEpsilon())
      return rewriter.notifyMatchFailure(op, "no op has computed its inv_std");
    auto isArithmetic = [&](BatchNormOpInterface other, Value value) {
      return getElementTypeOrSelf(value) == other.getAccumulatorType();
    };
    if (!isArithmetic(op, variance) || !isArithmetic(training, variance) ||
        !isArithmetic(training, training.getInvStd()))
      return rewriter.notifyMatchFailure(op, "a statistic is rounded");
    rewriter.modifyOpInPlace(op, [&] {
      op.getVarianceMutable().clear();
      op.getInvStdMutable().assign(training.getInvStd());
      op.setEpsilonAttr(rewriter.getF64FloatAttr(0));
    });
    return success();
  }
};
} // namespace

void BNGradDialect::getCanonicalizationPatterns(
    RewritePatternSet &results) const {
  results.add<FoldCastOfOperand, RefineResultTypes, FoldEmptyInput,
              ShareInvStd<BatchNormBackwardOp>,
              ShareInvStd<BatchNormBackwardElemtOp>,
              ShareInvStd<BatchNormInferenceOp>>(getContext());
}
