//===- ExpandTruncF.cpp - bngrad-expand-truncf ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FloatBits.h"
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

/// Whether `op` rounds f32 to the nearest bf16.
static bool roundsToBF16(arith::TruncFOp op) {
  return getElementTypeOrSelf(op.getIn().getType()).isF32() &&
         getElementTypeOrSelf(op.getType()).isBF16() && roundsToNearestEven(op);
}

/// Whether `op` interleaves two vectors that are rounded to bf16 and have no
/// other uses.
static bool joinsPairs(vector::InterleaveOp op) {
  return op.getLhs() != op.getRhs() &&
         op.getSourceVectorType().getRank() == 1 &&
         op.getResultVectorType().getRank() == 1 &&
         !op.getResultVectorType().isScalable() &&
         llvm::all_of(op->getOperands(), [&](Value half) {
           auto rounding = half.getDefiningOp<arith::TruncFOp>();
           return rounding && rounding->getBlock() == op->getBlock() &&
                  half.hasOneUse() && roundsToBF16(rounding);
         });
}

/// Whether the result of `op` is an operand of such a vector.interleave.
static bool isHalfOfPairs(arith::TruncFOp op) {
  return llvm::any_of(op->getUsers(), [](Operation *user) {
    auto interleave = dyn_cast<vector::InterleaveOp>(user);
    return interleave && joinsPairs(interleave);
  });
}

static bool isVectorOfBF16(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getElementType().isBF16();
}

static bool isConvertedByGpu(Operation *op,
                             const FloatInstructions &instructions) {
  return instructions.kernelBF16 && op->getParentOfType<gpu::LaunchOp>();
}

/// Emits the bits of `value`, an f32, rounded so that their upper half is a
/// bf16.
static Value roundBits(OpBuilder &b, Location loc, Value value,
                       bool mayBeNaN = true) {
  Type i32 = withShapeOf(value.getType(), b.getI32Type());
  Value bits = arith::BitcastOp::create(b, loc, i32, value);
  Value last = arith::AndIOp::create(
      b, loc,
      arith::ShRUIOp::create(b, loc, bits, constantBits(b, loc, i32, 16)),
      constantBits(b, loc, i32, 1));
  Value half =
      arith::AddIOp::create(b, loc, last, constantBits(b, loc, i32, 0x7fff));
  Value rounded = arith::AddIOp::create(b, loc, bits, half);
  if (!mayBeNaN)
    return rounded;
  Value isNaN =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
  return arith::SelectOp::create(
      b, loc, isNaN, constantBits(b, loc, i32, 0x7fc00000), rounded);
}

static Value takeUpperHalves(OpBuilder &b, Location loc, Value bits) {
  Value upper = arith::ShRUIOp::create(
      b, loc, bits, constantBits(b, loc, bits.getType(), 16));
  return arith::TruncIOp::create(
      b, loc, withShapeOf(bits.getType(), b.getI16Type()), upper);
}

/// Emits for each element of `value` whether it is 0 or subnormal. The
/// conversion instruction of the host flushes such elements to 0.
static Value areTiny(OpBuilder &b, Location loc, Value value) {
  Type i32 = withShapeOf(value.getType(), b.getI32Type());
  Value exponent = arith::AndIOp::create(
      b, loc, arith::BitcastOp::create(b, loc, i32, value),
      constantBits(b, loc, i32, 0x7f800000));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, exponent,
                               constantBits(b, loc, i32, 0));
}

/// Converts `value`, a vector of f32, to bf16 with the instruction of the host.
/// The result is cast to integers, because LLVM drops the streaming hint of
/// bf16 stores.
static Value convert(OpBuilder &b, Location loc, Value value) {
  Value converted = LLVM::FPTruncOp::create(
      b, loc, withShapeOf(value.getType(), b.getBF16Type()), value);
  return arith::BitcastOp::create(
      b, loc, withShapeOf(value.getType(), b.getI16Type()), converted);
}

/// Emits an scf.if that computes `whereAny` if a lane of `condition` is true,
/// and `whereNone` otherwise.
static Value emitIfAny(OpBuilder &b, Location loc, Value condition,
                       function_ref<Value(OpBuilder &)> whereAny,
                       function_ref<Value(OpBuilder &)> whereNone) {
  Value any =
      vector::ReductionOp::create(b, loc, vector::CombiningKind::OR, condition);
  auto yield = [&](function_ref<Value(OpBuilder &)> make) {
    return [make](OpBuilder &nested, Location at) {
      scf::YieldOp::create(nested, at, make(nested));
    };
  };
  return scf::IfOp::create(b, loc, any, yield(whereAny), yield(whereNone))
      .getResult(0);
}

