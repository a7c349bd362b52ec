//===- Decompose.cpp - bngrad-decompose: all the mathematics --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formulas, their derivation and the error bound are in
// docs/mathematics.md. For each channel, with M elements reduced per channel:
//
//   r            = 1/sqrt(variance + epsilon), or inv_std
//   sum_dy       = sum grad_output
//   sum_dy_xmu   = sum grad_output * (input - mean)
//   grad_offset  = sum_dy
//   grad_scale   = sum_dy_xmu * r
//   factor       = scale * r
//   mean_dy      = sum_dy / M
//   slope        = sum_dy_xmu / M * r * r
//   grad_input   = factor * ((grad_output - mean_dy) - (input - mean) * slope)
//
// and grad_input = factor * grad_output for global statistics. `input - mean`
// is never folded away: mean may be large against the spread of input.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Passes.h"
#include "BNGrad/Transforms/Transforms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADDECOMPOSEPASS
#include "BNGrad/Transforms/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// Converts a float to another float type, exactly or with one rounding.
static Value convertFloat(OpBuilder &b, Location loc, Value value,
                          FloatType type) {
  unsigned from = cast<FloatType>(value.getType()).getWidth();
  if (value.getType() == type)
    return value;
  if (from < type.getWidth())
    return arith::ExtFOp::create(b, loc, type, value);
  return arith::TruncFOp::create(b, loc, type, value);
}

namespace {
/// Float arithmetic on scalars; a product may be contracted with the sum that
/// takes it.
struct Arithmetic {
  OpBuilder &b;
  Location loc;
  FloatType type; // accumulator type

  Value extend(Value value) const { return convertFloat(b, loc, value, type); }
  Value constant(double value) const {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  }
  Value add(Value l, Value r) const {
    return arith::AddFOp::create(b, loc, l, r, contract());
  }
  Value sub(Value l, Value r) const {
    return arith::SubFOp::create(b, loc, l, r, contract());
  }
  Value mul(Value l, Value r) const {
    return arith::MulFOp::create(b, loc, l, r, contract());
  }
  Value div(Value l, Value r) const {
    return arith::DivFOp::create(b, loc, l, r);
  }
  Value sqrt(Value value) const { return math::SqrtOp::create(b, loc, value); }

private:
  arith::FastMathFlags contract() const {
    return arith::FastMathFlags::contract;
  }
};

/// Number of elements reduced per channel.
struct Count {
  std::optional<int64_t> staticValue;
  Value isZero;  // i1, null if static
  Value divisor; // accumulator type; max(count, 1), null if static
};

/// The decomposition of one op.
class Decomposition {
public:
  Decomposition(RewriterBase &b, BatchNormBackwardOp op)
      : b(b), loc(op.getLoc()), op(op), type(op.getAccumulatorType()) {}

  /// Replaces the op.
  LogicalResult run();

private:
  Arithmetic arithmetic(OpBuilder &builder) const {
    return {builder, loc, type};
  }
  AffineMap dataMap() const {
    return b.getMultiDimIdentityMap(dataShape.size());
  }
  /// From the loops over the data to the channel.
  AffineMap featureMap() {
    SmallVector<AffineExpr> exprs;
    for (int64_t dim : op.getFeatureDims())
      exprs.push_back(b.getAffineDimExpr(dim));
    return AffineMap::get(dataShape.size(), 0, exprs, b.getContext());
  }
  AffineMap channelMap() const {
    return b.getMultiDimIdentityMap(channelShape.size());
  }

  Value sizeOfInput(int64_t dim) {
    return b.createOrFold<tensor::DimOp>(loc, op.getInput(), dim);
  }
  Value emptyData(Type elementType);
  Value emptyChannel(Type elementType);
  Value zeroChannel(FloatType elementType);
  /// True if it is known that a channel has no elements.
  bool isCountZero() {
    for (auto [dim, size] : llvm::enumerate(dataShape))
      if (size == 0 && !op.isFeatureDim(dim))
        return true;
    return false;
  }
  Count buildCount();
  /// grad_output in the accumulator type, 0 where the mask (null: none) is
  /// false.
  Value maskedGradOutput(const Arithmetic &math, Value gradOutput, Value mask);
  void buildSums(bool needsSum, bool needsProductSum);
  void buildChannel();
  Value buildGradInput();

  RewriterBase &b;
  Location loc;
  BatchNormBackwardOp op;
  FloatType type; // accumulator type

