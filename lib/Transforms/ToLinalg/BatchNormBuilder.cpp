//===- BatchNormBuilder.cpp - linalg of data and channels -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BatchNormBuilder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::bngrad;

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value Arithmetic::accumulate(Value sum, Value term) const {
  return arith::AddFOp::create(b, loc, sum, term,
                               flags | arith::FastMathFlags::reassoc);
}

Value Arithmetic::selectUnlessNaN(Value tested, Value value,
                                  Value otherwise) const {
  Value isNaN =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, tested, tested);
  return arith::SelectOp::create(b, loc, isNaN, otherwise, value);
}

Value Arithmetic::invStd(Value variance, Value epsilon) const {
  Value sum = add(variance, epsilon);
  return div(constant(1.0), math::SqrtOp::create(b, loc, sum));
}

Value Arithmetic::divisor(const ElementCount &count) const {
  return count.known ? constant(std::max<double>(*count.known, 1))
                     : count.divisor;
}

Value Arithmetic::number(const ElementCount &count) const {
  if (count.known)
    return constant(*count.known);
  return arith::SelectOp::create(b, loc, count.isZero, constant(0.0),
                                 count.divisor);
}

//===----------------------------------------------------------------------===//
// Shapes and M
//===----------------------------------------------------------------------===//

BatchNormBuilder::BatchNormBuilder(OpBuilder &b, BatchNormOpInterface op)
    : b(b), op(op), loc(op.getLoc()), dataShape(op.getDataShape()),
      type(op.getAccumulatorType()) {
  for (int64_t dim : op.getFeatureDims())
    channelShape.push_back(dataShape[dim]);
}

AffineMap BatchNormBuilder::dataMap() {
  return b.getMultiDimIdentityMap(dataShape.size());
}

/// The map from the loops over the data to the channel.
AffineMap BatchNormBuilder::featureMap() {
  SmallVector<AffineExpr> exprs;
  for (int64_t dim : op.getFeatureDims())
    exprs.push_back(b.getAffineDimExpr(dim));
  return AffineMap::get(dataShape.size(), 0, exprs, b.getContext());
}

AffineMap BatchNormBuilder::channelMap() {
  return b.getMultiDimIdentityMap(channelShape.size());
}

Value BatchNormBuilder::sizeOfInput(int64_t dim) {
  return b.createOrFold<tensor::DimOp>(loc, getOperand(Role::Input), dim);
}

SmallVector<OpFoldResult> BatchNormBuilder::channelSizes() {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::zip_equal(op.getFeatureDims(), channelShape))
    sizes.push_back(ShapedType::isDynamic(size)
                        ? OpFoldResult(sizeOfInput(dim))
                        : OpFoldResult(b.getIndexAttr(size)));
  return sizes;
}

Value BatchNormBuilder::buildEmptyData(Type elementType) {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::enumerate(dataShape))
    sizes.push_back(ShapedType::isDynamic(size)
                        ? OpFoldResult(sizeOfInput(dim))
                        : OpFoldResult(b.getIndexAttr(size)));
  return tensor::EmptyOp::create(b, loc, sizes, elementType);
}

Value BatchNormBuilder::buildEmptyChannel(Type elementType) {
  return tensor::EmptyOp::create(b, loc, channelSizes(), elementType);
}

Value BatchNormBuilder::buildUniformChannel(FloatType elementType,
                                            double value) {
  Value element =
      arith::ConstantOp::create(b, loc, b.getFloatAttr(elementType, value));
  return linalg::FillOp::create(b, loc, element, buildEmptyChannel(elementType))
      .getResult(0);
}

bool BatchNormBuilder::isCountZero() {
  for (auto [dim, size] : llvm::enumerate(dataShape))
    if (size == 0 && !op.isFeatureDim(dim))
      return true;
  return false;
}

/// M of input as an i64.
Value BatchNormBuilder::buildCount() {
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

Value BatchNormBuilder::buildCountTensor() {
  return tensor::FromElementsOp::create(
      b, loc, RankedTensorType::get({}, b.getI64Type()), buildCount());
}

/// M as an i64.
ElementCount BatchNormBuilder::countOfInteger(Value count,
                                              FloatType floatType) {
  if (std::optional<int64_t> known = getConstantIntValue(count))
    return {known, Value(), Value()};
  Value zero = arith::ConstantIntOp::create(b, loc, 0, 64);
  Value one = arith::ConstantIntOp::create(b, loc, 1, 64);
  Value isZero =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, count, zero);
  Value divisor = arith::MaxSIOp::create(b, loc, count, one);
  return {
      std::nullopt, isZero,
      arith::SIToFPOp::create(b, loc, floatType ? floatType : type, divisor)};
}

ElementCount BatchNormBuilder::countOfInput(FloatType floatType) {
  return countOfInteger(buildCount(), floatType);
}

ElementCount BatchNormBuilder::countOf(Value count, FloatType floatType) {
  return countOfInteger(
      b.createOrFold<tensor::ExtractOp>(loc, count, ValueRange()), floatType);
}

//===----------------------------------------------------------------------===//
// Stacked sums
//===----------------------------------------------------------------------===//

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

