//===- SumBounds.cpp - sums whose order is free ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sum of M terms t, each off by at most alpha, is within
//
//   c * sum(|t| + alpha) + sum(alpha),    the initial value being a term, too,
//
// of the exact one, with u the unit roundoff of the sum's type and
//
//   c = 4u(4 + log2(M + 1))      if a schedule adds up (docs/numerics.md,
//                                sections 2 and 4),
//   c = nu / (1 - nu), n = M + 1 in any order (N. Higham, "Accuracy and
//                                Stability of Numerical Algorithms", section
//                                4.2): M additions, and one rounding of each
//                                term, of a product that is contracted.
//
// The sum itself is computed here in pairs of f64 by TwoSum (docs/numerics.md,
// section 4) and rounded once.
//
//===----------------------------------------------------------------------===//

#include "SumBounds.h"
#include "ErrorBounds.h"

#include "BNGrad/Transforms/FloatBuilder.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Whether `op` runs its body repeatedly with values of the previous run.
static bool isRepeated(Operation *op) {
  if (auto generic = dyn_cast<linalg::LinalgOp>(op))
    return generic.getNumLoops() != generic.getNumParallelLoops();
  return isa<LoopLikeOpInterface>(op);
}

bool mlir::bngrad::isOrderFree(Operation *op) {
  WalkResult found = op->walk([&](arith::AddFOp add) {
    if (!bitEnumContainsAll(add.getFastmath(), arith::FastMathFlags::reassoc))
      return WalkResult::advance();
    Operation *parent = add;
    while (parent != op && !isRepeated(parent))
      parent = parent->getParentOp();
    return isRepeated(parent) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
}

namespace {
/// The parts of a sum, each an f64 tensor of its shape.
struct SumParts {
  enum { Sum, Rest, Magnitude, Error };
  static constexpr unsigned kCount = Error + 1;
};

/// f64 arithmetic.
struct Wide : FloatBuilder {
  Value constant(double value) const {
    return FloatBuilder::constant(value, b.getF64Type());
  }
  Value abs(Value value) const { return math::AbsFOp::create(b, loc, value); }
};

class SumBuilder {
public:
  SumBuilder(OpBuilder &b, linalg::GenericOp generic, SumOrder order,
             function_ref<Value(Value)> getError)
      : b(b), generic(generic), loc(generic.getLoc()), order(order),
        getError(getError) {}

  FailureOr<SmallVector<BoundedValue>> build();

private:
  bool findSums();
  Value computeFactor(const llvm::fltSemantics &semantics);
  SmallVector<Value> makeInits(OpOperand &init);
  LogicalResult addTerms(OpBuilder &nested, ValueRange args);
  BoundedValue finish(ValueRange parts, Type resultType);
  /// An element-wise generic over `inputs`, all of one shape.
  SmallVector<Value>
  map(ValueRange inputs, ArrayRef<Type> elementTypes,
      function_ref<SmallVector<Value>(const Wide &, ValueRange)> body);

  OpBuilder &b;
  linalg::GenericOp generic;
  Location loc;
  SumOrder order;
  function_ref<Value(Value)> getError;
  /// By result, the added term; null if it has one value per iteration.
  SmallVector<Value> terms;
  /// For the operands of `generic`, the argument of the new generic with their
  /// errors (-1 if exact).
  SmallVector<int> errorArguments;
};
} // namespace

/// Fills `terms`; false if a result is neither a sum nor one value per
/// iteration, or if there is no sum.
bool SumBuilder::findSums() {
  bool hasSum = false;
  auto yield = cast<linalg::YieldOp>(generic.getBody()->getTerminator());
  for (auto [i, value] : llvm::enumerate(yield.getValues())) {
    BlockArgument accumulator = generic.getRegionOutputArgs()[i];
    AffineMap map =
        generic.getMatchingIndexingMap(generic.getDpsInitOperand(i));
    auto add = value.getDefiningOp<arith::AddFOp>();
    bool isSum =
        add && accumulator.hasOneUse() && value.hasOneUse() &&
        bitEnumContainsAll(add.getFastmath(), arith::FastMathFlags::reassoc) &&
        (add.getLhs() == accumulator || add.getRhs() == accumulator);
    bool isStored = accumulator.use_empty() && map.isPermutation();
    if (!isSum && !isStored)
      return false;
    terms.push_back(!isSum                        ? Value()
                    : add.getLhs() == accumulator ? add.getRhs()
                                                  : add.getLhs());
    hasSum |= isSum;
  }
  return hasSum;
}

SmallVector<Value> SumBuilder::map(
    ValueRange inputs, ArrayRef<Type> elementTypes,
    function_ref<SmallVector<Value>(const Wide &, ValueRange)> body) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, loc, inputs.front());
  SmallVector<Value> inits;
  for (Type type : elementTypes)
    inits.push_back(tensor::EmptyOp::create(b, loc, sizes, type));
  AffineMap identity = b.getMultiDimIdentityMap(sizes.size());
  SmallVector<AffineMap> maps(inputs.size() + inits.size(), identity);
  SmallVector<utils::IteratorType> iterators(sizes.size(),
                                             utils::IteratorType::parallel);
  auto mapped = linalg::GenericOp::create(
      b, loc, TypeRange(ValueRange(inits)), inputs, inits, maps, iterators,
      [&](OpBuilder &nested, Location, ValueRange args) {
        linalg::YieldOp::create(nested, loc, body(Wide{{nested, loc}}, args));
      });
  return SmallVector<Value>(mapped.getResults());
}

