//===- IndexingMapChecks.cpp - run-time checks of indexing maps -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The least and greatest value of each index are computed by interval
// arithmetic, from the ranges of the op's loops.
//
//===----------------------------------------------------------------------===//

#include "IndexingMapChecks.h"
#include "CheckBuilder.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::bngrad;

using arith::CmpIPredicate;

static bool isPlain(AffineExpr expr) {
  return isa<AffineDimExpr, AffineConstantExpr>(expr);
}

namespace {
/// The bounds of a value, of type index. `isKnown`, an i1, is true if these
/// bounds and all bounds they were computed from are at most kMostElements in
/// magnitude. Otherwise the computation may have overflowed, and the range is
/// unknown.
struct IndexRange {
  Value least, greatest, isKnown;
};

/// Emits the checks of one op before it.
class IndexingMapChecks {
public:
  explicit IndexingMapChecks(linalg::LinalgOp op)
      : op(op), b(op), loc(op.getLoc()) {}

  LogicalResult emit();

private:
  LogicalResult emit(OpOperand &operand, int64_t dim, AffineExpr expr);
  void verify(CmpIPredicate predicate, Value actual, Value expected,
              const Twine &message);

  /// Emits a range that contains all values of `expr`. The range is exact if
  /// each loop occurs only once in `expr` or in its simplified form. Returns
  /// nothing if a divisor is not a positive constant.
  std::optional<IndexRange> findRange(AffineExpr expr);
  std::optional<IndexRange> findOwnRange(AffineExpr expr);
  IndexRange toRange(int64_t value);
  IndexRange intersect(const IndexRange &lhs, const IndexRange &rhs);
  /// Returns `range`, but unknown unless its bounds are at most `most` in
  /// magnitude.
  IndexRange limit(const IndexRange &range, int64_t most = kMostElements);
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
  Value either(Value lhs, Value rhs) {
    return b.createOrFold<arith::OrIOp>(loc, lhs, rhs);
  }
  Value select(Value condition, Value lhs, Value rhs) {
    return b.createOrFold<arith::SelectOp>(loc, condition, lhs, rhs);
  }

  linalg::LinalgOp op;
  OpBuilder b;
  Location loc;
  SmallVector<IndexRange> loops;
  Value isEmpty; // an i1: whether the op has no iterations
};
} // namespace

IndexRange IndexingMapChecks::limit(const IndexRange &range, int64_t most) {
  Value isInside =
      both(compare(CmpIPredicate::sge, range.least, constant(-most)),
           compare(CmpIPredicate::sle, range.greatest, constant(most)));
  return {range.least, range.greatest, both(range.isKnown, isInside)};
}

IndexRange IndexingMapChecks::toRange(int64_t value) {
  Value isKnown = arith::ConstantIntOp::create(b, loc, 1, 1);
  return limit({constant(value), constant(value), isKnown});
}

IndexRange IndexingMapChecks::intersect(const IndexRange &lhs,
                                        const IndexRange &rhs) {
  return {b.createOrFold<arith::MaxSIOp>(loc, lhs.least, rhs.least),
          b.createOrFold<arith::MinSIOp>(loc, lhs.greatest, rhs.greatest),
          both(lhs.isKnown, rhs.isKnown)};
}

IndexRange IndexingMapChecks::add(const IndexRange &lhs,
                                  const IndexRange &rhs) {
  return limit({b.createOrFold<arith::AddIOp>(loc, lhs.least, rhs.least),
                b.createOrFold<arith::AddIOp>(loc, lhs.greatest, rhs.greatest),
                both(lhs.isKnown, rhs.isKnown)});
}

