//===- GradientBuilder.cpp - all the mathematics --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// docs/mathematics.md derives the formulas; docs/numerics.md has the error
// bound and the roundings that it counts. For each channel, with M elements
// reduced per channel:
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

#include "GradientBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/TypeUtilities.h"

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
/// Float arithmetic on scalars. A product may be contracted with the sum that
/// reads it, and the terms of a channel's sum may be added in any order.
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
  Value accumulate(Value sum, Value term) const {
    return arith::AddFOp::create(b, loc, sum, term,
                                 contract() | arith::FastMathFlags::reassoc);
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

  /// grad_output, but 0 where `mask` (null if none) is false.
  Value masked(Value gradOutput, Value mask) const {
    Value value = extend(gradOutput);
    if (!mask)
      return value;
    return arith::SelectOp::create(b, loc, mask, value, constant(0.0));
  }

private:
  arith::FastMathFlags contract() const {
    return arith::FastMathFlags::contract;
  }
};
} // namespace

GradientBuilder::GradientBuilder(OpBuilder &b, GradientOpInterface op)
    : b(b), op(op), loc(op.getLoc()), dataShape(op.getDataShape()),
      type(op.getAccumulatorType()) {
  for (int64_t dim : op.getFeatureDims())
    channelShape.push_back(dataShape[dim]);
}

AffineMap GradientBuilder::dataMap() {
  return b.getMultiDimIdentityMap(dataShape.size());
}

/// The map from the loops over the data to the channel.
AffineMap GradientBuilder::featureMap() {
  SmallVector<AffineExpr> exprs;
  for (int64_t dim : op.getFeatureDims())
    exprs.push_back(b.getAffineDimExpr(dim));
  return AffineMap::get(dataShape.size(), 0, exprs, b.getContext());
}

AffineMap GradientBuilder::channelMap() {
  return b.getMultiDimIdentityMap(channelShape.size());
}

Value GradientBuilder::sizeOfInput(int64_t dim) {
  return b.createOrFold<tensor::DimOp>(loc, getOperand(Role::Input), dim);
}

SmallVector<OpFoldResult> GradientBuilder::channelSizes() {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::zip_equal(op.getFeatureDims(), channelShape))
    sizes.push_back(ShapedType::isDynamic(size)
                        ? OpFoldResult(sizeOfInput(dim))
                        : OpFoldResult(b.getIndexAttr(size)));
  return sizes;
}

Value GradientBuilder::buildEmptyData(Type elementType) {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::enumerate(dataShape))
    sizes.push_back(ShapedType::isDynamic(size)
                        ? OpFoldResult(sizeOfInput(dim))
                        : OpFoldResult(b.getIndexAttr(size)));
  return tensor::EmptyOp::create(b, loc, sizes, elementType);
}

Value GradientBuilder::buildEmptyChannel(Type elementType) {
  return tensor::EmptyOp::create(b, loc, channelSizes(), elementType);
}

Value GradientBuilder::buildZeroChannel(FloatType elementType) {
  Value zero =
      arith::ConstantOp::create(b, loc, b.getFloatAttr(elementType, 0.0));
  return linalg::FillOp::create(b, loc, zero, buildEmptyChannel(elementType))
      .getResult(0);
}

bool GradientBuilder::isCountZero() {
  for (auto [dim, size] : llvm::enumerate(dataShape))
    if (size == 0 && !op.isFeatureDim(dim))
      return true;
  return false;
}

/// M of input as an i64.
Value GradientBuilder::buildCount() {
  int64_t known = 1;
  for (auto [dim, size] : llvm::enumerate(dataShape))
    if (!op.isFeatureDim(dim) && !ShapedType::isDynamic(size))
      known *= size;
  if (known == 0)
    return arith::ConstantIntOp::create(b, loc, 0, 64);
  Value count = arith::ConstantIndexOp::create(b, loc, known);
  for (auto [dim, size] : llvm::enumerate(dataShape))
    if (!op.isFeatureDim(dim) && ShapedType::isDynamic(size))
      count = b.createOrFold<arith::MulIOp>(loc, count, sizeOfInput(dim));
  return b.createOrFold<arith::IndexCastOp>(loc, b.getI64Type(), count);
}

