//===- CheckBuilder.cpp - arithmetic of run-time checks -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckBuilder.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;
using namespace mlir::bngrad;

using arith::CmpIPredicate;

void CheckBuilder::verify(CmpIPredicate predicate, Value actual, Value expected,
                          const Twine &message) {
  Value known = b.createOrFold<arith::CmpIOp>(loc, predicate, actual, expected);
  if (!matchPattern(known, m_One()))
    cf::AssertOp::create(b, loc, compare(predicate, actual, expected),
                         message.str());
}

Value CheckBuilder::multiply(Value product, Value size) {
  auto next = arith::MulUIExtendedOp::create(b, loc, product, size);
  Value fits = compare(CmpIPredicate::eq, next.getHigh(), constant(0));
  Value most = constant(std::numeric_limits<int64_t>::max());
  Value low = arith::MinUIOp::create(b, loc, next.getLow(), most);
  return select(fits, low, most);
}

Value CheckBuilder::multiply(ValueRange sizes) {
  Value product = constant(1);
  for (Value size : sizes)
    product = multiply(product, size);
  return product;
}

Value CheckBuilder::multiplyAll(Value count,
                                function_ref<Value(Value)> getSize) {
  auto loop =
      scf::ForOp::create(b, loc, constant(0), count, constant(1), constant(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value size = getSize(loop.getInductionVar());
  scf::YieldOp::create(b, loc, multiply(loop.getRegionIterArg(0), size));
  return loop.getResult(0);
}

void CheckBuilder::verifyProduct(ValueRange sizes) {
  SmallVector<Value> factors;
  for (Value size : sizes)
    // A size of 0 must not hide an overflow of the other sizes' product.
    factors.push_back(b.createOrFold<arith::MaxSIOp>(loc, size, constant(1)));
  verify(CmpIPredicate::sle, multiply(factors), constant(kMostElements),
         "expected product of sizes to be at most");
}

void CheckBuilder::verifySum(ValueRange sizes, const Twine &what) {
  Value room = constant(std::numeric_limits<int64_t>::max());
  for (Value size : sizes.drop_back())
    room = subtract(room, size);
  verify(CmpIPredicate::ule, sizes.back(), room,
         "expected " + what + " to be at most");
}

// Multiplies as i64, because upstream folds the high half of a product by 1 to
// an arith.extsi, which does not accept index.
std::pair<Value, Value> CheckBuilder::multiplySigned(Value lhs, Value rhs) {
  Type i64 = b.getI64Type(), index = b.getIndexType();
  auto product = arith::MulSIExtendedOp::create(
      b, loc, b.createOrFold<arith::IndexCastOp>(loc, i64, lhs),
      b.createOrFold<arith::IndexCastOp>(loc, i64, rhs));
  Value low = product.getLow();
  Value width = arith::ConstantIntOp::create(b, loc, 63, 64);
  Value sign = arith::ShRSIOp::create(b, loc, low, width);
  return {arith::IndexCastOp::create(b, loc, index, low),
          compare(CmpIPredicate::eq, product.getHigh(), sign)};
}

Value CheckBuilder::countElements(Value shaped) {
  auto type = cast<ShapedType>(shaped.getType());
  if (type.hasRank()) {
    SmallVector<Value> sizes;
    for (int64_t dim : llvm::seq(type.getRank()))
      sizes.push_back(sizeOf(shaped, dim));
    return multiply(sizes);
  }
  if (isa<BaseMemRefType>(type))
    return multiplyAll(memref::RankOp::create(b, loc, shaped), [&](Value i) {
      return memref::DimOp::create(b, loc, shaped, i).getResult();
    });
  return multiplyAll(tensor::RankOp::create(b, loc, shaped), [&](Value i) {
    return tensor::DimOp::create(b, loc, shaped, i).getResult();
  });
}

Extent CheckBuilder::findExtent(Value offset, ValueRange sizes,
                                ValueRange strides) {
  Value most = constant(kMostElements), least = constant(-kMostElements);
  Value zero = constant(0), one = constant(1);
  auto clamp = [&](Value value) -> Value {
    value = arith::MinSIOp::create(b, loc, value, most);
    return arith::MaxSIOp::create(b, loc, value, least);
  };
  Extent extent = {clamp(offset), clamp(offset)};
  for (auto [size, stride] : llvm::zip_equal(sizes, strides)) {
    auto [step, fits] = multiplySigned(subtract(size, one), stride);
    step = clamp(select(fits, step, most));
    extent.first = arith::AddIOp::create(
        b, loc, extent.first, arith::MinSIOp::create(b, loc, step, zero));
    extent.last = arith::AddIOp::create(
        b, loc, extent.last, arith::MaxSIOp::create(b, loc, step, zero));
  }
  return extent;
}
