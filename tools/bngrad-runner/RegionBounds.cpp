//===- RegionBounds.cpp - bounds of values of regions ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegionBounds.h"
#include "SumBounds.h"

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::bngrad;

bool mlir::bngrad::hasBoundedRegions(Operation *op) {
  return isa<scf::IfOp, scf::IndexSwitchOp, scf::ForOp, scf::WhileOp>(op) ||
         (isa<scf::ExecuteRegionOp>(op) &&
          llvm::hasSingleElement(op->getRegion(0)));
}

bool mlir::bngrad::isSumInAnyOrder(Operation *op) {
  if (!isa<LoopLikeOpInterface>(op))
    return false;
  WalkResult walk =
      op->walk<WalkOrder::PreOrder>([&](Operation *nested) -> WalkResult {
        if (isa<linalg::LinalgOp>(nested))
          return WalkResult::skip(); // has its own bound
        auto add = dyn_cast<arith::AddFOp>(nested);
        bool isFree = add && bitEnumContainsAll(add.getFastmath(),
                                                arith::FastMathFlags::reassoc);
        return isFree ? WalkResult::interrupt() : WalkResult::advance();
      });
  return walk.wasInterrupted();
}

SmallVector<Value> mlir::bngrad::getControl(Operation *op) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return {branch.getCondition()};
  if (auto branch = dyn_cast<scf::IndexSwitchOp>(op))
    return {branch.getArg()};
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()};
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return {loop.getConditionOp().getCondition()};
  return {};
}

/// Calls `visit` with the values that are passed on within `op` and, in the
/// same order, the values that receive them.
static void
forEachFlow(Operation *op,
            function_ref<void(ValueRange given, ValueRange received)> visit) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (ValueRange received : {ValueRange(loop.getRegionIterArgs()),
                                ValueRange(loop.getResults())}) {
      visit(loop.getInitArgs(), received);
      visit(loop.getYieldedValues(), received);
    }
    return;
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    visit(loop.getInits(), loop.getBeforeArguments());
    visit(loop.getConditionOp().getArgs(), loop.getAfterArguments());
    visit(loop.getConditionOp().getArgs(), loop.getResults());
    visit(loop.getYieldOp().getOperands(), loop.getBeforeArguments());
    return;
  }
  for (Region &region : op->getRegions())
    if (!region.empty())
      visit(region.front().getTerminator()->getOperands(), op->getResults());
}

DenseSet<Value> mlir::bngrad::findInexactValues(func::FuncOp function) {
  DenseSet<Value> found;
  bool hasChanged = true;
  auto mark = [&](Value value) { hasChanged |= found.insert(value).second; };
  auto visit = [&](Operation *op) {
    if (isa<tensor::DimOp>(op))
      return; // A size does not depend on the values.
    if (hasBoundedRegions(op)) {
      forEachFlow(op, [&](ValueRange given, ValueRange received) {
        for (auto [from, to] : llvm::zip_equal(given, received))
          if (found.contains(from))
            mark(to);
      });
      if (!isSumInAnyOrder(op) &&
          llvm::none_of(getControl(op),
                        [&](Value value) { return found.contains(value); }))
        return;
      llvm::for_each(op->getResults(), mark);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          llvm::for_each(block.getArguments(), mark);
      return;
    }
    if (isa<BatchNormOpInterface>(op)) {
      for (Value result : op->getResults())
        if (isa<FloatType>(getElementTypeOrSelf(result)))
          mark(result);
      return;
    }
    bool isInexact =
        isOrderFree(op) || llvm::any_of(op->getOperands(), [&](Value value) {
          return found.contains(value);
        });
    visitUsedValuesDefinedAbove(op->getRegions(), [&](OpOperand *use) {
      isInexact |= found.contains(use->get());
    });
    if (isInexact)
      llvm::for_each(op->getResults(), mark);
  };
  while (hasChanged) {
    hasChanged = false;
    function.walk(visit);
  }
  return found;
}

bool mlir::bngrad::areBoundable(Operation *op,
                                function_ref<bool(Value)> isInexact) {
  auto isBoundable = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return !isInexact(value) || (type && isa<FloatType>(type.getElementType()));
  };
  return llvm::all_of(op->getResults(), isBoundable) &&
         llvm::all_of(op->getRegions(), [&](Region &region) {
           return region.empty() ||
                  llvm::all_of(region.front().getArguments(), isBoundable);
         });
}

namespace {
/// The block arguments, operands of terminators and results of an op that get
/// bounds.
class RegionBuilder {
public:
  RegionBuilder(Operation *op, const RegionErrors &errors)
      : op(op), errors(errors) {}