static Value compare(OpBuilder &b, Location loc, arith::CmpFPredicate predicate,
                     Value lhs, Value rhs) {
  return arith::CmpFOp::create(b, loc, predicate, lhs, rhs);
}

static Value isNegative(OpBuilder &b, Location loc, Value value) {
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
  return compare(b, loc, arith::CmpFPredicate::OLT, value, zero);
}

/// Emits whether `rounded`, which is 0 or has the sign of `value`, is farther
/// from 0 than `value`.
static Value isAwayFromZero(OpBuilder &b, Location loc, Value rounded,
                            Value value) {
  return arith::SelectOp::create(
      b, loc, isNegative(b, loc, value),
      compare(b, loc, arith::CmpFPredicate::OLT, rounded, value),
      compare(b, loc, arith::CmpFPredicate::OGT, rounded, value));
}

namespace {
/// Truncates f64 to f16 or bf16 through an f32 that is rounded to odd: if the
/// f64 is not exactly an f32, it becomes the neighbouring f32 with an odd last
/// bit. Since f32 has at least two more bits than the target, rounding that f32
/// gives the same result as rounding the f64.
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
    // An ordered comparison, so that a NaN is not changed.
    Value inexact = compare(b, loc, arith::CmpFPredicate::ONE, back, value);
    Value isAway = isAwayFromZero(b, loc, back, value);
    Value bits = arith::BitcastOp::create(b, loc, i32, nearest);
    Value one = constantBits(b, loc, i32, 1);
    Value stepped = arith::SubIOp::create(b, loc, bits, one);
    Value towardZero = arith::SelectOp::create(b, loc, isAway, stepped, bits);
    Value odd = arith::OrIOp::create(b, loc, towardZero, one);
    bits = arith::SelectOp::create(b, loc, inexact, odd, bits);
    Value rounded = arith::BitcastOp::create(b, loc, f32, bits);
    b.replaceOpWithNewOp<arith::TruncFOp>(op, to, rounded);
    return success();
  }
};

/// Implements the rounding modes that LLVM's targets ignore. The result is the
/// nearest number or, if the mode requires it, one of its neighbours, whose
/// bits differ by 1.
struct TruncByMode : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &b) const override {
    if (roundsToNearestEven(op))
      return b.notifyMatchFailure(op, "to nearest even");
    Type element = getElementTypeOrSelf(op.getType());
    if (!element.isF16() && !element.isBF16() && !element.isF32())
      return b.notifyMatchFailure(op, "not to f16, bf16 or f32");
    if (isa<TensorType>(op.getType()))
      return b.notifyMatchFailure(op, "tensor semantics");

    Location loc = op.getLoc();
    Value value = op.getIn();
    Type from = value.getType(), to = op.getType();
    Type integer =
        withShapeOf(to, b.getIntegerType(element.getIntOrFloatBitWidth()));
    Value nearest = arith::TruncFOp::create(b, loc, to, value);
    Value back = arith::ExtFOp::create(b, loc, from, nearest);
    Value bits = arith::BitcastOp::create(b, loc, integer, nearest);
    Value one = constantBits(b, loc, integer, 1);
    Value away = arith::AddIOp::create(b, loc, bits, one);
    Value closer = arith::SubIOp::create(b, loc, bits, one);
    // All comparisons are ordered, so that a NaN is not changed.
    auto select = [&](Value condition, Value onTrue, Value onFalse) -> Value {
      return arith::SelectOp::create(b, loc, condition, onTrue, onFalse);
    };
    Value rounded;
    switch (*op.getRoundingmode()) {
    case arith::RoundingMode::to_nearest_even:
      llvm_unreachable("rejected above");
    case arith::RoundingMode::downward:
      rounded = select(compare(b, loc, arith::CmpFPredicate::OGT, back, value),
                       select(isNegative(b, loc, value), away, closer), bits);
      break;
    case arith::RoundingMode::upward:
      rounded = select(compare(b, loc, arith::CmpFPredicate::OLT, back, value),
                       select(isNegative(b, loc, value), closer, away), bits);
      break;
    case arith::RoundingMode::toward_zero:
      rounded = select(isAwayFromZero(b, loc, back, value), closer, bits);
      break;
    case arith::RoundingMode::to_nearest_away: {
      Value neighbour = arith::BitcastOp::create(b, loc, to, away);
      Value other = arith::ExtFOp::create(b, loc, from, neighbour);
      // In a tie, both differences are exact and therefore equal. Otherwise
      // they differ, because rounding is monotone. If a tie has already been
      // rounded away from zero, they differ because their signs are opposite.
      Value isTie = compare(b, loc, arith::CmpFPredicate::OEQ,
                            arith::SubFOp::create(b, loc, other, value),
                            arith::SubFOp::create(b, loc, value, back));
      rounded = select(isTie, away, bits);
      break;
    }
    }
    b.replaceOpWithNewOp<arith::BitcastOp>(op, to, rounded);
    return success();
  }
};

