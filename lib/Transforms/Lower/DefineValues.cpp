//===- DefineValues.cpp - bngrad-define-values ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The checks of a program's sizes and indices test values that the program then
// uses. If such a value were poison, LLVM could delete the check, or the
// program could use a different value from the one that the check tested.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADDEFINEVALUESPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;

/// Drops the flags that make a result of `op` poison.
static void dropFlags(Operation *op) {
  if (auto sum = dyn_cast<LLVM::IntegerOverflowFlagsInterface>(op))
    sum.setOverflowFlags(LLVM::IntegerOverflowFlags::none);
  else if (auto quotient = dyn_cast<LLVM::ExactFlagInterface>(op))
    quotient.setIsExact(false);
  else if (auto bits = dyn_cast<LLVM::DisjointFlagInterface>(op))
    bits.setIsDisjoint(false);
  else if (auto extension = dyn_cast<LLVM::NonNegFlagInterface>(op))
    extension.setNonNeg(false);
  else if (auto leading = dyn_cast<LLVM::CountLeadingZerosOp>(op))
    leading.setIsZeroPoison(false);
  else if (auto trailing = dyn_cast<LLVM::CountTrailingZerosOp>(op))
    trailing.setIsZeroPoison(false);
  else if (auto magnitude = dyn_cast<LLVM::AbsOp>(op))
    magnitude.setIsIntMinPoison(false);
  else if (auto gep = dyn_cast<LLVM::GEPOp>(op))
    // Keep `inbounds`: it holds for every access that has passed its check.
    gep.setNoWrapFlags(
        bitEnumClear(gep.getNoWrapFlags(), LLVM::GEPNoWrapFlags::nuw));
}

/// Drops the flags of `op` that turn a NaN or an infinity into poison.
static void dropFloatFlags(LLVM::FastmathFlagsInterface op) {
  LLVM::FastmathFlagsAttr attr = op.getFastmathAttr();
  if (!attr)
    return;
  LLVM::FastmathFlags flags = bitEnumClear(
      attr.getValue(), LLVM::FastmathFlags::nnan | LLVM::FastmathFlags::ninf);
  op->setAttr(op.getFastmathAttrName(),
              LLVM::FastmathFlagsAttr::get(op->getContext(), flags));
}

static Value createConstant(ImplicitLocOpBuilder &b, Type type, int64_t value) {
  TypedAttr attr = b.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = SplatElementsAttr::get(vector, attr);
  return LLVM::ConstantOp::create(b, type, attr);
}

/// Defines the result of the shift `op` if it shifts by at least the bit width:
/// 0, or for an arithmetic shift all sign bits.
template <typename Op> static void defineShift(Op op) {
  Value amount = op.getRhs();
  Type type = amount.getType();
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  Attribute known;
  if (matchPattern(amount, m_Constant(&known))) {
    auto isLess = [&](const APInt &bits) { return bits.ult(width); };
    auto bits = dyn_cast<IntegerAttr>(known);
    auto all = dyn_cast<DenseIntElementsAttr>(known);
    if (bits ? isLess(bits.getValue())
             : all && llvm::all_of(all.getValues<APInt>(), isLess))
      return;
  }
  ImplicitLocOpBuilder b(op.getLoc(), op);
  // Compare with width - 1 because i1 cannot represent its width.
  Value most = createConstant(b, type, width - 1);
  Value isLess =
      LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ule, amount, most);
  Value shifted;
  if (std::is_same_v<Op, LLVM::AShrOp>) {
    Value atMost = LLVM::SelectOp::create(b, isLess, amount, most);
    shifted = LLVM::AShrOp::create(b, op.getLhs(), atMost);
  } else {
    shifted = LLVM::SelectOp::create(
        b, isLess, Op::create(b, op.getLhs(), amount).getResult(),
        createConstant(b, type, 0));
  }
  op.replaceAllUsesWith(shifted);
  op.erase();
}

/// Loads an i1 as a byte, which is true unless it is 0.
static void loadByte(LLVM::LoadOp op) {
  if (!op.getType().isInteger(1))
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto byte = cast<LLVM::LoadOp>(b.clone(*op));
  byte.getResult().setType(b.getI8Type());
  Value isTrue =
      LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, byte.getResult(),
                           createConstant(b, b.getI8Type(), 0));
  op.replaceAllUsesWith(isTrue);
  op.erase();
}

/// Replaces a poison or undefined number, or vector of numbers, by 0.
static void definePoison(Operation *op) {
  Type type = op->getResult(0).getType();
  Type number = isa<VectorType>(type) ? getElementTypeOrSelf(type) : type;
  if (!number.isIntOrFloat())
    return;
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Value zero = LLVM::ZeroOp::create(b, type);
  op->replaceAllUsesWith(ValueRange(zero));
  op->erase();
}

namespace {
struct BNGradDefineValuesPass
    : bngrad::impl::BNGradDefineValuesPassBase<BNGradDefineValuesPass> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      dropFlags(op);
      if (auto arithmetic = dyn_cast<LLVM::FastmathFlagsInterface>(op))
        dropFloatFlags(arithmetic);
      ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (auto shift = dyn_cast<LLVM::ShlOp>(op))
        defineShift(shift);
      else if (auto shift = dyn_cast<LLVM::LShrOp>(op))
        defineShift(shift);
      else if (auto shift = dyn_cast<LLVM::AShrOp>(op))
        defineShift(shift);
      else if (auto load = dyn_cast<LLVM::LoadOp>(op))
        loadByte(load);
      else if (isa<LLVM::PoisonOp, LLVM::UndefOp>(op))
        definePoison(op);
      else if (isa<LLVM::AssumeOp>(op))
        op->erase();
    }
  }
};
} // namespace
