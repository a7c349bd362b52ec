//===- Sums.cpp - sums whose error does not grow --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sums.h"

#include "BNGrad/Transforms/FloatBuilder.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

/// sum + addend exactly, as a rounded sum and its error (TwoSum, Knuth: six
/// additions in any order of magnitude).
static std::pair<Value, Value> addExactly(OpBuilder &b, Location loc, Value sum,
                                          Value addend) {
  FloatBuilder math = {b, loc};
  Value total = math.add(sum, addend);
  Value addendPart = math.sub(total, sum);
  Value sumPart = math.sub(total, addendPart);
  Value error = math.add(math.sub(sum, sumPart), math.sub(addend, addendPart));
  return {total, error};
}

SmallVector<Value> mlir::bngrad::toCarried(ArrayRef<Accumulator> sums) {
  SmallVector<Value> carried;
  for (auto [sum, error] : sums)
    carried.append({sum, error});
  return carried;
}

Accumulators mlir::bngrad::fromCarried(ValueRange carried) {
  Accumulators sums;
  for (size_t i = 0; i < carried.size(); i += 2)
    sums.push_back({carried[i], carried[i + 1]});
  return sums;
}

Accumulators mlir::bngrad::addCompensated(OpBuilder &b, Location loc,
                                          ArrayRef<Accumulator> sums,
                                          ValueRange addends) {
  Accumulators results;
  for (auto [running, addend] : llvm::zip_equal(sums, addends)) {
    // Adding to zero has no error, and gives no negative zero.
    if (matchPattern(running.sum, m_PosZeroFloat()) &&
        matchPattern(running.error, m_PosZeroFloat())) {
      results.push_back(
          {arith::AddFOp::create(b, loc, addend, running.sum), running.error});
      continue;
    }
    // Add the error so far to the next addend: summed separately, it would be a
    // long sum of rounding errors that may be dependent.
    Value joined = arith::AddFOp::create(b, loc, addend, running.error);
    auto [sum, error] = addExactly(b, loc, running.sum, joined);
    // The error of an infinite sum is meaningless: infinity less infinity.
    Value isNaN =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, error, error);
    Value zero =
        arith::ConstantOp::create(b, loc, b.getZeroAttr(error.getType()));
    results.push_back(
        {sum, arith::SelectOp::create(b, loc, isNaN, zero, error)});
  }
  return results;
}
