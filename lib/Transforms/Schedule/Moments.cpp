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
/// Compares values in the bodies of two generics.
class BodyComparison {
public:
  BodyComparison(linalg::GenericOp lhs, linalg::GenericOp rhs)
      : lhs(lhs), rhs(rhs) {}

  /// True if `a` and `b` are the same function of the same operands.
  bool areSame(Value a, Value b) {
    auto [known, isNew] = equals.try_emplace(a, Value());
    if (!isNew)
      return known->second == b;
    if (!compare(a, b))
      return false;
    equals[a] = b;
    return true;
  }

private:
  bool compare(Value a, Value b) {
    if (a.getParentBlock() != lhs.getBody())
      return a == b;
    if (b.getParentBlock() != rhs.getBody())
      return false;
    auto argument = dyn_cast<BlockArgument>(a);
    auto other = dyn_cast<BlockArgument>(b);
    if (!argument && !other)
      return compareResults(cast<OpResult>(a), cast<OpResult>(b));
    return argument && other && compareArguments(argument, other);
  }

  bool compareArguments(BlockArgument a, BlockArgument b) {
    OpOperand *operand = lhs.getMatchingOpOperand(a);
    OpOperand *other = rhs.getMatchingOpOperand(b);
    return !lhs.isDpsInit(operand) && !rhs.isDpsInit(other) &&
           getViewed(operand->get()) == getViewed(other->get()) &&
           lhs.getMatchingIndexingMap(operand) ==
               rhs.getMatchingIndexingMap(other);
  }

  bool compareResults(OpResult a, OpResult b) {
    Operation *op = a.getOwner(), *other = b.getOwner();
    return op->getName() == other->getName() &&
           op->getAttrDictionary() == other->getAttrDictionary() &&
           op->getResultTypes() == other->getResultTypes() &&
           op->getNumRegions() == 0 &&
           a.getResultNumber() == b.getResultNumber() &&
           op->getNumOperands() == other->getNumOperands() &&
           llvm::all_of(
               llvm::zip_equal(op->getOperands(), other->getOperands()),
               [&](auto pair) {
                 return areSame(std::get<0>(pair), std::get<1>(pair));
               });
  }

  linalg::GenericOp lhs, rhs;
  /// By value of `lhs`: the same value of `rhs`, or null. Each is compared
  /// once, as a value may have many uses.
  DenseMap<Value, Value> equals;
};
} // namespace

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
        BodyComparison(sum, squares)
            .areSame(fromFirst.getLhs(), fromCenter.getLhs()))
      return moments;
  }
  return std::nullopt;
}

/// Whether a per-channel generic of `stage` computes the value of `operand`.
static bool computes(const Stage &stage, OpOperand *operand) {
  Value value = operand->get();
  return llvm::any_of(stage.channelwise, [&](linalg::GenericOp generic) {
    return llvm::is_contained(generic->getResults(), value) ||
           llvm::any_of(generic.getDpsInits(), [&](Value output) {
             return getViewed(output) == getViewed(value);
           });
  });
}

std::optional<MomentStages>
MomentStages::getAboutFirst(const ScheduledGroup &group) {
  std::optional<MomentStages> found = get(group);
  if (!found || found->sum != 1 || group.stages.size() != 3 ||
      !computes(group.stages[0], found->first) ||
      !computes(group.stages[1], found->center))
    return std::nullopt;
  return found;
}
