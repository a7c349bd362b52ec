//===- Moments.cpp - the stages of a mean and of squares about it ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Moments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::bngrad;

namespace {
/// A value in the body of a generic.
struct BodyValue {
  linalg::GenericOp generic;
  Value value;
};
} // namespace

/// True if `a` and `b` are the same function of the same operands.
static bool isSame(BodyValue a, BodyValue b) {
  auto argument = dyn_cast<BlockArgument>(a.value);
  auto other = dyn_cast<BlockArgument>(b.value);
  if (a.value.getParentBlock() != a.generic.getBody())
    return a.value == b.value;
  if (b.value.getParentBlock() != b.generic.getBody() || !argument != !other)
    return false;
  if (argument) {
    OpOperand *operand = a.generic.getMatchingOpOperand(argument);
    OpOperand *same = b.generic.getMatchingOpOperand(other);
    return !a.generic.isDpsInit(operand) && !b.generic.isDpsInit(same) &&
           getViewed(operand->get()) == getViewed(same->get()) &&
           a.generic.getMatchingIndexingMap(operand) ==
               b.generic.getMatchingIndexingMap(same);
  }
  auto result = cast<OpResult>(a.value), otherResult = cast<OpResult>(b.value);
  Operation *op = result.getOwner(), *otherOp = otherResult.getOwner();
  return op->getName() == otherOp->getName() &&
         op->getAttrDictionary() == otherOp->getAttrDictionary() &&
         op->getResultTypes() == otherOp->getResultTypes() &&
         op->getNumRegions() == 0 &&
         result.getResultNumber() == otherResult.getResultNumber() &&
         op->getNumOperands() == otherOp->getNumOperands() &&
         llvm::all_of(
             llvm::zip_equal(op->getOperands(), otherOp->getOperands()),
             [&](auto pair) {
               return isSame({a.generic, std::get<0>(pair)},
                             {b.generic, std::get<1>(pair)});
             });
}

/// The per-channel operand that `difference`, a value in the body of a
/// reduction of `group`, subtracts; null if there is none.
static OpOperand *getSubtracted(const ScheduledGroup &group,
                                linalg::GenericOp reduction,
                                arith::SubFOp difference) {
  auto argument = dyn_cast<BlockArgument>(difference.getRhs());
  if (!argument || argument.getOwner() != reduction.getBody())
    return nullptr;
  OpOperand *operand = reduction.getMatchingOpOperand(argument);
  AffineMap featureMap =
      getFeatureMap(reduction.getContext(), group.numLoops, group.features);
  if (reduction.isDpsInit(operand) ||
      reduction.getMatchingIndexingMap(operand) != featureMap)
    return nullptr;
  return operand;
}

std::optional<MomentStages> MomentStages::get(const ScheduledGroup &group) {
  SmallVector<unsigned> stages;
  for (auto [number, stage] : llvm::enumerate(group.stages))
    if (stage.reduction)
      stages.push_back(number);
  if (stages.size() != 2 || stages[1] != stages[0] + 1)
    return std::nullopt;
  linalg::GenericOp sum = group.stages[stages[0]].reduction;
  linalg::GenericOp squares = group.stages[stages[1]].reduction;
  std::optional<ReductionValues> ofSum = getReductionValues(sum);
  std::optional<ReductionValues> ofSquares = getReductionValues(squares);
  if (!ofSum || ofSum->terms.size() != 1 || !ofSum->stores.empty() ||
      !ofSquares || ofSquares->terms.size() != 2 || !ofSquares->stores.empty())
    return std::nullopt;
  auto fromFirst = ofSum->terms[0].second.getDefiningOp<arith::SubFOp>();
  if (!fromFirst || !fromFirst.getType().isF32())
    return std::nullopt;
  MomentStages moments;
  moments.sum = stages[0];
  moments.first = getSubtracted(group, sum, fromFirst);
  for (unsigned difference : {0, 1}) {
    Value term = ofSquares->terms[difference].second;
    auto fromCenter = term.getDefiningOp<arith::SubFOp>();
    auto square =
        ofSquares->terms[1 - difference].second.getDefiningOp<arith::MulFOp>();
    if (!fromCenter || !square || square.getLhs() != term ||
        square.getRhs() != term)
      continue;
    moments.center = getSubtracted(group, squares, fromCenter);
    moments.difference = difference;
    moments.square = 1 - difference;
    if (moments.first && moments.center &&
        isSame({sum, fromFirst.getLhs()}, {squares, fromCenter.getLhs()}))
      return moments;
  }
  return std::nullopt;
}
