//===- ForwardBuilder.cpp - formulas of the forward pass ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// docs/mathematics.md derives the formulas; docs/numerics.md has the error
// bounds. For each channel, with M elements and first element `first`:
//
//   center      = first + sum (input - first) / M       the mean, rounded
//   mean_error  = sum (input - center) / M
//   mean        = center + mean_error
//   variance    = max(sum (input - center)^2 / M - mean_error^2, 0)
//   inv_std     = 1/sqrt(variance + epsilon)
//   factor      = scale * inv_std
//   output      = (input - center) * factor + (offset - mean_error * factor)
//
// No sum cancels: `center` differs from the mean only by rounding. The sums
// about `first` make it exact if all elements are equal: then `input - center`
// is 0, and output is offset. Any finite number may replace `first`. If center
// is infinite, mean_error is NaN, and the mean is center.
//
// Parts of a batch have a count, a center and sums each:
//
//   M           = sum of count
//   center      = sum of part_center * count / M        in f64, rounded
//   distance    = part_center - center
//   sum         = sum of part_sum + count * distance
//   square_sum  = sum of part_square_sum
//                        + distance * (2 * part_sum + count * distance)
// A product of the center and the count of f32 data is exact in f64 if the
// count is below 2^29, so that `center` is exact if all elements are equal.
//
//===----------------------------------------------------------------------===//

#include "ForwardBuilder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::bngrad;

TrainingRequest TrainingRequest::get(BatchNormTrainingOp op,
                                     function_ref<bool(Value)> isUsed) {
  auto getType = [&](Value result) {
    return isUsed(result) ? cast<FloatType>(getElementTypeOrSelf(result))
                          : FloatType();
  };
  return {isUsed(op.getOutput()), getType(op.getMean()),
          getType(op.getVariance()), getType(op.getInvStd())};
}

ChannelMoments ForwardBuilder::buildMoments(Value center, bool needsSum,
                                            bool needsSquareSum) {
  if (!needsSum && !needsSquareSum)
    return {};
  GenericInputs inputs;
  inputs.add(getOperand(Role::Input), dataMap());
  if (center)
    inputs.add(center, featureMap());
  auto buildTerms = [&](const Arithmetic &math, ValueRange args) {
    Value centered = math.extend(args[0]);
    if (center)
      centered = math.sub(centered, math.extend(args[1]));
    SmallVector<Value> terms;
    if (needsSum)
      terms.push_back(centered);
    if (needsSquareSum)
      terms.push_back(math.mul(centered, centered));
    return terms;
  };
  SmallVector<Value> results =
      buildReduction(inputs, needsSum + needsSquareSum, buildTerms);
  ChannelMoments moments;
  if (needsSum)
    moments.sum = results.front();
  if (needsSquareSum)
    moments.squareSum = results.back();
  return moments;
}

Value ForwardBuilder::buildFirst(const ElementCount &count) {
  Value input = getOperand(Role::Input);
  auto buildElement = [&](const Arithmetic &math, ValueRange) {
    OpBuilder &nested = math.b;
    // A linalg.index is an index of the enclosing generic, whose loops are the
    // feature dims.
    SmallVector<Value> indices(dataShape.size(),
                               arith::ConstantIndexOp::create(nested, loc, 0));
    for (auto [i, dim] : llvm::enumerate(op.getFeatureDims()))
      indices[dim] = linalg::IndexOp::create(nested, loc, i);
    auto read = [&](OpBuilder &builder) -> Value {
      Arithmetic inner{builder, loc, type};
      Value element =
          inner.extend(tensor::ExtractOp::create(builder, loc, input, indices));
      return inner.selectUnlessNaN(inner.sub(element, element), element,
                                   inner.constant(0.0));
    };
    if (count.known)
      return SmallVector<Value>{read(nested)};
    Value zero = math.constant(0.0);
    auto branch = scf::IfOp::create(
        nested, loc, count.isZero,
        [&](OpBuilder &builder, Location) {
          scf::YieldOp::create(builder, loc, zero);
        },
        [&](OpBuilder &builder, Location) {
          scf::YieldOp::create(builder, loc, read(builder));
        });
    return SmallVector<Value>{branch.getResult(0)};
  };
  return buildChannelwise({}, {type}, buildElement).front();
}

Value ForwardBuilder::buildCenter(Value first, Value sum,
                                  const ElementCount &count) {
  auto buildValue = [&](const Arithmetic &math, ValueRange args) {
    Value mean = math.div(args[0], math.divisor(count));
    return SmallVector<Value>{math.add(args[1], mean)};
  };
  return buildChannelwise({sum, first}, {type}, buildValue).front();
}

/// The same arithmetic in f64.
static Arithmetic inF64(const Arithmetic &math) {
  return {math.b, math.loc, Float64Type::get(math.b.getContext())};
}

Value ForwardBuilder::buildWeightedCenter(Value partCenter) {
  FloatType f64 = b.getF64Type();
  ElementCount count = countOfInput(f64);
  auto buildValue = [&](const Arithmetic &math, ValueRange args) {
    Arithmetic wide = inF64(math);
    return SmallVector<Value>{
        wide.mul(wide.extend(args[0]), wide.number(count))};
  };
  return buildChannelwise(partCenter, {f64}, buildValue).front();
}

Value ForwardBuilder::buildWholeCenter(Value sum, const ElementCount &count) {
  auto buildValue = [&](const Arithmetic &math, ValueRange args) {
    Arithmetic wide = inF64(math);
    return SmallVector<Value>{wide.div(args[0], wide.divisor(count))};
  };
  return buildChannelwise(sum, {type}, buildValue).front();
}

