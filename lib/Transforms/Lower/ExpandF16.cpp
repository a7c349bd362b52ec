//===- ExpandF16.cpp - conversions of f16 without instructions ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Without these patterns, LLVM would call a function for each element.
// Conversions that the patterns do not match still do:
// lib/Compiler/Libcalls.cpp defines these functions, which compute the same
// values.
//
//===----------------------------------------------------------------------===//

#include "FloatBits.h"
#include "Utils/Utils.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::bngrad;

namespace {
/// Emits integer arithmetic on the bits of 32-bit floats, either scalars or
/// vectors.
class BitBuilder {
public:
  BitBuilder(OpBuilder &b, Location loc, Type like)
      : b(b), loc(loc), i16(withShapeOf(like, b.getI16Type())),
        i32(withShapeOf(like, b.getI32Type())),
        f32(withShapeOf(like, b.getF32Type())) {}

  Value constant(uint64_t bits) const {
    return constantBits(b, loc, i32, bits);
  }
  Value add(Value lhs, Value rhs) const {
    return arith::AddIOp::create(b, loc, lhs, rhs);
  }
  Value add(Value value, uint64_t bits) const {
    return add(value, constant(bits));
  }
  Value bitAnd(Value value, uint64_t bits) const {
    return arith::AndIOp::create(b, loc, value, constant(bits));
  }
  Value shiftLeft(Value value, uint64_t count) const {
    return arith::ShLIOp::create(b, loc, value, constant(count));
  }
  Value shiftRight(Value value, uint64_t count) const {
    return arith::ShRUIOp::create(b, loc, value, constant(count));
  }
  /// Emits whether `value` is less than `bits`. Both have sign bit 0.
  Value isLess(Value value, uint64_t bits) const {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, value,
                                 constant(bits));
  }
  Value select(Value condition, Value onTrue, Value onFalse) const {
    return arith::SelectOp::create(b, loc, condition, onTrue, onFalse);
  }
  Value asFloat(Value bits) const {
    return arith::BitcastOp::create(b, loc, f32, bits);
  }
  Value asBits(Value value) const {
    return arith::BitcastOp::create(b, loc, i32, value);
  }

  OpBuilder &b;
  Location loc;
  Type i16, i32, f32;
};

/// The difference between the exponent biases of f32 and f16, 127 and 15.
constexpr uint64_t kBias = 112;
/// The bits of 2^-14, the least normal f16, as an f32.
constexpr uint64_t kLeastNormal = 113 << 23;
/// The bits of 2^16 as an f32. In f16, this exponent denotes infinity.
constexpr uint64_t kInfinity = 143 << 23;

/// Whether `op`, a conversion from `from`, is to be expanded for the CPU.
/// Tensors are not, since they become loops later; GPUs have conversion
/// instructions.
bool isForCpu(Operation *op, Type from) {
  return !isa<TensorType>(from) && !op->getParentOfType<gpu::LaunchOp>();
}

/// Converts f16 to f32, which is exact.
struct ExtendF16 : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &b) const override {
    Type from = op.getIn().getType(), to = op.getType();
    if (!getElementTypeOrSelf(from).isF16())
      return b.notifyMatchFailure(op, "not from f16");
    if (!isForCpu(op, from))
      return b.notifyMatchFailure(op, "a tensor, or in a kernel");

    Location loc = op.getLoc();
    BitBuilder bits(b, loc, from);
    Value half = arith::ExtUIOp::create(
        b, loc, bits.i32,
        arith::BitcastOp::create(b, loc, bits.i16, op.getIn()));
    Value magnitude = bits.bitAnd(half, 0x7fff);
    Value sign = bits.shiftLeft(bits.bitAnd(half, 0x8000), 16);
    Value isTiny = bits.isLess(magnitude, 0x0400);
    Value isFinite = bits.isLess(magnitude, 0x7c00);
    // Change the exponent's bias to f32's. The exponent of infinity and NaN
    // must change from 31 to 255, so add the difference twice. Subnormal
    // numbers, below 2^-14, have exponent 0 but mean exponent 1, so add 1.
    Value zero = bits.constant(0);
    Value result = bits.add(bits.shiftLeft(magnitude, 13), kBias << 23);
    result = bits.add(result,
                      bits.select(isFinite, zero, bits.constant(kBias << 23)));
    result =
        bits.add(result, bits.select(isTiny, bits.constant(1 << 23), zero));
    // Subnormal numbers have no implicit leading 1, so subtract the one that
    // the new exponent implies. This computes with no subnormal f32, which
    // would be wrong if the thread flushes those to 0.
    Value one = bits.select(isTiny, bits.constant(kLeastNormal), zero);
    result = bits.asBits(
        arith::SubFOp::create(b, loc, bits.asFloat(result), bits.asFloat(one)));
    result = bits.asFloat(arith::OrIOp::create(b, loc, result, sign));
    if (result.getType() != to)
      result = arith::ExtFOp::create(b, loc, to, result);
    b.replaceOp(op, result);
    return success();
  }
};

/// Converts f32 to f16, rounded to nearest even.
struct TruncToF16 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &b) const override {
    Type from = op.getIn().getType(), to = op.getType();
    if (!getElementTypeOrSelf(from).isF32() ||
        !getElementTypeOrSelf(to).isF16() || !roundsToNearestEven(op))
      return b.notifyMatchFailure(op, "not f32 to the nearest f16");
    if (!isForCpu(op, from))
      return b.notifyMatchFailure(op, "a tensor, or in a kernel");

    Location loc = op.getLoc();
    BitBuilder bits(b, loc, from);
    Value value = bits.asBits(op.getIn());
    Value sign = bits.bitAnd(bits.shiftRight(value, 16), 0x8000);
    Value magnitude = bits.bitAnd(value, 0x7fffffff);
    // Round to nearest even by adding the last kept bit and half a unit in its
    // place minus 1. From 65520 on, the sum has the bits of infinity in f16.
    // Values larger than 2^16 are replaced by 2^16, which gives the same bits.
    Value bounded =
        arith::MinSIOp::create(b, loc, magnitude, bits.constant(kInfinity));
    Value last = bits.bitAnd(bits.shiftRight(bounded, 13), 1);
    Value sum =
        bits.add(bits.add(bounded, last), 0x100000000 - (kBias << 23) + 0xfff);
    Value normal = bits.shiftRight(sum, 13);
    // If the result is subnormal, add 0.5: its last place as an f32 is the last
    // place of subnormal f16 numbers, so the addition rounds correctly.
    constexpr uint64_t half = 126 << 23;
    Value tiny = bits.add(
        bits.asBits(arith::AddFOp::create(b, loc, bits.asFloat(magnitude),
                                          bits.asFloat(bits.constant(half)))),
        0x100000000 - half);
    Value isTiny = bits.isLess(magnitude, kLeastNormal);
    Value isNumber = bits.isLess(magnitude, 0x7f800001);
    Value result = bits.select(isTiny, tiny, normal);
    Value quiet = bits.select(isNumber, bits.constant(0), bits.constant(0x200));
    for (Value part : {sign, quiet})
      result = arith::OrIOp::create(b, loc, result, part);
    b.replaceOpWithNewOp<arith::BitcastOp>(
        op, to, arith::TruncIOp::create(b, loc, bits.i16, result));
    return success();
  }
};
} // namespace

void mlir::bngrad::populateExpandF16Patterns(RewritePatternSet &patterns) {
  patterns.add<ExtendF16, TruncToF16>(patterns.getContext());
}
