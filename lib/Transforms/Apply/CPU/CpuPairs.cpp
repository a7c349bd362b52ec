//===- CpuPairs.cpp - vectors of bf16 as pairs ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bf16 is the upper half of an f32. So a word of two elements is the odd one,
// as f32, if its lower half is cleared, and the even one if it is shifted by 16
// bits. Where the order of the lanes does not matter, the even elements are the
// lower lanes and the odd ones the upper lanes. To extend each element on its
// own takes a shuffle, too.
//
//===----------------------------------------------------------------------===//

#include "Apply/ElementCloner.h"
#include "CpuLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Whether `op` extends bf16 to f32.
static bool isExtension(Operation *op) {
  auto extension = dyn_cast<arith::ExtFOp>(op);
  return extension && extension.getIn().getType().isBF16() &&
         extension.getType().isF32();
}

/// The rounding to the nearest bf16 that computes result `i` of `generic`; null
/// if another op does.
static arith::TruncFOp getRounding(linalg::GenericOp generic, unsigned i) {
  Value result = generic.getBody()->getTerminator()->getOperand(i);
  auto rounding = result.getDefiningOp<arith::TruncFOp>();
  bool isRounding = rounding && rounding->getBlock() == generic.getBody() &&
                    rounding.getIn().getType().isF32() &&
                    rounding.getType().isBF16() &&
                    roundsToNearestEven(rounding);
  return isRounding ? rounding : nullptr;
}

/// Whether `select` chooses between f16 or bf16, and only extensions to f32 use
/// the result.
static bool isOnlyExtended(arith::SelectOp select) {
  return isHalf(select.getType()) && !select->use_empty() &&
         llvm::all_of(select->getUsers(), [](Operation *user) {
           return isa<arith::ExtFOp>(user) &&
                  user->getResult(0).getType().isF32();
         });
}

void mlir::bngrad::extendBeforeChoices(OpBuilder &b,
                                       linalg::GenericOp generic) {
  OpBuilder::InsertionGuard guard(b);
  auto extend = [&](Value value) -> Value {
    return arith::ExtFOp::create(b, value.getLoc(), b.getF32Type(), value);
  };
  // Backwards, so that a choice between choices comes first.
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(*generic.getBody()))) {
    b.setInsertionPoint(&op);
    if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
      if (isHalf(compare.getLhs().getType()))
        compare->setOperands(
            {extend(compare.getLhs()), extend(compare.getRhs())});
      continue;
    }
    auto select = dyn_cast<arith::SelectOp>(op);
    if (!select || !isOnlyExtended(select))
      continue;
    Value wide = arith::SelectOp::create(b, op.getLoc(), select.getCondition(),
                                         extend(select.getTrueValue()),
                                         extend(select.getFalseValue()));
    for (Operation *user : llvm::make_early_inc_range(select->getUsers())) {
      user->getResult(0).replaceAllUsesWith(wide);
      user->erase();
    }
    select->erase();
  }
}

bool CpuLoops::takesPairs(linalg::GenericOp generic, const Run &run,
                          const Piece &piece) const {
  // The order of the lanes matters for tables, indices and masks.
  if (piece.lanes != wide || piece.mask || run.tables ||
      generic.hasIndexSemantics())
    return false;
  for (OpOperand &operand : generic->getOpOperands()) {
    BlockArgument arg = generic.getMatchingBlockArgument(&operand);
    bool isData = isDataMap(generic.getMatchingIndexingMap(&operand));
    bool isSum = generic.isDpsInit(&operand) && !isData;
    if (arg.use_empty() || isSum || run.uniform.contains(&operand))
      continue;
    if (!isData || !llvm::all_of(arg.getUsers(), isExtension))
      return false;
  }
  return llvm::all_of(llvm::seq(generic.getNumDpsInits()), [&](unsigned i) {
    OpOperand *init = generic.getDpsInitOperand(i);
    return !isDataMap(generic.getMatchingIndexingMap(init)) ||
           getRounding(generic, i);
  });
}

Value CpuLoops::loadPairs(OpBuilder &b, Value memref, Value position) const {
  auto i32 = VectorType::get({wide / 2}, b.getI32Type());
  auto f32 = VectorType::get({wide / 2}, b.getF32Type());
  Value bits =
      vector::LoadOp::create(b, loc, VectorType::get({wide}, b.getI16Type()),
                             castToBits(b, loc, memref), position);
  Value pairs = vector::BitCastOp::create(b, loc, i32, bits);
  auto getConstant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(i32, APInt(32, value)));
  };
  Value even = arith::ShLIOp::create(b, loc, pairs, getConstant(16));
  Value odd = arith::AndIOp::create(b, loc, pairs, getConstant(0xffff0000));
  SmallVector<int64_t> lanesInOrder =
      llvm::to_vector(llvm::seq<int64_t>(0, wide));
  return vector::ShuffleOp::create(
      b, loc, arith::BitcastOp::create(b, loc, f32, even),
      arith::BitcastOp::create(b, loc, f32, odd), lanesInOrder);
}

Value CpuLoops::roundToPairs(OpBuilder &b, linalg::GenericOp generic,
                             unsigned i, const IRMapping &mapping) const {
  // A scalar if it does not depend on the data.
  Value value = broadcastTo(
      b, loc, mapping.lookupOrDefault(getRounding(generic, i).getIn()), wide);
  auto bf16 = VectorType::get({wide / 2}, b.getBF16Type());
  auto roundHalf = [&](int64_t first) -> Value {
    Value half = vector::ExtractStridedSliceOp::create(b, loc, value, first,
                                                       wide / 2, 1);
    return arith::TruncFOp::create(b, loc, bf16, half);
  };
  Value even = roundHalf(0), odd = roundHalf(wide / 2);
  return vector::InterleaveOp::create(b, loc, even, odd);
}
