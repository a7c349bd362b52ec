//===- GuardDivisions.cpp - bngrad-guard-divisions ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADGUARDDIVISIONSPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;

/// Whether `divisor` is a constant without elements that CPUs may trap on, 0
/// and -1.
static bool isHarmless(Value divisor) {
  Attribute value;
  if (!matchPattern(divisor, m_Constant(&value)))
    return false;
  auto isGood = [](const APInt &element) {
    return !element.isZero() && !element.isAllOnes();
  };
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return isGood(integer.getValue());
  auto elements = dyn_cast<DenseIntElementsAttr>(value);
  return elements && llvm::all_of(elements.getValues<APInt>(), isGood);
}

/// Guards `op`, which computes a quotient or a remainder, against the divisors
/// 0 and -1.
template <typename Op> static void guard(Op op) {
  constexpr bool kIsRemainder =
      llvm::is_one_of<Op, LLVM::SRemOp, LLVM::URemOp>::value;
  constexpr bool kIsSigned =
      llvm::is_one_of<Op, LLVM::SDivOp, LLVM::SRemOp>::value;
  Value dividend = op.getLhs(), divisor = op.getRhs();
  if (isHarmless(divisor))
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type type = divisor.getType();
  auto constant = [&](int64_t value) -> Value {
    TypedAttr element = b.getIntegerAttr(getElementTypeOrSelf(type), value);
    if (auto vector = dyn_cast<VectorType>(type))
      element = DenseElementsAttr::get(vector, element);
    return LLVM::ConstantOp::create(b, type, element);
  };
  auto is = [&](Value expected) -> Value {
    return LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, divisor, expected);
  };
  auto select = [&](Value condition, Value lhs, Value rhs) -> Value {
    return LLVM::SelectOp::create(b, condition, lhs, rhs);
  };
  Value zero = constant(0), one = constant(1), minusOne = constant(-1);
  Value isZero = is(zero), isMinusOne;
  Value safe = select(isZero, one, divisor);
  if (kIsSigned) {
    isMinusOne = is(minusOne);
    safe = select(isMinusOne, one, safe);
  }
  Value divided = Op::create(b, dividend, safe), result = divided;
  if (kIsSigned && !kIsRemainder)
    result = select(isMinusOne, LLVM::SubOp::create(b, zero, dividend), result);
  result = select(isZero, kIsRemainder ? dividend : minusOne, result);
  op.replaceAllUsesWith(result);
  op.erase();
}

namespace {
struct BNGradGuardDivisionsPass
    : bngrad::impl::BNGradGuardDivisionsPassBase<BNGradGuardDivisionsPass> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<gpu::GPUModuleOp>(op))
        return WalkResult::skip();
      ops.push_back(op);
      return WalkResult::advance();
    });
    for (Operation *op : ops) {
      if (auto division = dyn_cast<LLVM::SDivOp>(op))
        guard(division);
      else if (auto division = dyn_cast<LLVM::UDivOp>(op))
        guard(division);
      else if (auto division = dyn_cast<LLVM::SRemOp>(op))
        guard(division);
      else if (auto division = dyn_cast<LLVM::URemOp>(op))
        guard(division);
    }
  }
};
} // namespace