  // Every size that any operand knows.
  SmallVector<int64_t> dataShape, channelShape;
  // Per-channel tensors; null where nothing needs them.
  Value sumDy, sumDyXmu, factor, meanDy, slope;
  Value gradScale, gradOffset;
};
} // namespace

Value Decomposition::emptyData(Type elementType) {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::enumerate(dataShape))
    sizes.push_back(ShapedType::isDynamic(size)
                        ? OpFoldResult(sizeOfInput(dim))
                        : OpFoldResult(b.getIndexAttr(size)));
  return tensor::EmptyOp::create(b, loc, sizes, elementType);
}

Value Decomposition::emptyChannel(Type elementType) {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::zip_equal(op.getFeatureDims(), channelShape))
    sizes.push_back(ShapedType::isDynamic(size)
                        ? OpFoldResult(sizeOfInput(dim))
                        : OpFoldResult(b.getIndexAttr(size)));
  return tensor::EmptyOp::create(b, loc, sizes, elementType);
}

Value Decomposition::zeroChannel(FloatType elementType) {
  Value zero =
      arith::ConstantOp::create(b, loc, b.getFloatAttr(elementType, 0.0));
  return linalg::FillOp::create(b, loc, zero, emptyChannel(elementType))
      .getResult(0);
}

Count Decomposition::buildCount() {
  int64_t staticCount = 1;
  SmallVector<int64_t> dynamicDims;
  for (auto [dim, size] : llvm::enumerate(dataShape)) {
    if (op.isFeatureDim(dim))
      continue;
    if (ShapedType::isDynamic(size))
      dynamicDims.push_back(dim);
    else
      staticCount *= size;
  }
  if (dynamicDims.empty())
    return {staticCount, Value(), Value()};

  Value count = arith::ConstantIndexOp::create(b, loc, staticCount);
  for (int64_t dim : dynamicDims)
    count = arith::MulIOp::create(b, loc, count, sizeOfInput(dim));
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value isZero =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, count, zero);
  Value divisor = arith::MaxSIOp::create(b, loc, count, one);
  divisor = arith::IndexCastOp::create(b, loc, b.getI64Type(), divisor);
  divisor = arith::SIToFPOp::create(b, loc, type, divisor);
  return {std::nullopt, isZero, divisor};
}

Value Decomposition::maskedGradOutput(const Arithmetic &math, Value gradOutput,
                                      Value mask) {
  Value value = math.extend(gradOutput);
  if (!mask)
    return value;
  return arith::SelectOp::create(math.b, loc, mask, value, math.constant(0.0));
}

/// One reduction with the sums that are needed; what a sum does not need is
/// not read.
void Decomposition::buildSums(bool needsSum, bool needsProductSum) {
  if (!needsSum && !needsProductSum)
    return;
  SmallVector<Value> inputs = {op.getGradOutput()};
  SmallVector<AffineMap> maps = {dataMap()};
  if (op.getMask()) {
    inputs.push_back(op.getMask());
    maps.push_back(dataMap());
  }
  if (needsProductSum) {
    inputs.append({op.getInput(), op.getMean()});
    maps.append({dataMap(), featureMap()});
  }
  SmallVector<Value> inits;
  SmallVector<Type> types;
  for (bool needed : {needsSum, needsProductSum}) {
    if (!needed)
      continue;
    inits.push_back(zeroChannel(type));
    types.push_back(inits.back().getType());
    maps.push_back(featureMap());
  }
  SmallVector<utils::IteratorType> iterators;
  for (int64_t dim : llvm::seq<int64_t>(dataShape.size()))
    iterators.push_back(op.isFeatureDim(dim) ? utils::IteratorType::parallel
                                             : utils::IteratorType::reduction);

  auto body = [&](OpBuilder &builder, Location, ValueRange args) {
    Arithmetic math = arithmetic(builder);
    unsigned next = 0;
    Value gradOutput = args[next++];
    Value mask = op.getMask() ? args[next++] : Value();
    gradOutput = maskedGradOutput(math, gradOutput, mask);
    SmallVector<Value> terms;
    if (needsSum)
      terms.push_back(gradOutput);
    if (needsProductSum) {
      Value input = math.extend(args[next++]);
      Value centered = math.sub(input, math.extend(args[next++]));
      terms.push_back(math.mul(gradOutput, centered));
    }
    SmallVector<Value> sums;
    for (Value term : terms)
      sums.push_back(math.add(args[next++], term));
    linalg::YieldOp::create(builder, loc, sums);
  };
  auto generic = linalg::GenericOp::create(b, loc, types, inputs, inits, maps,
                                           iterators, body);
  unsigned next = 0;
  if (needsSum)
    sumDy = generic.getResult(next++);
  if (needsProductSum)
    sumDyXmu = generic.getResult(next++);
}

