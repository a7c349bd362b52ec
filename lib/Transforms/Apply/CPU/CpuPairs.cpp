//===- CpuPairs.cpp - vectors of bf16 as pairs ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bf16 is the upper half of an f32. So a word of two elements becomes the odd
// one as f32 if its lower half is cleared, and the even one if it is shifted by
// 16 bits. Extending elements in memory order would also take a shuffle. So the
// lower lanes hold the even elements and the upper lanes the odd ones. If lanes
// are different channels, per-channel operands are converted to that order, and
// sums back to the order of memory.
//
//===----------------------------------------------------------------------===//

#include "Apply/ElementCloner.h"
#include "CpuLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
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
/// if another op computes it.
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
  // Visit ops backwards, so that a choice between choices comes first.
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

bool CpuLoops::allowsPairs(linalg::GenericOp generic,
                           const Piece &piece) const {
  // The order of lanes matters for indices, and for masks, which shorter pieces
  // may have.
  if (piece.lanes < wide || generic.hasIndexSemantics())
    return false;
  // NEON extends and rounds elements in order with fewer instructions.
  if (isForNeon() && isParallel(generic))
    return false;
  for (OpOperand &operand : generic->getOpOperands()) {
    BlockArgument arg = generic.getMatchingBlockArgument(&operand);
    if (isDataMap(generic.getMatchingIndexingMap(&operand)) &&
        !llvm::all_of(arg.getUsers(), isExtension))
      return false;
  }
  return llvm::all_of(llvm::seq(generic.getNumDpsInits()), [&](unsigned i) {
    OpOperand *init = generic.getDpsInitOperand(i);
    return !isDataMap(generic.getMatchingIndexingMap(init)) ||
           getRounding(generic, i);
  });
}

bool CpuLoops::takesPairs(linalg::GenericOp generic, const Run &run,
                          const Piece &piece) const {
  if (!allowsPairs(generic, piece))
    return false;
  if (run.tables)
    return run.hasOrderedEntries;
  return llvm::all_of(generic.getDpsInputOperands(), [&](OpOperand *operand) {
    return generic.getMatchingBlockArgument(operand).use_empty() ||
           isDataMap(generic.getMatchingIndexingMap(operand)) ||
           run.uniform.contains(operand);
  });
}

Run CpuLoops::withPairs(linalg::GenericOp generic, Run run,
                        const Piece &piece) const {
  if (run.pairs && allowsPairs(generic, piece)) {
    run.tables = run.pairs;
    run.hasOrderedEntries = true;
  }
  return run;
}

/// The even numbers below `count`, then the odd ones.
static SmallVector<int64_t> getPairOrder(int64_t count) {
  SmallVector<int64_t> order;
  for (int64_t first : {0, 1})
    for (int64_t lane = first; lane < count; lane += 2)
      order.push_back(lane);
  return order;
}

static int64_t getLanes(Value vector) {
  return cast<VectorType>(vector.getType()).getNumElements();
}

Value CpuLoops::toPairs(OpBuilder &b, Value value) const {
  return vector::ShuffleOp::create(b, loc, value, value,
                                   getPairOrder(getLanes(value)));
}

Value CpuLoops::fromPairs(OpBuilder &b, Value value) const {
  SmallVector<int64_t> order = getPairOrder(getLanes(value));
  return vector::ShuffleOp::create(b, loc, value, value,
                                   invertPermutationVector(order));
}

Value CpuLoops::loadPairs(OpBuilder &b, Value memref, Value position,
                          int64_t count) const {
  auto i32 = VectorType::get({count / 2}, b.getI32Type());
  auto f32 = VectorType::get({count / 2}, b.getF32Type());
  Value bits =
      vector::LoadOp::create(b, loc, VectorType::get({count}, b.getI16Type()),
                             castToBits(b, loc, memref), position);
  Value pairs = vector::BitCastOp::create(b, loc, i32, bits);
  auto getConstant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(i32, APInt(32, value)));
  };
  Value even = arith::ShLIOp::create(b, loc, pairs, getConstant(16));
  Value odd = arith::AndIOp::create(b, loc, pairs, getConstant(0xffff0000));
  return vector::ShuffleOp::create(
      b, loc, arith::BitcastOp::create(b, loc, f32, even),
      arith::BitcastOp::create(b, loc, f32, odd),
      llvm::to_vector(llvm::seq<int64_t>(0, count)));
}

Value CpuLoops::roundToPairs(OpBuilder &b, linalg::GenericOp generic,
                             unsigned i, const IRMapping &mapping,
                             int64_t count) const {
  // The value is a scalar if it does not depend on the data.
  Value value = broadcastTo(
      b, loc, mapping.lookupOrDefault(getRounding(generic, i).getIn()), count);
  auto bf16 = VectorType::get({count / 2}, b.getBF16Type());
  auto roundHalf = [&](int64_t first) -> Value {
    Value half = vector::ExtractStridedSliceOp::create(b, loc, value, first,
                                                       count / 2, 1);
    return arith::TruncFOp::create(b, loc, bf16, half);
  };
  Value even = roundHalf(0), odd = roundHalf(count / 2);
  return vector::InterleaveOp::create(b, loc, even, odd);
}