Value GradientBuilder::buildCountTensor() {
  return tensor::FromElementsOp::create(
      b, loc, RankedTensorType::get({}, b.getI64Type()), buildCount());
}

/// M as an i64.
ElementCount GradientBuilder::countOfInteger(Value count) {
  if (std::optional<int64_t> known = getConstantIntValue(count))
    return {known, Value(), Value()};
  Value zero = arith::ConstantIntOp::create(b, loc, 0, 64);
  Value one = arith::ConstantIntOp::create(b, loc, 1, 64);
  Value isZero =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, count, zero);
  Value divisor = arith::MaxSIOp::create(b, loc, count, one);
  return {std::nullopt, isZero, arith::SIToFPOp::create(b, loc, type, divisor)};
}

ElementCount GradientBuilder::countOfInput() {
  return countOfInteger(buildCount());
}

ElementCount GradientBuilder::countOf(Value count) {
  return countOfInteger(
      b.createOrFold<tensor::ExtractOp>(loc, count, ValueRange()));
}

ChannelSums GradientBuilder::buildSums(bool needsSumDy, bool needsSumDyXmu) {
  if (!needsSumDy && !needsSumDyXmu)
    return {};
  SmallVector<Value> inputs = {getOperand(Role::GradOutput)};
  SmallVector<AffineMap> maps = {dataMap()};
  if (getOperand(Role::Mask)) {
    inputs.push_back(getOperand(Role::Mask));
    maps.push_back(dataMap());
  }
  if (needsSumDyXmu) {
    inputs.append({getOperand(Role::Input), getOperand(Role::Mean)});
    maps.append({dataMap(), featureMap()});
  }
  // Each sum has its own init, as bufferization would copy a shared one.
  SmallVector<Value> outputs;
  unsigned numSums = needsSumDy + needsSumDyXmu;
  while (outputs.size() < numSums)
    outputs.push_back(buildZeroChannel(type));
  maps.append(numSums, featureMap());
  SmallVector<utils::IteratorType> iterators;
  for (int64_t dim : llvm::seq<int64_t>(dataShape.size()))
    iterators.push_back(op.isFeatureDim(dim) ? utils::IteratorType::parallel
                                             : utils::IteratorType::reduction);

  auto body = [&](OpBuilder &builder, Location, ValueRange args) {
    Arithmetic math{builder, loc, type};
    unsigned next = 0;
    Value gradOutput = args[next++];
    Value mask = getOperand(Role::Mask) ? args[next++] : Value();
    gradOutput = math.masked(gradOutput, mask);
    SmallVector<Value> terms;
    if (needsSumDy)
      terms.push_back(gradOutput);
    if (needsSumDyXmu) {
      Value input = math.extend(args[next++]);
      Value centered = math.sub(input, math.extend(args[next++]));
      terms.push_back(math.mul(gradOutput, centered));
    }
    SmallVector<Value> sums;
    for (Value term : terms)
      sums.push_back(math.accumulate(args[next++], term));
    linalg::YieldOp::create(builder, loc, sums);
  };
  auto generic =
      linalg::GenericOp::create(b, loc, TypeRange(ValueRange(outputs)), inputs,
                                outputs, maps, iterators, body);
  ChannelSums sums;
  unsigned next = 0;
  if (needsSumDy)
    sums.sumDy = generic.getResult(next++);
  if (needsSumDyXmu)
    sums.sumDyXmu = generic.getResult(next);
  return sums;
}

