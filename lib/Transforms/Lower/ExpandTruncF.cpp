//===- ExpandTruncF.cpp - bngrad-expand-truncf: round once ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils/Utils.h"

#include "BNGrad/Transforms/Lower/Passes.h"
#include "BNGrad/Transforms/Lower/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADEXPANDTRUNCFPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// `type`, or a vector of it where `like` is a vector.
static Type withShapeOf(Type like, Type type) {
  if (auto shaped = dyn_cast<ShapedType>(like))
    return shaped.clone(type);
  return type;
}

static Value constantBits(OpBuilder &b, Location loc, Type type,
                          uint64_t bits) {
  auto element = cast<IntegerType>(getElementTypeOrSelf(type));
  TypedAttr attr = b.getIntegerAttr(element, APInt(element.getWidth(), bits));
  if (auto shaped = dyn_cast<ShapedType>(type))
    attr = DenseElementsAttr::get(shaped, cast<Attribute>(attr));
  return arith::ConstantOp::create(b, loc, attr);
}

static bool roundsToNearestEven(arith::TruncFOp op) {
  return op.getRoundingmode().value_or(arith::RoundingMode::to_nearest_even) ==
         arith::RoundingMode::to_nearest_even;
}

namespace {
/// f64 -> f16 or bf16 through an f32 that is rounded to odd: if inexact, the
/// neighbour with an odd last bit. Two bits more than the target are enough for
/// the second rounding to be that of the f64.
struct TruncThroughOdd : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &b) const override {
    Value value = op.getIn();
    Type from = value.getType(), to = op.getType();
    if (!getElementTypeOrSelf(from).isF64() ||
        !(getElementTypeOrSelf(to).isF16() ||
          getElementTypeOrSelf(to).isBF16()))
      return b.notifyMatchFailure(op, "not f64 to f16 or bf16");
    if (!roundsToNearestEven(op))
      return b.notifyMatchFailure(op, "another rounding mode");
    if (isa<TensorType>(from))
      return b.notifyMatchFailure(op, "tensor semantics");

    Location loc = op.getLoc();
    Type f32 = withShapeOf(from, b.getF32Type());
    Type i32 = withShapeOf(from, b.getI32Type());
    Value nearest = arith::TruncFOp::create(b, loc, f32, value);
    Value back = arith::ExtFOp::create(b, loc, from, nearest);
    // Ordered: a NaN is left alone.
    Value inexact =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ONE, back, value);
    // |nearest| > |value|: step back towards zero.
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(from));
    Value isNegative =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, value, zero);
    Value isBelow =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, back, value);
    Value isAbove =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, back, value);
    Value isAway =
        arith::SelectOp::create(b, loc, isNegative, isBelow, isAbove);
    Value bits = arith::BitcastOp::create(b, loc, i32, nearest);
    Value one = constantBits(b, loc, i32, 1);
    Value stepped = arith::SubIOp::create(b, loc, bits, one);
    Value towardsZero = arith::SelectOp::create(b, loc, isAway, stepped, bits);
    Value odd = arith::OrIOp::create(b, loc, towardsZero, one);
    bits = arith::SelectOp::create(b, loc, inexact, odd, bits);
    Value rounded = arith::BitcastOp::create(b, loc, f32, bits);
    b.replaceOpWithNewOp<arith::TruncFOp>(op, to, rounded);
    return success();
  }
};

/// f32 -> bf16 on the bits: add half of the last place kept (less one where
/// that place is even already), then cut; a NaN stays one. With
/// an instruction of the host only where it flushes; not in kernels with one.
struct TruncToBF16 : OpRewritePattern<arith::TruncFOp> {
  TruncToBF16(MLIRContext *context, const BF16Instructions &instructions)
      : OpRewritePattern(context), instructions(instructions) {}

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &b) const override {
    Value value = op.getIn();
    Type from = value.getType(), to = op.getType();
    if (!getElementTypeOrSelf(from).isF32() ||
        !getElementTypeOrSelf(to).isBF16())
      return b.notifyMatchFailure(op, "not f32 to bf16");
    if (!roundsToNearestEven(op))
      return b.notifyMatchFailure(op, "another rounding mode");
    if (isa<TensorType>(from))
      return b.notifyMatchFailure(op, "tensor semantics");
    if (instructions.kernels && op->getParentOfType<gpu::LaunchOp>())
      return b.notifyMatchFailure(op, "the instruction of the GPU is right");

    Location loc = op.getLoc();
    auto vectorType = dyn_cast<VectorType>(from);
    bool isConverted = instructions.host && vectorType &&
                       vectorType.getRank() == 1 && !vectorType.isScalable();
    Value rounded = isConverted ? convertOrRoundBits(b, loc, value, to)
                                : roundBits(b, loc, value);
    b.replaceOpWithNewOp<arith::BitcastOp>(op, to, rounded);
    return success();
  }

