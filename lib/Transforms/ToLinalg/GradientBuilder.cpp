//===- GradientBuilder.cpp - formulas of the gradient ---------------------===//
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
// is never folded away: mean may be large compared with the spread of input.
//
//===----------------------------------------------------------------------===//

#include "GradientBuilder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::bngrad;

/// grad_output, but 0 where `mask` (null if none) is false.
static Value buildMasked(const Arithmetic &math, Value gradOutput, Value mask) {
  Value value = math.extend(gradOutput);
  if (!mask)
    return value;
  return arith::SelectOp::create(math.b, math.loc, mask, value,
                                 math.constant(0.0));
}

ChannelSums GradientBuilder::buildSums(bool needsSumDy, bool needsSumDyXmu) {
  if (!needsSumDy && !needsSumDyXmu)
    return {};
  GenericInputs inputs;
  inputs.add(getOperand(Role::GradOutput), dataMap());
  if (getOperand(Role::Mask))
    inputs.add(getOperand(Role::Mask), dataMap());
  if (needsSumDyXmu) {
    inputs.add(getOperand(Role::Input), dataMap());
    inputs.add(getOperand(Role::Mean), featureMap());
  }
  auto buildTerms = [&](const Arithmetic &math, ValueRange args) {
    unsigned next = 0;
    Value gradOutput = args[next++];
    Value mask = getOperand(Role::Mask) ? args[next++] : Value();
    gradOutput = buildMasked(math, gradOutput, mask);
    SmallVector<Value> terms;
    if (needsSumDy)
      terms.push_back(gradOutput);
    if (needsSumDyXmu) {
      Value input = math.extend(args[next++]);
      Value centered = math.sub(input, math.extend(args[next++]));
      terms.push_back(math.mul(gradOutput, centered));
    }
    return terms;
  };
  SmallVector<Value> results =
      buildReduction(inputs, needsSumDy + needsSumDyXmu, buildTerms);
  ChannelSums sums;
  if (needsSumDy)
    sums.sumDy = results.front();
  if (needsSumDyXmu)
    sums.sumDyXmu = results.back();
  return sums;
}

Value GradientBuilder::buildStackedSums() {
  if (isCountZero() || hasNoChannels())
    return stack({});
  ChannelSums sums = buildSums(true, true);
  return stack({sums.sumDy, sums.sumDyXmu});
}

ChannelSums GradientBuilder::unstackSums(Value sums) {
  auto [sumDy, sumDyXmu] = unstack(sums);
  return {sumDy, sumDyXmu};
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

  ChannelValues values;
  SmallVector<ChannelOutput> outputs;
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
  auto buildValues = [&](const Arithmetic &math, ValueRange args) {
    Value invStd;
    if (needsInvStd)
      invStd = invStdOf(math, args[statisticArg]);
    SmallVector<Value> results;
    if (request.gradInput)
      results.push_back(scaleArg < 0
                            ? invStd
                            : math.mul(math.extend(args[scaleArg]), invStd));
    if (needsMeans) {
      Value divisor = math.divisor(count);
      results.push_back(math.div(math.extend(args[sumDyArg]), divisor));
      Value meanDyXmu = math.div(math.extend(args[sumDyXmuArg]), divisor);
      results.push_back(math.mul(math.mul(meanDyXmu, invStd), invStd));
    }
    if (request.gradScale)
      results.push_back(buildGradScale(math, args[sumDyXmuArg], invStd, count));
    if (request.gradOffset)
      results.push_back(math.extend(args[sumDyArg]));
    return results;
  };
  buildChannelwise(inputs, outputs, buildValues);
  return values;
}

Value GradientBuilder::buildGradInput(const ChannelValues &channel,
                                      FloatType elementType) {
  GenericInputs inputs;
  inputs.add(getOperand(Role::GradOutput), dataMap());
  if (getOperand(Role::Mask))
    inputs.add(getOperand(Role::Mask), dataMap());
  inputs.add(channel.factor, featureMap());
  if (channel.meanDy) {
    inputs.add(getOperand(Role::Input), dataMap());
    inputs.add(getOperand(Role::Mean), featureMap());
    inputs.add(channel.meanDy, featureMap());
    inputs.add(channel.slope, featureMap());
  }
  return buildElementwise(
      inputs, elementType, [&](const Arithmetic &math, ValueRange args) {
        unsigned next = 0;
        Value gradOutput = args[next++];
        Value mask = getOperand(Role::Mask) ? args[next++] : Value();
        Value factor = args[next++];
        Value result = buildMasked(math, gradOutput, mask);
        if (channel.meanDy) {
          Value input = math.extend(args[next++]);
          Value centered = math.sub(input, math.extend(args[next++]));
          result = math.sub(result, args[next++]);
          result = math.sub(result, math.mul(centered, args[next++]));
        }
        return math.mul(factor, result);
      });
}
