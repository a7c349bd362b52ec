//===- MapRanges.cpp - ranges of indexing maps ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MapRanges.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::bngrad;

using arith::CmpIPredicate;

namespace {
/// Emits the ranges of expressions.
class RangeEmitter {
public:
  RangeEmitter(OpBuilder &b, Location loc, ArrayRef<IndexRange> dims)
      : b(b), loc(loc), dims(dims) {}

  std::optional<IndexRange> emit(AffineExpr expr);
  IndexRange emit(int64_t value);
  IndexRange intersect(const IndexRange &lhs, const IndexRange &rhs);
  /// The same range, known only as far as its ends are at most `most`.
  IndexRange limit(const IndexRange &range, int64_t most = kMostElements);

private:
  IndexRange add(const IndexRange &lhs, const IndexRange &rhs);
  IndexRange multiply(const IndexRange &range, int64_t factor);
  std::optional<IndexRange> divide(const IndexRange &range, AffineBinaryOpExpr);

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value compare(CmpIPredicate predicate, Value lhs, Value rhs) {
    return b.createOrFold<arith::CmpIOp>(loc, predicate, lhs, rhs);
  }
  Value both(Value lhs, Value rhs) {
    return b.createOrFold<arith::AndIOp>(loc, lhs, rhs);
  }
  Value select(Value condition, Value lhs, Value rhs) {
    return b.createOrFold<arith::SelectOp>(loc, condition, lhs, rhs);
  }

  OpBuilder &b;
  Location loc;
  ArrayRef<IndexRange> dims;
};
} // namespace

IndexRange RangeEmitter::limit(const IndexRange &range, int64_t most) {
  Value isInside =
      both(compare(CmpIPredicate::sge, range.least, constant(-most)),
           compare(CmpIPredicate::sle, range.greatest, constant(most)));
  return {range.least, range.greatest, both(range.isKnown, isInside)};
}

IndexRange RangeEmitter::emit(int64_t value) {
  Value isKnown = arith::ConstantIntOp::create(b, loc, 1, 1);
  return limit({constant(value), constant(value), isKnown});
}

IndexRange RangeEmitter::intersect(const IndexRange &lhs,
                                   const IndexRange &rhs) {
  return {b.createOrFold<arith::MaxSIOp>(loc, lhs.least, rhs.least),
          b.createOrFold<arith::MinSIOp>(loc, lhs.greatest, rhs.greatest),
          both(lhs.isKnown, rhs.isKnown)};
}

IndexRange RangeEmitter::add(const IndexRange &lhs, const IndexRange &rhs) {
  return limit({b.createOrFold<arith::AddIOp>(loc, lhs.least, rhs.least),
                b.createOrFold<arith::AddIOp>(loc, lhs.greatest, rhs.greatest),
                both(lhs.isKnown, rhs.isKnown)});
}

IndexRange RangeEmitter::multiply(const IndexRange &range, int64_t factor) {
  if (factor == 0)
    return emit(0);
  // Of the least integer, too, which has no positive counterpart.
  uint64_t magnitude = factor < 0 ? -static_cast<uint64_t>(factor) : factor;
  IndexRange limited =
      limit(range, static_cast<int64_t>(kMostElements / magnitude));
  auto times = [&](Value value) {
    return b.createOrFold<arith::MulIOp>(loc, value, constant(factor));
  };
  Value least = times(range.least), greatest = times(range.greatest);
  if (factor < 0)
    std::swap(least, greatest);
  return {least, greatest, limited.isKnown};
}

std::optional<IndexRange> RangeEmitter::divide(const IndexRange &range,
                                               AffineBinaryOpExpr expr) {
  auto divisor = dyn_cast<AffineConstantExpr>(expr.getRHS());
  if (!divisor || divisor.getValue() <= 0)
    return std::nullopt;
  AffineExpr number = b.getAffineSymbolExpr(0);
  auto apply = [&](AffineExpr result, Value value) {
    return b.createOrFold<affine::AffineApplyOp>(
        loc, AffineMap::get(0, 1, result), ValueRange(value));
  };
  auto applyTo = [&](AffineExpr result) -> IndexRange {
    return {apply(result, range.least), apply(result, range.greatest),
            range.isKnown};
  };
  if (expr.getKind() == AffineExprKind::CeilDiv)
    return applyTo(number.ceilDiv(divisor));
  IndexRange quotients = applyTo(number.floorDiv(divisor));
  if (expr.getKind() == AffineExprKind::FloorDiv)
    return quotients;
  // Remainders of different quotients are all.
  IndexRange remainders = applyTo(number % divisor);
  Value isOne = compare(CmpIPredicate::eq, quotients.least, quotients.greatest);
  return IndexRange{
      select(isOne, remainders.least, constant(0)),
      select(isOne, remainders.greatest, constant(divisor.getValue() - 1)),
      range.isKnown};
}

std::optional<IndexRange> RangeEmitter::emit(AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto value = dyn_cast<AffineConstantExpr>(expr))
    return emit(value.getValue());
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  std::optional<IndexRange> lhs = emit(binary.getLHS());
  if (!lhs)
    return std::nullopt;
  if (binary.getKind() == AffineExprKind::Add) {
    std::optional<IndexRange> rhs = emit(binary.getRHS());
    return rhs ? std::optional(add(*lhs, *rhs)) : std::nullopt;
  }
  if (binary.getKind() != AffineExprKind::Mul)
    return divide(*lhs, binary);
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return factor ? std::optional(multiply(*lhs, factor.getValue()))
                : std::nullopt;
}

IndexRange mlir::bngrad::createLoopRange(OpBuilder &b, Location loc,
                                         Value count) {
  RangeEmitter emitter(b, loc, {});
  IndexRange range = emitter.emit(0);
  range.greatest = b.createOrFold<arith::SubIOp>(
      loc, count, arith::ConstantIndexOp::create(b, loc, 1));
  return emitter.limit(range);
}

std::optional<IndexRange> mlir::bngrad::createRange(OpBuilder &b, Location loc,
                                                    AffineExpr expr,
                                                    ArrayRef<IndexRange> dims) {
  RangeEmitter emitter(b, loc, dims);
  std::optional<IndexRange> range = emitter.emit(expr);
  // Neither form is always the narrower one: i mod 4 + (i floordiv 4) * 4 is i,
  // but (i + 3) mod 4 is written without mod.
  AffineExpr simple = simplifyAffineExpr(expr, dims.size(), /*numSymbols=*/0);
  if (!range || simple == expr)
    return range;
  std::optional<IndexRange> other = emitter.emit(simple);
  return other ? emitter.intersect(*range, *other) : range;
}