private:
  /// The bits of `value`, rounded.
  static Value roundBits(OpBuilder &b, Location loc, Value value) {
    Type i32 = withShapeOf(value.getType(), b.getI32Type());
    Type i16 = withShapeOf(value.getType(), b.getI16Type());
    Value bits = arith::BitcastOp::create(b, loc, i32, value);
    Value sixteen = constantBits(b, loc, i32, 16);
    Value last = arith::AndIOp::create(
        b, loc, arith::ShRUIOp::create(b, loc, bits, sixteen),
        constantBits(b, loc, i32, 1));
    Value half =
        arith::AddIOp::create(b, loc, last, constantBits(b, loc, i32, 0x7fff));
    Value rounded = arith::AddIOp::create(b, loc, bits, half);
    Value isNaN =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
    rounded = arith::SelectOp::create(
        b, loc, isNaN, constantBits(b, loc, i32, 0x7fc00000), rounded);
    Value high = arith::ShRUIOp::create(b, loc, rounded, sixteen);
    return arith::TruncIOp::create(b, loc, i16, high);
  }

  /// The same by the instruction, which is right where no element is below the
  /// normal numbers.
  static Value convertOrRoundBits(OpBuilder &b, Location loc, Value value,
                                  Type to) {
    Type i32 = withShapeOf(to, b.getI32Type());
    Type i16 = withShapeOf(to, b.getI16Type());
    Value bits = arith::BitcastOp::create(b, loc, i32, value);
    Value exponent = arith::AndIOp::create(
        b, loc, bits, constantBits(b, loc, i32, 0x7f800000));
    Value isTiny =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, exponent,
                              constantBits(b, loc, i32, 0));
    Value anyIsTiny =
        vector::ReductionOp::create(b, loc, vector::CombiningKind::OR, isTiny);
    return scf::IfOp::create(
               b, loc, anyIsTiny,
               [&](OpBuilder &nested, Location) {
                 scf::YieldOp::create(nested, loc,
                                      roundBits(nested, loc, value));
               },
               [&](OpBuilder &nested, Location) {
                 Value converted =
                     LLVM::FPTruncOp::create(nested, loc, to, value);
                 // As integers: LLVM forgets that stores of bf16 are streaming.
                 converted =
                     arith::BitcastOp::create(nested, loc, i16, converted);
                 scf::YieldOp::create(nested, loc, converted);
               })
        .getResult(0);
  }

  BF16Instructions instructions;
};

struct BNGradExpandTruncFPass
    : bngrad::impl::BNGradExpandTruncFPassBase<BNGradExpandTruncFPass> {
  using Base::Base;

  void runOnOperation() override {
    // Upstream's emulation of narrow floats allows its roundings to be skipped
    // between two operations. Each operation rounds, wherever it is compiled.
    getOperation()->walk([](arith::TruncFOp op) {
      if (getElementTypeOrSelf(op.getType()).isBF16())
        op->removeAttr(op.getFastmathAttrName());
    });
    RewritePatternSet patterns(&getContext());
    populateExpandTruncFPatterns(patterns,
                                 {bf16Conversion, kernelBF16Conversion});
    if (failed(verifyReshapes(getOperation())) ||
        failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

void mlir::bngrad::populateExpandTruncFPatterns(
    RewritePatternSet &patterns, const BF16Instructions &instructions) {
  patterns.add<TruncThroughOdd>(patterns.getContext());
  patterns.add<TruncToBF16>(patterns.getContext(), instructions);
}