/// c, a scalar; infinite if there is no bound.
Value SumBuilder::computeFactor(const llvm::fltSemantics &semantics) {
  Wide wide{{b, loc}};
  double unit = std::ldexp(
      1.0, -static_cast<int>(APFloat::semanticsPrecision(semantics)));
  SmallVector<unsigned> reductionDims;
  generic.getReductionDims(reductionDims);
  SmallVector<Range> ranges =
      cast<linalg::LinalgOp>(generic.getOperation()).createLoopRanges(b, loc);
  Value count = wide.constant(1);
  for (unsigned dim : reductionDims) {
    Value size = arith::IndexCastOp::create(
        b, loc, b.getI64Type(),
        getValueOrCreateConstantIndexOp(b, loc, ranges[dim].size));
    count =
        wide.mul(count, arith::SIToFPOp::create(b, loc, b.getF64Type(), size));
  }
  count = wide.add(count, wide.constant(1));
  if (order == SumOrder::Scheduled) {
    Value height =
        wide.add(math::Log2Op::create(b, loc, count), wide.constant(4));
    return wide.mul(height, wide.constant(4 * unit));
  }
  Value roundings = wide.mul(count, wide.constant(unit));
  Value factor = wide.div(roundings, wide.sub(wide.constant(1), roundings));
  Value hasFactor = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT,
                                          roundings, wide.constant(1));
  return arith::SelectOp::create(
      b, loc, hasFactor, factor,
      wide.constant(std::numeric_limits<double>::infinity()));
}

/// The initial values of the parts of a sum with the initial value `init`.
SmallVector<Value> SumBuilder::makeInits(OpOperand &init) {
  SmallVector<Value> inputs = {init.get()};
  if (Value error = getError(init.get()))
    inputs.push_back(error);
  SmallVector<Type> types(SumParts::kCount, b.getF64Type());
  return map(inputs, types, [&](const Wide &wide, ValueRange args) {
    Value value = wide.toF64(args[0]), zero = wide.constant(0);
    Value error = inputs.size() > 1 ? args[1] : zero;
    return SmallVector<Value>{value, zero, wide.add(wide.abs(value), error),
                              error};
  });
}

/// Builds the body of the generic that adds up. `args` are the operands of
/// `generic` except its sums, their errors, and the parts of the sums.
LogicalResult SumBuilder::addTerms(OpBuilder &nested, ValueRange args) {
  IRMapping mapping;
  BodyErrors errors(nested, loc);
  for (auto [i, argument] : llvm::enumerate(generic.getRegionInputArgs())) {
    mapping.map(argument, args[i]);
    if (errorArguments[i] >= 0)
      errors.setError(args[i], args[errorArguments[i]]);
  }
  Block *body = generic.getBody();
  auto yield = cast<linalg::YieldOp>(body->getTerminator());
  for (Operation &op : body->without_terminator()) {
    bool isSum = llvm::any_of(llvm::enumerate(yield.getValues()), [&](auto it) {
      return terms[it.index()] && it.value().getDefiningOp() == &op;
    });
    if (!isSum && failed(errors.visit(nested.clone(op, mapping))))
      return failure();
  }
  Wide wide{{nested, loc}};
  SmallVector<Value> yielded;
  Value zero = wide.constant(0);
  unsigned firstPart =
      args.size() - SumParts::kCount * llvm::count_if(terms, [](Value term) {
                      return term != nullptr;
                    });
  for (Value term : terms) {
    if (!term)
      continue;
    ValueRange parts = args.slice(firstPart, SumParts::kCount);
    firstPart += SumParts::kCount;
    Value narrow = mapping.lookupOrDefault(term);
    Value error = errors.getError(narrow);
    Value value = wide.toF64(narrow);
    Value before = parts[SumParts::Sum], sum = wide.add(before, value);
    Value added = wide.sub(sum, before);
    Value rest = wide.add(wide.sub(before, wide.sub(sum, added)),
                          wide.sub(value, added));
    // An infinite sum has no rest.
    Value isNumber = arith::CmpFOp::create(
        nested, loc, arith::CmpFPredicate::ORD, rest, rest);
    rest = arith::SelectOp::create(nested, loc, isNumber, rest, zero);
    Value magnitude = wide.abs(value);
    if (error)
      magnitude = wide.add(magnitude, error);
    yielded.push_back(sum);
    yielded.push_back(wide.add(parts[SumParts::Rest], rest));
    yielded.push_back(wide.add(parts[SumParts::Magnitude], magnitude));
    yielded.push_back(error ? wide.add(parts[SumParts::Error], error)
                            : parts[SumParts::Error]);
  }
  linalg::YieldOp::create(nested, loc, yielded);
  return success();
}