Value BatchNormBuilder::stack(ArrayRef<Value> sums) {
  SmallVector<OpFoldResult> sizes = channelSizes();
  SmallVector<OpFoldResult> stackedSizes = {b.getIndexAttr(2)};
  llvm::append_range(stackedSizes, sizes);
  Value stacked = tensor::EmptyOp::create(b, loc, stackedSizes, type);
  if (hasNoChannels() || sums.empty()) {
    Value zero = arith::ConstantOp::create(b, loc, b.getFloatAttr(type, 0.0));
    return linalg::FillOp::create(b, loc, zero, stacked).getResult(0);
  }
  for (auto [row, sum] : llvm::enumerate(sums)) {
    auto [offsets, rowSizes, strides] = rowOf(b, row, sizes);
    stacked = tensor::InsertSliceOp::create(b, loc, sum, stacked, offsets,
                                            rowSizes, strides);
  }
  return stacked;
}

std::array<Value, 2> BatchNormBuilder::unstack(Value stacked) {
  auto elementType = getElementTypeOrSelf(stacked);
  // An offset into an empty dim is an error, even for an empty slice.
  if (hasNoChannels())
    return {buildEmptyChannel(elementType), buildEmptyChannel(elementType)};
  auto rowType = RankedTensorType::get(channelShape, elementType);
  SmallVector<OpFoldResult> sizes = channelSizes();
  auto extract = [&](int64_t row) -> Value {
    auto [offsets, rowSizes, strides] = rowOf(b, row, sizes);
    return tensor::ExtractSliceOp::create(b, loc, rowType, stacked, offsets,
                                          rowSizes, strides);
  };
  return {extract(0), extract(1)};
}

//===----------------------------------------------------------------------===//
// Generics
//===----------------------------------------------------------------------===//

SmallVector<Value> BatchNormBuilder::buildReduction(const GenericInputs &inputs,
                                                    unsigned numSums,
                                                    ValuesFn terms) {
  // Each sum has its own init, as bufferization would copy a shared one.
  SmallVector<Value> inits;
  while (inits.size() < numSums)
    inits.push_back(buildZeroChannel(type));
  SmallVector<AffineMap> maps = inputs.maps;
  maps.append(numSums, featureMap());
  SmallVector<utils::IteratorType> iterators;
  for (int64_t dim : llvm::seq<int64_t>(dataShape.size()))
    iterators.push_back(op.isFeatureDim(dim) ? utils::IteratorType::parallel
                                             : utils::IteratorType::reduction);

  auto body = [&](OpBuilder &builder, Location, ValueRange args) {
    Arithmetic math{builder, loc, type};
    SmallVector<Value> sums = terms(math, args.drop_back(numSums));
    for (auto [sum, accumulator] :
         llvm::zip_equal(sums, args.take_back(numSums)))
      sum = math.accumulate(accumulator, sum);
    linalg::YieldOp::create(builder, loc, sums);
  };
  return linalg::GenericOp::create(b, loc, TypeRange(ValueRange(inits)),
                                   inputs.values, inits, maps, iterators, body)
      .getResults();
}

SmallVector<Value> BatchNormBuilder::buildChannelwise(ValueRange inputs,
                                                      ArrayRef<FloatType> types,
                                                      ValuesFn values) {
  SmallVector<Value> inits;
  for (FloatType resultType : types)
    inits.push_back(buildEmptyChannel(resultType));
  SmallVector<AffineMap> maps(inputs.size() + types.size(), channelMap());
  SmallVector<utils::IteratorType> iterators(channelShape.size(),
                                             utils::IteratorType::parallel);
  auto body = [&](OpBuilder &builder, Location, ValueRange args) {
    Arithmetic math{builder, loc, type};
    SmallVector<Value> results = values(math, args.drop_back(types.size()));
    for (auto [result, resultType] : llvm::zip_equal(results, types))
      result = math.convert(result, resultType);
    linalg::YieldOp::create(builder, loc, results);
  };
  return linalg::GenericOp::create(b, loc, TypeRange(ValueRange(inits)), inputs,
                                   inits, maps, iterators, body)
      .getResults();
}

void BatchNormBuilder::buildChannelwise(ValueRange inputs,
                                        ArrayRef<ChannelOutput> outputs,
                                        ValuesFn values) {
  SmallVector<FloatType> types = llvm::map_to_vector(
      outputs, [](const ChannelOutput &output) { return output.type; });
  for (auto [output, result] :
       llvm::zip_equal(outputs, buildChannelwise(inputs, types, values)))
    *output.field = result;
}

Value BatchNormBuilder::buildElementwise(const GenericInputs &inputs,
                                         FloatType elementType, ValueFn value) {
  Value init = buildEmptyData(elementType);
  SmallVector<AffineMap> maps = inputs.maps;
  maps.push_back(dataMap());
  SmallVector<utils::IteratorType> iterators(dataShape.size(),
                                             utils::IteratorType::parallel);
  auto body = [&](OpBuilder &builder, Location, ValueRange args) {
    Arithmetic math{builder, loc, type};
    Value result = value(math, args.drop_back());
    linalg::YieldOp::create(builder, loc, math.convert(result, elementType));
  };
  return linalg::GenericOp::create(b, loc, init.getType(), inputs.values, init,
                                   maps, iterators, body)
      .getResult(0);
}

Value BatchNormBuilder::invStdOfVariance(const Arithmetic &math,
                                         Value variance) {
  if (auto function = op->getParentOfType<FunctionOpInterface>())
    for (BlockArgument argument : function.getArguments())
      if (function.getArgAttr(argument.getArgNumber(), kEpsilonArgAttrName))
        return math.invStd(variance, math.convert(argument, type));
  return math.invStd(variance,
                     math.constant(op.getEpsilon().convertToDouble()));
}

Value BatchNormBuilder::invStdOf(const Arithmetic &math, Value statistic) {
  Value value = math.extend(statistic);
  return getOperand(Role::Variance) ? invStdOfVariance(math, value) : value;
}
