//===- ExpandMath.cpp - bngrad-expand-math --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADEXPANDMATHPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using arith::CmpFPredicate;

/// Creates a constant of `type` in which each element is `element`.
static Value createConstant(ImplicitLocOpBuilder &b, Type type,
                            TypedAttr element) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    element = DenseElementsAttr::get(shaped, element);
  return arith::ConstantOp::create(b, element);
}

/// Computes x to the power of y by repeated squaring. Both are scalars, and y
/// may have any width.
static Value expandPower(ImplicitLocOpBuilder &b, Value x, Value y) {
  Type type = x.getType(), exponentType = y.getType();
  bool isNarrow = type.getIntOrFloatBitWidth() < 32;
  if (isNarrow)
    x = arith::ExtFOp::create(b, b.getF32Type(), x);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getIntegerAttr(exponentType, value));
  };
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value zero = constant(0);
  Value isNegative =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, y, zero);
  // The magnitude as an unsigned number, which is correct for the least integer
  // too.
  Value size = arith::SelectOp::create(b, isNegative,
                                       arith::SubIOp::create(b, zero, y), y);
  Value one = arith::ConstantOp::create(b, b.getFloatAttr(x.getType(), 1.0));
  unsigned width = exponentType.isIndex()
                       ? IndexType::kInternalStorageBitWidth
                       : exponentType.getIntOrFloatBitWidth();
  auto power = scf::ForOp::create(
      b, index(0), index(width), index(1), ValueRange{one, x, size},
      [&](OpBuilder &nested, Location loc, Value, ValueRange values) {
        ImplicitLocOpBuilder n(loc, nested);
        Value product = arith::MulFOp::create(n, values[0], values[1]);
        Value bit = arith::AndIOp::create(n, values[2], constant(1));
        Value isSet =
            arith::CmpIOp::create(n, arith::CmpIPredicate::ne, bit, zero);
        Value next[] = {arith::SelectOp::create(n, isSet, product, values[0]),
                        arith::MulFOp::create(n, values[1], values[1]),
                        arith::ShRUIOp::create(n, values[2], constant(1))};
        scf::YieldOp::create(n, next);
      });
  Value result = power.getResult(0);
  result = arith::SelectOp::create(
      b, isNegative, arith::DivFOp::create(b, one, result), result);
  return isNarrow ? arith::TruncFOp::create(b, type, result).getResult()
                  : result;
}

namespace {
/// Expands a classification to comparisons of the absolute value. Comparisons
/// are ordered, so they are false for a NaN.
template <typename OpTy> struct ExpandClass : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value x = op.getOperand();
    auto element = dyn_cast<FloatType>(getElementTypeOrSelf(x));
    if (!element || !APFloat::semanticsHasInf(element.getFloatSemantics()))
      return rewriter.notifyMatchFailure(op, "not a float with infinities");
    const llvm::fltSemantics &semantics = element.getFloatSemantics();
    auto compare = [&](CmpFPredicate predicate, Value left, Value right) {
      return arith::CmpFOp::create(b, predicate, left, right);
    };
    auto constant = [&](const APFloat &value) {
      return createConstant(b, x.getType(), b.getFloatAttr(element, value));
    };
    if constexpr (std::is_same_v<OpTy, math::IsNaNOp>) {
      rewriter.replaceOp(op, compare(CmpFPredicate::UNO, x, x));
      return success();
    }
    Value size = math::AbsFOp::create(b, x);
    Value infinity = constant(APFloat::getInf(semantics));
    if constexpr (std::is_same_v<OpTy, math::IsInfOp>) {
      rewriter.replaceOp(op, compare(CmpFPredicate::OEQ, size, infinity));
      return success();
    }
    Value isFinite = compare(CmpFPredicate::OLT, size, infinity);
    if constexpr (std::is_same_v<OpTy, math::IsNormalOp>) {
      Value smallest = constant(APFloat::getSmallestNormalized(semantics));
      Value isLarge = compare(CmpFPredicate::OGE, size, smallest);
      isFinite = arith::AndIOp::create(b, isFinite, isLarge);
    }
    rewriter.replaceOp(op, isFinite);
    return success();
  }
};