  FailureOr<SmallVector<Value>> build();

private:
  /// Values that a terminator passes to block arguments or results, as its
  /// operands from number `first` on.
  struct Flow {
    Operation *terminator;
    unsigned first;
    SmallVector<Value> received;
  };

  SmallVector<Flow> findFlows() const;
  /// The numbers of the inexact values in `values`.
  SmallVector<unsigned> find(ValueRange values) const;
  /// The type of the bound of `value`.
  static Type getType(Value value) {
    return cast<RankedTensorType>(value.getType())
        .clone(Float64Type::get(value.getContext()));
  }
  /// The bounds of the values in `given` that inexact values in `received` get.
  SmallVector<Value> getErrors(OpBuilder &b, ValueRange given,
                               ValueRange received) const;
  void addArguments(ArrayRef<Value> arguments);

  Operation *op;
  const RegionErrors &errors;
};
} // namespace

SmallVector<RegionBuilder::Flow> RegionBuilder::findFlows() const {
  SmallVector<Value> results(op->getResults());
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    // The results are the arguments of the second region.
    return {{loop.getConditionOp(), 1, results},
            {loop.getYieldOp(), 0,
             llvm::to_vector_of<Value>(loop.getBeforeArguments())}};
  SmallVector<Flow> flows;
  for (Region &region : op->getRegions())
    if (!region.empty())
      flows.push_back({region.front().getTerminator(), 0, results});
  return flows;
}

SmallVector<unsigned> RegionBuilder::find(ValueRange values) const {
  SmallVector<unsigned> found;
  for (auto [i, value] : llvm::enumerate(values))
    if (errors.isInexact(value))
      found.push_back(i);
  return found;
}

SmallVector<Value> RegionBuilder::getErrors(OpBuilder &b, ValueRange given,
                                            ValueRange received) const {
  return llvm::map_to_vector(find(received), [&](unsigned i) -> Value {
    Value error = errors.getErrorOrZero(b, given[i]);
    Type type = getType(received[i]);
    if (error.getType() == type)
      return error;
    return tensor::CastOp::create(b, op->getLoc(), type, error);
  });
}

void RegionBuilder::addArguments(ArrayRef<Value> arguments) {
  for (unsigned i : find(arguments)) {
    Block *block = cast<BlockArgument>(arguments[i]).getOwner();
    errors.setError(arguments[i],
                    block->addArgument(getType(arguments[i]), op->getLoc()));
  }
}

FailureOr<SmallVector<Value>> RegionBuilder::build() {
  OpBuilder b(op);
  SmallVector<Value> operands(op->getOperands());
  SmallVector<Flow> flows = findFlows();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    SmallVector<Value> arguments(loop.getRegionIterArgs());
    llvm::append_range(operands, getErrors(b, loop.getInitArgs(), arguments));
    addArguments(arguments);
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    SmallVector<Value> before(loop.getBeforeArguments());
    SmallVector<Value> after(loop.getAfterArguments());
    llvm::append_range(operands, getErrors(b, loop.getInits(), before));
    addArguments(before);
    addArguments(after);
  }
  for (Region &region : op->getRegions())
    if (!region.empty() && failed(errors.visit(region.front())))
      return failure();
  for (const Flow &flow : flows) {
    OpBuilder inside(flow.terminator);
    ValueRange given = flow.terminator->getOperands().drop_front(flow.first);
    SmallVector<Value> more = getErrors(inside, given, flow.received);
    flow.terminator->insertOperands(flow.terminator->getNumOperands(), more);
  }

  OperationState state(op->getLoc(), op->getName(), operands,
                       op->getResultTypes(), op->getAttrs());
  SmallVector<unsigned> inexact = find(op->getResults());
  for (unsigned i : inexact)
    state.types.push_back(getType(op->getResult(i)));
  for (Region &region : op->getRegions())
    state.addRegion()->takeBody(region);
  Operation *made = b.create(state);
  ValueRange results = made->getResults().take_front(op->getNumResults());
  ValueRange bounds = made->getResults().drop_front(op->getNumResults());
  for (auto [i, bound] : llvm::zip_equal(inexact, bounds))
    errors.setError(results[i], bound);
  op->replaceAllUsesWith(results);
  op->erase();
  return SmallVector<Value>(results);
}

FailureOr<SmallVector<Value>>
mlir::bngrad::buildRegionBounds(Operation *op, const RegionErrors &errors) {
  return RegionBuilder(op, errors).build();
}
