//===- ErrorBounds.cpp - bounds of values computed from a gradient --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Running error analysis (J. Wilkinson; N. Higham, "Accuracy and Stability of
// Numerical Algorithms", section 3.3): a bound of the error accompanies each
// value.
//
//===----------------------------------------------------------------------===//

#include "ErrorBounds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::bngrad;

Value BodyErrors::constant(double value) {
  return arith::ConstantOp::create(b, loc, b.getF64FloatAttr(value));
}

Value BodyErrors::add(Value l, Value r) {
  if (!l || !r)
    return l ? l : r;
  return arith::AddFOp::create(b, loc, l, r);
}

Value BodyErrors::mul(Value l, Value r) {
  if (!l || !r)
    return Value();
  return arith::MulFOp::create(b, loc, l, r);
}

Value BodyErrors::div(Value l, Value r) {
  return l ? Value(arith::DivFOp::create(b, loc, l, r)) : Value();
}

Value BodyErrors::max(Value l, Value r) {
  if (!l || !r)
    return l ? l : r;
  return arith::MaximumFOp::create(b, loc, l, r);
}

/// |value| as an f64.
Value BodyErrors::magnitude(Value value) {
  Value wide = value;
  if (!value.getType().isF64())
    wide = arith::ExtFOp::create(b, loc, b.getF64Type(), value);
  return math::AbsFOp::create(b, loc, wide);
}

static bool isToNearest(arith::TruncFOp op) {
  std::optional<arith::RoundingMode> mode = op.getRoundingmode();
  return !mode || *mode == arith::RoundingMode::to_nearest_even ||
         *mode == arith::RoundingMode::to_nearest_away;
}

/// The error of the result of `op`, which rounds, if its operands' errors
/// contribute `total`.
///
/// With a = fl(x) here and b = fl(y) there, |x - y| <= total, and
/// |a - x| <= u|a|, |b - y| <= u|y|, so that |y| <= (1 + u)|a| + total:
///
///   |a - b| <= (1 + u) (total + 2u|a|)
///
/// plus one smallest subnormal. Modes other than to nearest have twice the u.
/// 2^-49 and the other three cover the roundings of this in f64.
Value BodyErrors::rounded(Operation *op, Value total) {
  Value result = op->getResult(0);
  const llvm::fltSemantics &semantics =
      cast<FloatType>(result.getType()).getFloatSemantics();
  double unit = std::ldexp(
      1.0, -static_cast<int>(APFloat::semanticsPrecision(semantics)));
  if (auto truncation = dyn_cast<arith::TruncFOp>(op);
      truncation && !isToNearest(truncation))
    unit *= 2;
  double smallest = APFloat::getSmallest(semantics).convertToDouble();
  Value sum = add(total, mul(constant(2 * unit), magnitude(result)));
  Value error =
      add(mul(constant(1 + unit + 0x1p-49), sum), constant(4 * smallest));
  // With an infinite operand there is nothing to round.
  Value infinity = constant(std::numeric_limits<double>::infinity());
  for (Value operand : op->getOperands()) {
    Value isInfinite = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                             magnitude(operand), infinity);
    error = arith::SelectOp::create(b, loc, isInfinite, total, error);
  }
  return error;
}

LogicalResult BodyErrors::visit(Operation *op) {
  bool isExact = llvm::none_of(op->getOperands(), [&](Value operand) {
    return getError(operand) != nullptr;
  });
  if (isExact && op->getNumRegions() == 0)
    return success();
  if (op->getNumResults() != 1 || !isa<FloatType>(op->getResult(0).getType()))
    return failure();
  Value result = op->getResult(0);
  auto operand = [&](unsigned i) { return op->getOperand(i); };
  auto error = [&](unsigned i) { return getError(op->getOperand(i)); };

  Value total;
  bool isRounded = true;
  if (isa<arith::AddFOp, arith::SubFOp>(op)) {
    total = add(error(0), error(1));
  } else if (isa<arith::MulFOp>(op)) {
    total = add(add(mul(magnitude(operand(0)), error(1)),
                    mul(magnitude(operand(1)), error(0))),
                mul(error(0), error(1)));
  } else if (isa<arith::DivFOp>(op) && !error(1)) {
    total = div(error(0), magnitude(operand(1)));
  } else if (isa<arith::TruncFOp>(op)) {
    total = error(0);
  } else if (isa<arith::NegFOp, arith::ExtFOp, math::AbsFOp>(op)) {
    total = error(0);
    isRounded = false;
  } else if (isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
                 arith::MinNumFOp>(op)) {
    total = max(error(0), error(1));
    isRounded = false;
  } else if (isa<arith::SelectOp>(op) && !error(0)) {
    Value zero = constant(0);
    Value onTrue = error(1) ? error(1) : zero;
    Value onFalse = error(2) ? error(2) : zero;
    total = arith::SelectOp::create(b, loc, operand(0), onTrue, onFalse);
    isRounded = false;
  } else {
    return failure();
  }
  setError(result, isRounded ? rounded(op, total) : total);
  return success();
}