ChannelMoments
ForwardBuilder::buildMovedMoments(Value center, Value partCenter,
                                  const ChannelMoments &moments) {
  ElementCount count = countOfInput();
  SmallVector<Value> inputs = {center, partCenter, moments.sum};
  ChannelMoments moved;
  SmallVector<ChannelOutput> outputs = {{type, &moved.sum}};
  if (moments.squareSum) {
    inputs.push_back(moments.squareSum);
    outputs.push_back({type, &moved.squareSum});
  }
  auto buildValues = [&](const Arithmetic &math, ValueRange args) {
    Value distance = math.sub(args[1], args[0]);
    Value shift = math.mul(math.number(count), distance);
    SmallVector<Value> results = {math.add(args[2], shift)};
    if (moments.squareSum) {
      Value twice = math.add(args[2], results.front());
      results.push_back(math.add(args[3], math.mul(distance, twice)));
    }
    return results;
  };
  buildChannelwise(inputs, outputs, buildValues);
  return moved;
}

TrainingValues ForwardBuilder::buildTraining(const TrainingRequest &request) {
  if (request.isEmpty())
    return {};
  ElementCount count = countOfInput();
  Value first = buildFirst(count);
  Value center =
      buildCenter(first, buildMoments(first, true, false).sum, count);
  // The mean is computed in two stages even if it is the only result.
  return buildChannel(request, center,
                      buildMoments(center, true, request.needsVariance()),
                      count);
}

TrainingValues ForwardBuilder::buildChannel(const TrainingRequest &request,
                                            Value center,
                                            const ChannelMoments &moments,
                                            const ElementCount &count) {
  TrainingValues values;
  values.center = center;
  bool needsVariance = request.needsVariance();
  SmallVector<Value> inputs = {values.center, moments.sum};
  if (needsVariance)
    inputs.push_back(moments.squareSum);
  auto addOperand = [&](Role role) -> int64_t {
    if (!request.output || !getOperand(role))
      return -1;
    inputs.push_back(getOperand(role));
    return inputs.size() - 1;
  };
  int64_t scaleArg = addOperand(Role::Scale);
  int64_t offsetArg = addOperand(Role::Offset);

  SmallVector<ChannelOutput> outputs;
  if (request.output)
    outputs.append({{type, &values.factor}, {type, &values.offset}});
  if (request.mean)
    outputs.push_back({request.mean, &values.mean});
  if (request.variance)
    outputs.push_back({request.variance, &values.variance});
  if (request.invStd)
    outputs.push_back({request.invStd, &values.invStd});
  auto buildValues = [&](const Arithmetic &math, ValueRange args) {
    Value divisor = math.divisor(count);
    Value meanError = math.div(args[1], divisor);
    Value variance, invStd;
    if (needsVariance) {
      variance =
          math.sub(math.div(args[2], divisor), math.mul(meanError, meanError));
      variance = math.max(variance, math.constant(0.0));
      invStd = invStdOfVariance(math, variance);
    }
    SmallVector<Value> results;
    if (request.output) {
      Value factor = invStd;
      if (scaleArg >= 0)
        factor = math.mul(math.extend(args[scaleArg]), invStd);
      Value offset =
          offsetArg < 0 ? math.constant(0.0) : math.extend(args[offsetArg]);
      // An infinite factor makes output infinite, as in (input - mean) *
      // factor.
      Value finite = math.selectUnlessNaN(math.sub(factor, factor), factor,
                                          math.constant(0.0));
      offset = math.sub(offset, math.mul(meanError, finite));
      results.append({factor, offset});
    }
    if (request.mean)
      results.push_back(math.selectUnlessNaN(
          meanError, math.add(args[0], meanError), args[0]));
    if (request.variance)
      results.push_back(variance);
    if (request.invStd)
      results.push_back(invStd);
    return results;
  };
  buildChannelwise(inputs, outputs, buildValues);
  return values;
}

TrainingValues
ForwardBuilder::buildTrainingOfNothing(const TrainingRequest &request) {
  TrainingValues values;
  if (request.mean)
    values.mean = buildZeroChannel(request.mean);
  if (request.variance)
    values.variance = buildZeroChannel(request.variance);
  auto buildInvStd = [&](const Arithmetic &math, ValueRange) {
    return SmallVector<Value>{invStdOfVariance(math, math.constant(0.0))};
  };
  if (request.invStd)
    values.invStd = buildChannelwise({}, {request.invStd}, buildInvStd).front();
  return values;
}

Value ForwardBuilder::buildFactor() {
  SmallVector<Value> inputs = {op.getStatistic()};
  if (Value scale = getOperand(Role::Scale))
    inputs.push_back(scale);
  auto buildValue = [&](const Arithmetic &math, ValueRange args) {
    Value factor = invStdOf(math, args[0]);
    if (args.size() > 1)
      factor = math.mul(math.extend(args[1]), factor);
    return SmallVector<Value>{factor};
  };
  return buildChannelwise(inputs, {type}, buildValue).front();
}

Value ForwardBuilder::buildOutput(const TrainingValues &channel,
                                  FloatType elementType) {
  GenericInputs inputs;
  inputs.add(getOperand(Role::Input), dataMap());
  inputs.add(channel.center, featureMap());
  inputs.add(channel.factor, featureMap());
  if (channel.offset)
    inputs.add(channel.offset, featureMap());
  return buildElementwise(
      inputs, elementType, [&](const Arithmetic &math, ValueRange args) {
        Value centered = math.sub(math.extend(args[0]), math.extend(args[1]));
        Value result = math.mul(centered, args[2]);
        if (channel.offset)
          result = math.add(result, math.extend(args[3]));
        return result;
      });
}