/// Truncates f32 to bf16 by integer arithmetic: to round to nearest even, adds
/// the last kept bit and half a unit in its place minus 1, and drops the lower
/// half of the bits. A NaN stays a NaN. If the host has a conversion
/// instruction, the arithmetic is only used for vectors with elements that the
/// instruction would flush. If the GPU has one, the op is unchanged in kernels.
struct TruncToBF16 : OpRewritePattern<arith::TruncFOp> {
  TruncToBF16(MLIRContext *context, const FloatInstructions &instructions)
      : OpRewritePattern(context), instructions(instructions) {}

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &b) const override {
    if (!roundsToBF16(op))
      return b.notifyMatchFailure(op, "not f32 to the nearest bf16");
    if (isa<TensorType>(op.getType()))
      return b.notifyMatchFailure(op, "tensor semantics");
    if (isConvertedByGpu(op, instructions))
      return b.notifyMatchFailure(op, "the GPU's instruction rounds correctly");
    if (isHalfOfPairs(op))
      return b.notifyMatchFailure(op, "rounded together with its other half");

    Location loc = op.getLoc();
    Value value = op.getIn();
    auto type = dyn_cast<VectorType>(op.getType());
    auto roundAll = [&](OpBuilder &nested) {
      return takeUpperHalves(nested, loc, roundBits(nested, loc, value));
    };
    Value rounded;
    if (instructions.bf16 && type && type.getRank() == 1 && !type.isScalable())
      rounded = emitIfAny(
          b, loc, areTiny(b, loc, value), roundAll,
          [&](OpBuilder &nested) { return convert(nested, loc, value); });
    else
      rounded = roundAll(b);
    b.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), rounded);
    return success();
  }

private:
  FloatInstructions instructions;
};

/// Truncates two vectors of f32 to bf16 and interleaves them. In integer
/// arithmetic, this needs no shuffles: each pair of elements is joined by an
/// `or`.
struct TruncPairsToBF16 : OpRewritePattern<vector::InterleaveOp> {
  TruncPairsToBF16(MLIRContext *context, const FloatInstructions &instructions)
      : OpRewritePattern(context), instructions(instructions) {}

  LogicalResult matchAndRewrite(vector::InterleaveOp op,
                                PatternRewriter &b) const override {
    if (!joinsPairs(op))
      return b.notifyMatchFailure(op, "not two roundings to bf16");
    if (isConvertedByGpu(op, instructions))
      return b.notifyMatchFailure(op, "the GPU's instruction rounds correctly");
    Location loc = op.getLoc();
    Value even = op.getLhs().getDefiningOp<arith::TruncFOp>().getIn();
    Value odd = op.getRhs().getDefiningOp<arith::TruncFOp>().getIn();
    auto type = cast<VectorType>(op.getType());
    auto round = [&](OpBuilder &nested, bool haveNaN) -> Value {
      Type i32 = withShapeOf(even.getType(), b.getI32Type());
      Value lower = arith::ShRUIOp::create(
          nested, loc, roundBits(nested, loc, even, haveNaN),
          constantBits(nested, loc, i32, 16));
      Value upper = arith::AndIOp::create(
          nested, loc, roundBits(nested, loc, odd, haveNaN),
          constantBits(nested, loc, i32, 0xffff0000));
      return vector::BitCastOp::create(
          nested, loc, type.clone(nested.getI16Type()),
          arith::OrIOp::create(nested, loc, lower, upper));
    };
    auto roundAll = [&](OpBuilder &nested) { return round(nested, true); };
    Value rounded;
    if (instructions.bf16) {
      Value isTiny = arith::OrIOp::create(b, loc, areTiny(b, loc, even),
                                          areTiny(b, loc, odd));
      rounded =
          emitIfAny(b, loc, isTiny, roundAll, [&](OpBuilder &nested) -> Value {
            return vector::InterleaveOp::create(nested, loc,
                                                convert(nested, loc, even),
                                                convert(nested, loc, odd));
          });
    } else if (op->getParentOfType<gpu::LaunchOp>()) {
      rounded = roundAll(b);
    } else {
      // One comparison detects a NaN in either vector. Without the branch, each
      // vector would need a comparison and a selection.
      Value isNaN = compare(b, loc, arith::CmpFPredicate::UNO, even, odd);
      rounded = emitIfAny(b, loc, isNaN, roundAll, [&](OpBuilder &nested) {
        return round(nested, /*haveNaN=*/false);
      });
    }
    b.replaceOpWithNewOp<arith::BitcastOp>(op, type, rounded);
    return success();
  }

private:
  FloatInstructions instructions;
};

