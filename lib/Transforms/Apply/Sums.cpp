//===- Sums.cpp - sums whose error does not grow --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sums.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

/// sum + addend exactly, as a rounded sum and its error (TwoSum, Knuth: six
/// additions in any order of magnitude).
static std::pair<Value, Value> addExactly(OpBuilder &b, Location loc, Value sum,
                                          Value addend) {
  auto add = [&](Value l, Value r) -> Value {
    return arith::AddFOp::create(b, loc, l, r);
  };
  auto sub = [&](Value l, Value r) -> Value {
    return arith::SubFOp::create(b, loc, l, r);
  };
  Value total = add(sum, addend);
  Value addendPart = sub(total, sum);
  Value sumPart = sub(total, addendPart);
  Value error = add(sub(sum, sumPart), sub(addend, addendPart));
  return {total, error};
}

SmallVector<Value> mlir::bngrad::addCompensated(OpBuilder &b, Location loc,
                                                ValueRange sums,
                                                ValueRange addends) {
  SmallVector<Value> results;
  for (auto [i, addend] : llvm::enumerate(addends)) {
    // Adding to zero has no error, and gives no negative zero.
    if (matchPattern(sums[2 * i], m_PosZeroFloat()) &&
        matchPattern(sums[2 * i + 1], m_PosZeroFloat())) {
      results.push_back(
          arith::AddFOp::create(b, loc, addend, sums[2 * i]).getResult());
      results.push_back(sums[2 * i + 1]);
      continue;
    }
    // Add the error so far to the next addend: summed separately, it would be a
    // long sum of rounding errors that may be dependent.
    Value joined = arith::AddFOp::create(b, loc, addend, sums[2 * i + 1]);
    auto [sum, error] = addExactly(b, loc, sums[2 * i], joined);
    // The error of an infinite sum is meaningless: infinity less infinity.
    Value isNaN =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, error, error);
    Value zero =
        arith::ConstantOp::create(b, loc, b.getZeroAttr(error.getType()));
    results.push_back(sum);
    results.push_back(arith::SelectOp::create(b, loc, isNaN, zero, error));
  }
  return results;
}