/// Expands math.ipowi to repeated squaring, with one step for each bit of the
/// exponent type, so that all lanes of a vector take the same steps.
struct ExpandIPowI : OpRewritePattern<math::IPowIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::IPowIOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType(), element = getElementTypeOrSelf(type);
    unsigned width = element.isIndex() ? IndexType::kInternalStorageBitWidth
                                       : element.getIntOrFloatBitWidth();
    if (width < 2 || isa<TensorType>(type))
      return rewriter.notifyMatchFailure(op, "a bit, or a tensor");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto constant = [&](int64_t value) {
      return createConstant(b, type, b.getIntegerAttr(element, value));
    };
    auto compare = [&](arith::CmpIPredicate predicate, Value l, Value r) {
      return arith::CmpIOp::create(b, predicate, l, r);
    };
    Value zero = constant(0), one = constant(1);
    auto index = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, value);
    };
    auto power = scf::ForOp::create(
        b, index(0), index(width), index(1),
        ValueRange{one, op.getLhs(), op.getRhs()},
        [&](OpBuilder &nested, Location loc, Value, ValueRange values) {
          ImplicitLocOpBuilder n(loc, nested);
          Value product = arith::MulIOp::create(n, values[0], values[1]);
          Value bit = arith::AndIOp::create(n, values[2], one);
          Value isSet =
              arith::CmpIOp::create(n, arith::CmpIPredicate::ne, bit, zero);
          Value next[] = {arith::SelectOp::create(n, isSet, product, values[0]),
                          arith::MulIOp::create(n, values[1], values[1]),
                          arith::ShRUIOp::create(n, values[2], one)};
          scf::YieldOp::create(n, next);
        });
    // A negative power is 1 divided by the positive power, rounded towards 0:
    // it is 0 unless the base is 1 or -1, whose powers are their own inverses.
    Value isOne = compare(arith::CmpIPredicate::eq, op.getLhs(), one);
    Value isMinusOne =
        compare(arith::CmpIPredicate::eq, op.getLhs(), constant(-1));
    Value isUnit = arith::OrIOp::create(b, isOne, isMinusOne);
    Value isPositive = compare(arith::CmpIPredicate::sge, op.getRhs(), zero);
    Value isWhole = arith::OrIOp::create(b, isUnit, isPositive);
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, isWhole,
                                                 power.getResult(0), zero);
    return success();
  }
};

/// Expands math.fpowi on vectors and with exponents other than i32, because
/// LLVM's intrinsic takes one i32 exponent for all lanes.
struct ExpandFPowI : OpRewritePattern<math::FPowIOp> {
  using OpRewritePattern::OpRewritePattern;

  static Value createPower(ImplicitLocOpBuilder &b, math::FPowIOp op, Value x,
                           Value y) {
    Type type = y.getType();
    if (type.isIndex() || type.getIntOrFloatBitWidth() > 32)
      return expandPower(b, x, y);
    if (type.getIntOrFloatBitWidth() < 32)
      y = arith::ExtSIOp::create(b, b.getI32Type(), y);
    return math::FPowIOp::create(b, x, y, op.getFastmath());
  }

  LogicalResult matchAndRewrite(math::FPowIOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    if (isa<FloatType>(op.getType())) {
      if (op.getRhs().getType().isInteger(32))
        return rewriter.notifyMatchFailure(op, "LLVM has an intrinsic for it");
      rewriter.replaceOp(op, createPower(b, op, op.getLhs(), op.getRhs()));
      return success();
    }
    auto type = dyn_cast<VectorType>(op.getType());
    if (!type || type.isScalable())
      return rewriter.notifyMatchFailure(op, "not a vector of fixed length");
    Value result =
        createConstant(b, type, b.getZeroAttr(type.getElementType()));
    SmallVector<int64_t> tile(type.getRank(), 1);
    for (const SmallVector<int64_t> &lane :
         StaticTileOffsetRange(type.getShape(), tile)) {
      Value power =
          createPower(b, op, vector::ExtractOp::create(b, op.getLhs(), lane),
                      vector::ExtractOp::create(b, op.getRhs(), lane));
      result = vector::InsertOp::create(b, power, result, lane);
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Computes math.fma on bf16 in f32. Upstream's pass extends all other math
/// ops, but not this one.
struct ExtendFma : OpRewritePattern<math::FmaOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::FmaOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isBF16())
      return rewriter.notifyMatchFailure(op, "not on bf16");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type wide = b.getF32Type();
    if (auto shaped = dyn_cast<ShapedType>(type))
      wide = shaped.clone(wide);
    SmallVector<Value> operands =
        llvm::map_to_vector(op->getOperands(), [&](Value operand) -> Value {
          return arith::ExtFOp::create(b, wide, operand);
        });
    Value result = math::FmaOp::create(b, operands[0], operands[1], operands[2],
                                       op.getFastmath());
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, type, result);
    return success();
  }
};

struct BNGradExpandMathPass
    : bngrad::impl::BNGradExpandMathPassBase<BNGradExpandMathPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandClass<math::IsFiniteOp>, ExpandClass<math::IsInfOp>,
                 ExpandClass<math::IsNaNOp>, ExpandClass<math::IsNormalOp>,
                 ExpandFPowI, ExpandIPowI, ExtendFma>(&getContext());
    math::populateExpansionPatterns(patterns, {"clampf"});
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