/// Extends vectors of bf16 in integer arithmetic. Otherwise, InstCombine would
/// turn a comparison of two extensions into a comparison of bf16, which x86
/// without AVX-NE-CONVERT computes one element at a time.
struct ExtendBF16OnBits : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &b) const override {
    if (!isVectorOfBF16(op.getIn().getType()) ||
        !getElementTypeOrSelf(op.getType()).isF32() ||
        op->getParentOfType<gpu::LaunchOp>())
      return b.notifyMatchFailure(op, "not a vector of bf16 on the CPU");
    Location loc = op.getLoc();
    Type i16 = withShapeOf(op.getType(), b.getI16Type());
    Type i32 = withShapeOf(op.getType(), b.getI32Type());
    Value bits = arith::ExtUIOp::create(
        b, loc, i32, arith::BitcastOp::create(b, loc, i16, op.getIn()));
    Value shifted =
        arith::ShLIOp::create(b, loc, bits, constantBits(b, loc, i32, 16));
    b.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), shifted);
    return success();
  }
};

/// Selects between vectors of bf16 as integers, because x86 without
/// AVX-NE-CONVERT would select one element at a time.
struct SelectBF16OnBits : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SelectOp op,
                                PatternRewriter &b) const override {
    if (!isVectorOfBF16(op.getType()) || op->getParentOfType<gpu::LaunchOp>())
      return b.notifyMatchFailure(op, "not a vector of bf16 on the CPU");
    Type i16 = withShapeOf(op.getType(), b.getI16Type());
    auto toBits = [&](Value value) {
      return arith::BitcastOp::create(b, op.getLoc(), i16, value);
    };
    Value selected = arith::SelectOp::create(b, op.getLoc(), op.getCondition(),
                                             toBits(op.getTrueValue()),
                                             toBits(op.getFalseValue()));
    b.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), selected);
    return success();
  }
};

struct BNGradExpandTruncFPass
    : bngrad::impl::BNGradExpandTruncFPassBase<BNGradExpandTruncFPass> {
  using Base::Base;

  void runOnOperation() override {
    // Upstream's emulation of bf16 marks its truncations with fast-math flags
    // that allow LLVM to skip the rounding between two ops. Remove these flags,
    // so that every op rounds on every target.
    bool hasConversion = false;
    getOperation()->walk([&](Operation *op) {
      auto truncation = dyn_cast<arith::TruncFOp>(op);
      hasConversion |= truncation || isa<arith::ExtFOp, arith::SelectOp>(op);
      if (truncation && getElementTypeOrSelf(truncation.getType()).isBF16())
        truncation->removeAttr(truncation.getFastmathAttrName());
    });
    RewritePatternSet patterns(&getContext());
    populateExpandTruncFPatterns(
        patterns, {bf16Conversion, kernelBF16Conversion, f16Conversion});
    if (failed(verifyDimIndices(getOperation())))
      return signalPassFailure();
    // Skip the rewriting if there is nothing to do, because it takes time
    // anyway.
    if (hasConversion &&
        failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

void mlir::bngrad::populateExpandTruncFPatterns(
    RewritePatternSet &patterns, const FloatInstructions &instructions) {
  patterns
      .add<TruncByMode, TruncThroughOdd, ExtendBF16OnBits, SelectBF16OnBits>(
          patterns.getContext());
  patterns.add<TruncToBF16, TruncPairsToBF16>(patterns.getContext(),
                                              instructions);
  if (!instructions.f16)
    populateExpandF16Patterns(patterns);
}