bool mlir::bngrad::readsErrorsBeside(Operation *op,
                                     function_ref<Value(Value)> getError) {
  bool found = false;
  visitUsedValuesDefinedAbove(op->getRegions(), [&](OpOperand *use) {
    found |= getError(use->get()) != nullptr;
  });
  return found;
}

/// The bounds of an element-wise generic, from a generic that computes them
/// beside its values.
static FailureOr<SmallVector<Value>>
buildForGeneric(OpBuilder &b, linalg::GenericOp generic,
                function_ref<Value(Value)> getError) {
  if (generic.getNumLoops() != generic.getNumParallelLoops() ||
      !generic.hasPureTensorSemantics() || readsErrorsBeside(generic, getError))
    return failure();
  Location loc = generic.getLoc();
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  SmallVector<std::pair<unsigned, unsigned>> errorArgs; // (operand, argument)
  for (OpOperand &operand : generic->getOpOperands()) {
    // An init that is only overwritten may be anything.
    if (generic.isDpsInit(&operand) &&
        !generic.payloadUsesValueFromOperand(&operand))
      continue;
    if (Value error = getError(operand.get())) {
      errorArgs.push_back({operand.getOperandNumber(), inputs.size()});
      inputs.push_back(error);
      maps.push_back(generic.getMatchingIndexingMap(&operand));
    }
  }
  SmallVector<unsigned> valueArgs(generic->getNumOperands());
  for (OpOperand &operand : generic->getOpOperands()) {
    valueArgs[operand.getOperandNumber()] = inputs.size();
    inputs.push_back(operand.get());
    maps.push_back(generic.getMatchingIndexingMap(&operand));
  }
  SmallVector<Value> inits;
  for (OpOperand &init : generic.getDpsInitsMutable()) {
    inits.push_back(tensor::EmptyOp::create(
        b, loc, tensor::getMixedSizes(b, loc, init.get()), b.getF64Type()));
    maps.push_back(generic.getMatchingIndexingMap(&init));
  }

  LogicalResult result = success();
  auto body = [&](OpBuilder &nested, Location, ValueRange args) {
    IRMapping mapping;
    for (OpOperand &operand : generic->getOpOperands())
      mapping.map(generic.getMatchingBlockArgument(&operand),
                  args[valueArgs[operand.getOperandNumber()]]);
    BodyErrors errors(nested, loc);
    for (auto [operand, argument] : errorArgs)
      errors.setError(args[valueArgs[operand]], args[argument]);
    for (Operation &op : generic.getBody()->without_terminator())
      if (failed(errors.visit(nested.clone(op, mapping))))
        result = failure();
    SmallVector<Value> yielded;
    Value zero =
        arith::ConstantOp::create(nested, loc, nested.getF64FloatAttr(0));
    for (Value value : generic.getBody()->getTerminator()->getOperands()) {
      Value error = errors.getError(mapping.lookupOrDefault(value));
      yielded.push_back(error ? error : zero);
    }
    linalg::YieldOp::create(nested, loc, yielded);
  };
  SmallVector<utils::IteratorType> iterators(generic.getNumLoops(),
                                             utils::IteratorType::parallel);
  auto bounds = linalg::GenericOp::create(b, loc, TypeRange(ValueRange(inits)),
                                          inputs, inits, maps, iterators, body);
  if (failed(result)) {
    bounds.erase();
    return failure();
  }
  return SmallVector<Value>(bounds.getResults());
}

Value mlir::bngrad::getErrorOrZero(OpBuilder &b, Value value,
                                   function_ref<Value(Value)> getError) {
  if (Value error = getError(value))
    return error;
  Location loc = value.getLoc();
  Value zero = arith::ConstantOp::create(b, loc, b.getF64FloatAttr(0));
  Value init = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, value), b.getF64Type());
  return linalg::FillOp::create(b, loc, zero, init).getResult(0);
}

FailureOr<SmallVector<Value>>
mlir::bngrad::buildErrorBounds(OpBuilder &b, Operation *op,
                               function_ref<Value(Value)> getError) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return buildForGeneric(b, generic, getError);
  if (!isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
           tensor::ExtractSliceOp, tensor::InsertSliceOp>(op))
    return failure();
  // Move the errors in the same way.
  IRMapping mapping;
  for (Value operand : op->getOperands())
    if (isa<TensorType>(operand.getType()))
      mapping.map(operand, getErrorOrZero(b, operand, getError));
  Operation *moved = b.clone(*op, mapping);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  moved->getResult(0).setType(type.clone(b.getF64Type()));
  return SmallVector<Value>(moved->getResults());
}