IndexRange IndexingMapChecks::multiply(const IndexRange &range,
                                       int64_t factor) {
  if (factor == 0)
    return toRange(0);
  // Also correct for the least integer, whose negation overflows.
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

std::optional<IndexRange> IndexingMapChecks::divide(const IndexRange &range,
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
  // If the quotient varies, every remainder is possible.
  IndexRange remainders = applyTo(number % divisor);
  Value isOne = compare(CmpIPredicate::eq, quotients.least, quotients.greatest);
  return IndexRange{
      select(isOne, remainders.least, constant(0)),
      select(isOne, remainders.greatest, constant(divisor.getValue() - 1)),
      range.isKnown};
}

std::optional<IndexRange> IndexingMapChecks::findOwnRange(AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return loops[dim.getPosition()];
  if (auto value = dyn_cast<AffineConstantExpr>(expr))
    return toRange(value.getValue());
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  std::optional<IndexRange> lhs = findOwnRange(binary.getLHS());
  if (!lhs)
    return std::nullopt;
  if (binary.getKind() == AffineExprKind::Add) {
    std::optional<IndexRange> rhs = findOwnRange(binary.getRHS());
    return rhs ? std::optional(add(*lhs, *rhs)) : std::nullopt;
  }
  if (binary.getKind() != AffineExprKind::Mul)
    return divide(*lhs, binary);
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return factor ? std::optional(multiply(*lhs, factor.getValue()))
                : std::nullopt;
}

std::optional<IndexRange> IndexingMapChecks::findRange(AffineExpr expr) {
  std::optional<IndexRange> range = findOwnRange(expr);
  // Either form may give the narrower range. Simplification turns i mod 4 + (i
  // floordiv 4) * 4 into i, which is exact, but it also expands (i + 3) mod 4
  // to an expression in which i occurs twice.
  AffineExpr simple = simplifyAffineExpr(expr, loops.size(), /*numSymbols=*/0);
  if (!range || simple == expr)
    return range;
  std::optional<IndexRange> other = findOwnRange(simple);
  return other ? intersect(*range, *other) : range;
}

void IndexingMapChecks::verify(CmpIPredicate predicate, Value actual,
                               Value expected, const Twine &message) {
  // An op without iterations accesses nothing, so any index is valid.
  actual = select(isEmpty, expected, actual);
  Value holds = arith::CmpIOp::create(b, loc, predicate, actual, expected);
  cf::AssertOp::create(b, loc, holds, message.str());
}

/// Checks the indices of a dim, which `expr` computes from the loops.
LogicalResult IndexingMapChecks::emit(OpOperand &operand, int64_t dim,
                                      AffineExpr expr) {
  std::optional<IndexRange> range = findRange(expr);
  if (!range)
    return op->emitError()
           << "expected divisors in the indexing map of operand "
           << operand.getOperandNumber() << " to be positive constants, got "
           << AffineMapAttr::get(op.getMatchingIndexingMap(&operand));
  std::string name = llvm::formatv("index of dim {0} of operand {1}", dim,
                                   operand.getOperandNumber());
  cf::AssertOp::create(b, loc, either(isEmpty, range->isKnown),
                       "expected each intermediate value of the " + name +
                           " to be at most 2^56 in magnitude");
  Value size = isa<MemRefType>(operand.get().getType())
                   ? b.createOrFold<memref::DimOp>(loc, operand.get(), dim)
                   : b.createOrFold<tensor::DimOp>(loc, operand.get(), dim);
  Value last = b.createOrFold<arith::SubIOp>(loc, size, constant(1));
  verify(CmpIPredicate::sge, range->least, constant(0),
         "expected least " + name + " to be at least");
  verify(CmpIPredicate::sle, range->greatest, last,
         "expected greatest " + name + " to be at most");
  return success();
}

LogicalResult IndexingMapChecks::emit() {
  isEmpty = arith::ConstantIntOp::create(b, loc, 0, 1);
  for (const Range &loop : op.createLoopRanges(b, loc)) {
    Value count = getValueOrCreateConstantIndexOp(b, loc, loop.size);
    isEmpty = either(isEmpty, compare(CmpIPredicate::sle, count, constant(0)));
    IndexRange range = toRange(0);
    range.greatest = b.createOrFold<arith::SubIOp>(loc, count, constant(1));
    loops.push_back(limit(range));
  }
  for (OpOperand &operand : op->getOpOperands())
    for (auto [dim, expr] :
         llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (!isPlain(expr) && failed(emit(operand, dim, expr)))
        return failure();
  return success();
}

/// Whether upstream's checks, of the first and the last iteration, suffice.
static bool isChecked(linalg::LinalgOp op) {
  return llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
    return llvm::all_of(map.getResults(), isPlain);
  });
}

LogicalResult mlir::bngrad::addIndexingMapChecks(func::FuncOp function) {
  SmallVector<linalg::LinalgOp> ops;
  function.walk([&](linalg::LinalgOp op) {
    if (!isChecked(op))
      ops.push_back(op);
  });
  return success(llvm::all_of(ops, [](linalg::LinalgOp op) {
    return succeeded(IndexingMapChecks(op).emit());
  }));
}