/// Row `row` of a tensor of stacked sums: offsets, sizes and strides.
static std::array<SmallVector<OpFoldResult>, 3>
rowOf(OpBuilder &b, int64_t row, ArrayRef<OpFoldResult> channelSizes) {
  SmallVector<OpFoldResult> offsets(channelSizes.size() + 1, b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(channelSizes.size() + 1, b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes = {b.getIndexAttr(1)};
  llvm::append_range(sizes, channelSizes);
  offsets[0] = b.getIndexAttr(row);
  return {offsets, sizes, strides};
}

Value GradientBuilder::buildStackedSums() {
  SmallVector<OpFoldResult> sizes = channelSizes();
  SmallVector<OpFoldResult> stackedSizes = {b.getIndexAttr(2)};
  llvm::append_range(stackedSizes, sizes);
  Value stacked = tensor::EmptyOp::create(b, loc, stackedSizes, type);
  if (isCountZero() || hasNoChannels()) {
    Value zero = arith::ConstantOp::create(b, loc, b.getFloatAttr(type, 0.0));
    return linalg::FillOp::create(b, loc, zero, stacked).getResult(0);
  }
  ChannelSums sums = buildSums(true, true);
  for (auto [row, sum] :
       llvm::enumerate(ArrayRef({sums.sumDy, sums.sumDyXmu}))) {
    auto [offsets, rowSizes, strides] = rowOf(b, row, sizes);
    stacked = tensor::InsertSliceOp::create(b, loc, sum, stacked, offsets,
                                            rowSizes, strides);
  }
  return stacked;
}

ChannelSums GradientBuilder::unstackSums(Value sums) {
  auto elementType = getElementTypeOrSelf(sums);
  // An offset into an empty dim is an error, even for an empty slice.
  if (hasNoChannels())
    return {buildEmptyChannel(elementType), buildEmptyChannel(elementType)};
  auto rowType = RankedTensorType::get(channelShape, elementType);
  SmallVector<OpFoldResult> sizes = channelSizes();
  auto extract = [&](int64_t row) -> Value {
    auto [offsets, rowSizes, strides] = rowOf(b, row, sizes);
    return tensor::ExtractSliceOp::create(b, loc, rowType, sums, offsets,
                                          rowSizes, strides);
  };
  return {extract(0), extract(1)};
}

/// r.
static Value buildInvStd(const Arithmetic &math, GradientOpInterface op,
                         Value statistic) {
  Value invStd = math.extend(statistic);
  if (op.getOperandOf(Role::Variance)) {
    Value epsilon = math.constant(op.getEpsilon().convertToDouble());
    invStd = math.div(math.constant(1.0), math.sqrt(math.add(invStd, epsilon)));
  }
  return invStd;
}

static Value buildGradScale(const Arithmetic &math, Value sumDyXmu,
                            Value invStd, const ElementCount &count) {
  Value product = math.mul(math.extend(sumDyXmu), invStd);
  // Without elements the sum is 0, but 0 * r may not be.
  Value zero = math.constant(0.0);
  if (count.known == 0)
    return zero;
  if (!count.isZero)
    return product;
  return arith::SelectOp::create(math.b, math.loc, count.isZero, zero, product);
}

ChannelValues GradientBuilder::buildChannel(const ChannelRequest &request,
                                            ChannelSums sums,
                                            const ElementCount &count) {
  bool needsMeans = request.gradInput && request.isBatch;
  bool needsInvStd = request.gradInput || request.gradScale;

  SmallVector<Value> inputs;
  auto addInput = [&](Value value, bool needed) -> int64_t {
    if (!value || !needed)
      return -1;
    inputs.push_back(value);
    return inputs.size() - 1;
  };
  int64_t sumDyArg =
      addInput(sums.sumDy, needsMeans || request.gradOffset != nullptr);
  int64_t sumDyXmuArg =
      addInput(sums.sumDyXmu, needsMeans || request.gradScale != nullptr);
  int64_t scaleArg = addInput(getOperand(Role::Scale), request.gradInput);
  int64_t statisticArg = addInput(op.getStatistic(), needsInvStd);

  // (element type of the result, the field that receives it)
  ChannelValues values;
  SmallVector<std::pair<FloatType, Value *>> outputs;
  if (request.gradInput)
    outputs.push_back({type, &values.factor});
  if (needsMeans)
    outputs.append({{type, &values.meanDy}, {type, &values.slope}});
  if (request.gradScale)
    outputs.push_back({request.gradScale, &values.gradScale});
  if (request.gradOffset)
    outputs.push_back({request.gradOffset, &values.gradOffset});
  if (outputs.empty())
    return values;
  SmallVector<Value> inits;
  for (auto [outputType, _] : outputs)
    inits.push_back(buildEmptyChannel(outputType));

  auto body = [&](OpBuilder &builder, Location, ValueRange args) {
    Arithmetic math{builder, loc, type};
    Value invStd;
    if (needsInvStd)
      invStd = buildInvStd(math, op, args[statisticArg]);
    Value divisor = count.divisor;
    if (count.known)
      divisor = math.constant(std::max<double>(*count.known, 1));

    SmallVector<Value> results;
    if (request.gradInput)
      results.push_back(scaleArg < 0
                            ? invStd
                            : math.mul(math.extend(args[scaleArg]), invStd));
    if (needsMeans) {
      results.push_back(math.div(math.extend(args[sumDyArg]), divisor));
      Value meanDyXmu = math.div(math.extend(args[sumDyXmuArg]), divisor);
      results.push_back(math.mul(math.mul(meanDyXmu, invStd), invStd));
    }
    if (request.gradScale)
      results.push_back(buildGradScale(math, args[sumDyXmuArg], invStd, count));
    if (request.gradOffset)
      results.push_back(math.extend(args[sumDyArg]));
    for (auto &&[result, output] : llvm::zip_equal(results, outputs))
      result = convertFloat(builder, loc, result, output.first);
    linalg::YieldOp::create(builder, loc, results);
  };
  SmallVector<AffineMap> maps(inputs.size() + outputs.size(), channelMap());
  SmallVector<utils::IteratorType> iterators(channelShape.size(),
                                             utils::IteratorType::parallel);
  auto generic =
      linalg::GenericOp::create(b, loc, TypeRange(ValueRange(inits)), inputs,
                                inits, maps, iterators, body);
  for (auto [output, result] : llvm::zip_equal(outputs, generic.getResults()))
    *output.second = result;
  return values;
}

Value GradientBuilder::buildGradInput(const ChannelValues &channel,
                                      FloatType elementType) {
  SmallVector<Value> inputs = {getOperand(Role::GradOutput)};
  SmallVector<AffineMap> maps = {dataMap()};
  auto addInput = [&](Value value, AffineMap map) {
    inputs.push_back(value);
    maps.push_back(map);
  };
  if (getOperand(Role::Mask))
    addInput(getOperand(Role::Mask), dataMap());
  addInput(channel.factor, featureMap());
  if (channel.meanDy) {
    addInput(getOperand(Role::Input), dataMap());
    addInput(getOperand(Role::Mean), featureMap());
    addInput(channel.meanDy, featureMap());
    addInput(channel.slope, featureMap());
  }
  Value init = buildEmptyData(elementType);
  maps.push_back(dataMap());

  auto body = [&](OpBuilder &builder, Location, ValueRange args) {
    Arithmetic math{builder, loc, type};
    unsigned next = 0;
    Value gradOutput = args[next++];
    Value mask = getOperand(Role::Mask) ? args[next++] : Value();
    Value factor = args[next++];
    Value result = math.masked(gradOutput, mask);
    if (channel.meanDy) {
      Value input = math.extend(args[next++]);
      Value centered = math.sub(input, math.extend(args[next++]));
      result = math.sub(result, args[next++]);
      result = math.sub(result, math.mul(centered, args[next++]));
    }
    result = math.mul(factor, result);
    linalg::YieldOp::create(builder, loc,
                            convertFloat(builder, loc, result, elementType));
  };
  SmallVector<utils::IteratorType> iterators(dataShape.size(),
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, init.getType(), inputs, init, maps,
                                   iterators, body)
      .getResult(0);
}