/// Rounds a sum and computes its bound.
BoundedValue SumBuilder::finish(ValueRange parts, Type resultType) {
  auto type = cast<FloatType>(getElementTypeOrSelf(resultType));
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  double unit = std::ldexp(
      1.0, -static_cast<int>(APFloat::semanticsPrecision(semantics)));
  double smallest = APFloat::getSmallest(semantics).convertToDouble();
  double largest = APFloat::getLargest(semantics).convertToDouble();
  Value factor = computeFactor(semantics);
  SmallVector<Value> results = map(
      parts, {type, b.getF64Type()}, [&](const Wide &wide, ValueRange args) {
        Value sum = wide.add(args[SumParts::Sum], args[SumParts::Rest]);
        Value rounded = wide.convert(sum, type);
        Value magnitude = args[SumParts::Magnitude];
        Value error =
            wide.add(wide.mul(factor, magnitude), args[SumParts::Error]);
        error = wide.add(error, wide.mul(wide.abs(wide.toF64(rounded)),
                                         wide.constant(unit)));
        // Allow a few for underflow and for the roundings here.
        error = wide.add(wide.mul(error, wide.constant(1 + 0x1p-40)),
                         wide.constant(4 * smallest));
        // Another order may overflow before the end.
        Value isSafe =
            arith::CmpFOp::create(wide.b, loc, arith::CmpFPredicate::OLE,
                                  magnitude, wide.constant(largest));
        Value infinity = wide.constant(std::numeric_limits<double>::infinity());
        error = arith::SelectOp::create(wide.b, loc, isSafe, error, infinity);
        return SmallVector<Value>{rounded, error};
      });
  return {results[0], results[1]};
}

FailureOr<SmallVector<BoundedValue>> SumBuilder::build() {
  if (!generic.hasPureTensorSemantics() || !findSums() ||
      readsErrorsBeside(generic, getError))
    return failure();
  SmallVector<Value> inputs(generic.getDpsInputs()), inits;
  SmallVector<AffineMap> maps;
  for (OpOperand *input : generic.getDpsInputOperands())
    maps.push_back(generic.getMatchingIndexingMap(input));
  for (OpOperand *input : generic.getDpsInputOperands()) {
    Value error = getError(input->get());
    errorArguments.push_back(error ? inputs.size() : -1);
    if (!error)
      continue;
    inputs.push_back(error);
    maps.push_back(generic.getMatchingIndexingMap(input));
  }
  for (auto [i, term] : llvm::enumerate(terms)) {
    if (!term) {
      // `generic` itself computes these.
      if (llvm::any_of(errorArguments, [](int i) { return i >= 0; }))
        return failure();
      continue;
    }
    OpOperand *init = generic.getDpsInitOperand(i);
    llvm::append_range(inits, makeInits(*init));
    maps.append(SumParts::kCount, generic.getMatchingIndexingMap(init));
  }
  LogicalResult result = success();
  auto sums = linalg::GenericOp::create(
      b, loc, TypeRange(ValueRange(inits)), inputs, inits, maps,
      generic.getIteratorTypesArray(),
      [&](OpBuilder &nested, Location, ValueRange args) {
        result = addTerms(nested, args);
      });
  if (failed(result)) {
    sums.erase();
    return failure();
  }
  SmallVector<BoundedValue> values;
  ValueRange parts = sums.getResults();
  for (auto [i, term] : llvm::enumerate(terms)) {
    if (!term) {
      values.push_back({generic.getResult(i), Value()});
      continue;
    }
    values.push_back(finish(parts.take_front(SumParts::kCount),
                            generic.getResultTypes()[i]));
    parts = parts.drop_front(SumParts::kCount);
    Value &value = values.back().value;
    for (Value *part : {&value, &values.back().error}) {
      auto type = cast<RankedTensorType>(generic.getResultTypes()[i]);
      type = type.clone(getElementTypeOrSelf(*part));
      if (part->getType() != type)
        *part = tensor::CastOp::create(b, loc, type, *part);
    }
  }
  return values;
}

FailureOr<SmallVector<BoundedValue>>
mlir::bngrad::buildSums(OpBuilder &b, Operation *op, SumOrder order,
                        function_ref<Value(Value)> getError) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic)
    return failure();
  return SumBuilder(b, generic, order, getError).build();
}