/// One per-channel generic with the coefficients of grad_input and with
/// grad_scale and grad_offset, as far as they are needed.
void Decomposition::buildChannel() {
  bool isBatch = op.getStatistics() == Statistics::Batch;
  bool needsFactor = !op.getGradInput().use_empty();
  bool needsMeans = needsFactor && isBatch;
  bool needsScale = !op.getGradScale().use_empty();
  bool needsOffset = !op.getGradOffset().use_empty();
  bool needsInvStd = needsFactor || needsScale;
  Count count;
  if (needsMeans || needsScale)
    count = buildCount();

  SmallVector<Value> inputs;
  auto addInput = [&](Value value, bool needed) -> int64_t {
    if (!value || !needed)
      return -1;
    inputs.push_back(value);
    return inputs.size() - 1;
  };
  int64_t sumDyArg = addInput(sumDy, needsMeans || needsOffset);
  int64_t sumDyXmuArg = addInput(sumDyXmu, needsMeans || needsScale);
  int64_t scaleArg = addInput(op.getScale(), needsFactor);
  int64_t statisticArg = addInput(op.getStatistic(), needsInvStd);

  // (element type of the result, what receives it)
  SmallVector<std::pair<FloatType, Value *>> outputs;
  auto elementType = [](Value value) {
    return cast<FloatType>(getElementTypeOrSelf(value));
  };
  if (needsFactor)
    outputs.push_back({type, &factor});
  if (needsMeans)
    outputs.append({{type, &meanDy}, {type, &slope}});
  if (needsScale)
    outputs.push_back({elementType(op.getGradScale()), &gradScale});
  if (needsOffset)
    outputs.push_back({elementType(op.getGradOffset()), &gradOffset});
  if (outputs.empty())
    return;
  SmallVector<Value> inits;
  SmallVector<Type> types;
  for (auto [outputType, _] : outputs) {
    inits.push_back(emptyChannel(outputType));
    types.push_back(inits.back().getType());
  }

  auto body = [&](OpBuilder &builder, Location, ValueRange args) {
    Arithmetic math = arithmetic(builder);
    Value invStd;
    if (needsInvStd) {
      invStd = math.extend(args[statisticArg]);
      if (op.getVariance()) {
        Value epsilon = math.constant(op.getEpsilon().convertToDouble());
        invStd =
            math.div(math.constant(1.0), math.sqrt(math.add(invStd, epsilon)));
      }
    }
    Value divisor = count.divisor;
    if (count.staticValue)
      divisor = math.constant(static_cast<double>(*count.staticValue));

    SmallVector<Value> results;
    if (needsFactor)
      results.push_back(scaleArg < 0
                            ? invStd
                            : math.mul(math.extend(args[scaleArg]), invStd));
    if (needsMeans) {
      results.push_back(math.div(args[sumDyArg], divisor));
      Value meanDyXmu = math.div(args[sumDyXmuArg], divisor);
      results.push_back(math.mul(math.mul(meanDyXmu, invStd), invStd));
    }
    if (needsScale) {
      // Without elements the sum is 0, but 0 * r need not be.
      Value product = math.mul(args[sumDyXmuArg], invStd);
      Value zero = math.constant(0.0);
      if (count.isZero)
        product =
            arith::SelectOp::create(builder, loc, count.isZero, zero, product);
      results.push_back(product);
    }
    if (needsOffset)
      results.push_back(args[sumDyArg]);
    for (auto &&[result, output] : llvm::zip_equal(results, outputs))
      result = convertFloat(builder, loc, result, output.first);
    linalg::YieldOp::create(builder, loc, results);
  };
  SmallVector<AffineMap> maps(inputs.size() + outputs.size(), channelMap());
  SmallVector<utils::IteratorType> iterators(channelShape.size(),
                                             utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(b, loc, types, inputs, inits, maps,
                                           iterators, body);
  for (auto [output, result] : llvm::zip_equal(outputs, generic.getResults()))
    *output.second = result;
}

Value Decomposition::buildGradInput() {
  bool isBatch = op.getStatistics() == Statistics::Batch;
  SmallVector<Value> inputs = {op.getGradOutput()};
  SmallVector<AffineMap> maps = {dataMap()};
  auto addInput = [&](Value value, AffineMap map) {
    inputs.push_back(value);
    maps.push_back(map);
  };
  if (op.getMask())
    addInput(op.getMask(), dataMap());
  addInput(factor, featureMap());
  if (isBatch) {
    addInput(op.getInput(), dataMap());
    addInput(op.getMean(), featureMap());
    addInput(meanDy, featureMap());
    addInput(slope, featureMap());
  }
  auto elementType = cast<FloatType>(getElementTypeOrSelf(op.getGradInput()));
  Value init = emptyData(elementType);
  maps.push_back(dataMap());

  auto body = [&](OpBuilder &builder, Location, ValueRange args) {
    Arithmetic math = arithmetic(builder);
    unsigned next = 0;
    Value gradOutput = args[next++];
    Value mask = op.getMask() ? args[next++] : Value();
    Value factorArg = args[next++];
    Value result = maskedGradOutput(math, gradOutput, mask);
    if (isBatch) {
      Value input = math.extend(args[next++]);
      Value centered = math.sub(input, math.extend(args[next++]));
      result = math.sub(result, args[next++]);
      result = math.sub(result, math.mul(centered, args[next++]));
    }
    result = math.mul(factorArg, result);
    linalg::YieldOp::create(builder, loc,
                            convertFloat(builder, loc, result, elementType));
  };
  SmallVector<utils::IteratorType> iterators(dataShape.size(),
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, init.getType(), inputs, init, maps,
                                   iterators, body)
      .getResult(0);
}

LogicalResult Decomposition::run() {
  SmallVector<Type> refined(op->getResultTypes());
  if (failed(BatchNormBackwardOp::refineReturnTypes(
          b.getContext(), std::nullopt, op->getOperands(),
          op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
          op->getRegions(), refined)))
    return failure();
  dataShape.assign(cast<ShapedType>(refined[0]).getShape().begin(),
                   cast<ShapedType>(refined[0]).getShape().end());
  for (int64_t dim : op.getFeatureDims())
    channelShape.push_back(dataShape[dim]);

  bool needsGradInput = !op.getGradInput().use_empty();
  bool needsGradScale = !op.getGradScale().use_empty();
  bool needsGradOffset = !op.getGradOffset().use_empty();
  Value gradInput;
  if (isCountZero()) {
    // Nothing to sum and nothing to divide by.
    if (needsGradInput)
      gradInput = emptyData(getElementTypeOrSelf(op.getGradInput()));
    if (needsGradScale)
      gradScale =
          zeroChannel(cast<FloatType>(getElementTypeOrSelf(op.getGradScale())));
    if (needsGradOffset)
      gradOffset = zeroChannel(
          cast<FloatType>(getElementTypeOrSelf(op.getGradOffset())));
  } else {
    bool gradInputNeedsSums =
        needsGradInput && op.getStatistics() == Statistics::Batch;
    buildSums(gradInputNeedsSums || needsGradOffset,
              gradInputNeedsSums || needsGradScale);
    buildChannel();
    if (needsGradInput)
      gradInput = buildGradInput();
  }

  Value values[] = {gradInput, gradScale, gradOffset};
  for (auto [result, value] : llvm::zip_equal(op->getResults(), values)) {
    if (!value)
      continue;
    if (value.getType() != result.getType())
      value = tensor::CastOp::create(b, loc, result.getType(), value);
    b.replaceAllUsesWith(result, value);
  }
  b.eraseOp(op);
  return success();
}

namespace {
struct DecomposeBatchNormBackward : OpRewritePattern<BatchNormBackwardOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BatchNormBackwardOp op,
                                PatternRewriter &rewriter) const override {
    return Decomposition(rewriter, op).run();
  }
};

struct BNGradDecomposePass
    : bngrad::impl::BNGradDecomposePassBase<BNGradDecomposePass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateDecomposePatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    WalkResult left = getOperation().walk([](Operation *op) {
      if (!isa_and_present<BNGradDialect>(op->getDialect()))
        return WalkResult::advance();
      op->emitOpError() << "expected a decomposition into linalg, got none";
      return WalkResult::interrupt();
    });
    if (left.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

void mlir::bngrad::populateDecomposePatterns(RewritePatternSet &patterns) {
  patterns.add<DecomposeBatchNormBackward>(patterns.getContext());
}
