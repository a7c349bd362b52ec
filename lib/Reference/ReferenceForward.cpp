//===- ReferenceForward.cpp - ground truth of the forward pass ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReferenceParts.h"

namespace bngrad {

static constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

/// Calls `body(index, channel)` for every element of input, row-major.
template <typename Body>
static void forEachElement(const ReferenceProblem &problem, Body body) {
  forEachElement(collapse(problem.shape, problem.featureDims), body);
}

static Real loadInput(const ReferenceProblem &problem, int64_t index) {
  return load(problem, Role::Input, index);
}

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

namespace {
/// The statistics of a channel, and what their bounds depend on.
struct ChannelStatistics {
  CompensatedSum sum, sumXmu, sumSquares;
  Real least = kInfinity, greatest = -kInfinity;
  /// The mean is mean + meanError: one Real is not exact enough for f64 data
  /// that are far from 0 relative to their spread.
  Real mean = 0, meanError = 0, variance = 0;

  bool isConstant() const {
    return least == greatest && std::isfinite(sum.sum);
  }
  Real centered(Real x) const { return (x - mean) - meanError; }
};
} // namespace

static std::vector<ChannelStatistics>
computeStatistics(const ReferenceProblem &problem, int64_t numChannels,
                  Real count) {
  std::vector<ChannelStatistics> channels(static_cast<size_t>(numChannels));
  forEachElement(problem, [&](int64_t index, int64_t channel) {
    ChannelStatistics &c = channels[channel];
    Real x = loadInput(problem, index);
    c.sum.add(x);
    c.least = std::min(c.least, x);
    c.greatest = std::max(c.greatest, x);
  });
  for (ChannelStatistics &c : channels)
    c.mean = c.isConstant() ? c.least : c.sum.get() / count;
  forEachElement(problem, [&](int64_t index, int64_t channel) {
    ChannelStatistics &c = channels[channel];
    Real xmu = loadInput(problem, index) - c.mean;
    c.sumXmu.add(xmu);
    c.sumSquares.add(xmu * xmu);
  });
  for (ChannelStatistics &c : channels) {
    Real error = c.sumXmu.get() / count;
    c.variance = c.sumSquares.get() / count - error * error;
    if (std::isfinite(error))
      c.meanError = error;
    if (c.variance < 0)
      c.variance = 0;
  }
  return channels;
}

namespace {
/// The bounds of the statistics of a channel.
struct StatisticsBounds {
  /// The square root of A_var, which bounds the sum that corrects the mean; 0
  /// if all elements are equal.
  Real root = 0;
  Real absVariance = 0; // A_var
  /// 1 + A_var/(variance + epsilon).
  Real relative = 1;

  /// Where the sums may overflow, and for inv_std where the variance may be
  /// far off, there is no bound: these values are infinite.
  StatisticsBounds(const ReferenceProblem &problem, const ChannelStatistics &c,
                   Real count, Real accumulated) {
    if (c.isConstant())
      return;
    ElementType type = accumulatorType(problem);
    Real most = static_cast<Real>(largestFinite(type)) / 2;
    Real meanError = accumulated * std::sqrt(c.mean * c.mean + c.variance);
    root = std::sqrt(c.variance) + 2 * meanError;
    // Squares below the smallest number are lost.
    absVariance = root * root + smallestSubnormal(type) / accumulated;
    Real sum = c.variance + roundedEpsilon(problem);
    relative = accumulated * absVariance <= sum / 2 ? 1 + absVariance / sum
                                                    : kInfinity;
    if (count * (c.greatest - c.least) > most)
      root = absVariance = relative = kInfinity;
    if (c.sumSquares.get() > most)
      absVariance = relative = kInfinity;
  }
};
} // namespace

ReferenceTraining computeReferenceTraining(const ReferenceProblem &problem) {
  auto [numChannels, perChannel] = Sizes(problem);
  ReferenceTraining results;
  resize(results.output, numChannels * perChannel);
  resize(results.mean, numChannels);
  resize(results.variance, numChannels);
  resize(results.invStd, numChannels);
  Bound outputBound(problem, Role::Output, perChannel);
  Bound meanBound(problem, Role::Mean, perChannel);
  Bound varianceBound(problem, Role::Variance, perChannel);
  Bound invStdBound(problem, Role::InvStd, perChannel);
  Real accumulated = meanBound.accumulated;
  Real roundoff = accumulatorRoundoff(problem);
  Real epsilon = roundedEpsilon(problem);

  std::vector<ChannelStatistics> channels(static_cast<size_t>(numChannels));
  Real count = static_cast<Real>(std::max<int64_t>(perChannel, 1));
  bool isEmpty = numChannels == 0 || perChannel == 0;
  if (!isEmpty)
    channels = computeStatistics(problem, numChannels, count);
  else
    for (ChannelStatistics &c : channels)
      c.least = c.greatest = 0;

  std::vector<StatisticsBounds> bounds;
  for (int64_t channel = 0; channel < numChannels; ++channel) {
    const ChannelStatistics &c = channels[channel];
    const StatisticsBounds &b =
        bounds.emplace_back(problem, c, count, accumulated);
    auto store = [&](ReferenceResult &result, Real exact, double bound) {
      result.value[channel] = static_cast<double>(exact);
      result.bound[channel] = bound;
    };
    Real invStd = 1 / std::sqrt(c.variance + epsilon);
    Real mean = c.mean + c.meanError;
    // The bound covers the error of the sum that corrects the mean, and the
    // rounding of the mean to the accumulator type.
    store(
        results.mean, mean,
        meanBound(mean, b.root + roundoff * std::fabs(mean) / accumulated, 0));
    store(results.variance, c.variance,
          varianceBound(c.variance, b.absVariance, 0));
    store(results.invStd, invStd,
          invStdBound(invStd, std::isinf(invStd) ? 0 : invStd * b.relative, 0));
  }
  if (isEmpty)
    return results;

  forEachElement(problem, [&](int64_t i, int64_t channel) {
    const ChannelStatistics &c = channels[channel];
    const StatisticsBounds &b = bounds[channel];
    Parameter scale = loadParameter(problem, Role::Scale, channel, 1);
    Parameter offset = loadParameter(problem, Role::Offset, channel);
    Real invStd = 1 / std::sqrt(c.variance + epsilon);
    Real xmu = c.centered(loadInput(problem, i));
    Real exact = xmu * (scale.value * invStd) + offset.value;
    Real absolute = 0;
    // A of the scale that is furthest from 0.
    if (!c.isConstant())
      absolute = effect((std::fabs(scale.value) + scale.error) * invStd,
                        effect(xmu, b.relative) + std::sqrt(b.absVariance) +
                            roundoff * std::fabs(c.mean)) +
                 std::fabs(offset.value);
    Real error = effect(xmu * invStd, scale.error) + offset.error;
    results.output.value[i] = static_cast<double>(exact);
    results.output.bound[i] = outputBound(exact, absolute, error);
  });
  return results;
}

//===----------------------------------------------------------------------===//
// Inference and moments
//===----------------------------------------------------------------------===//

ReferenceResult computeReferenceInference(const ReferenceProblem &problem) {
  auto [numChannels, perChannel] = Sizes(problem);
  ReferenceResult result;
  resize(result, numChannels * perChannel);
  if (result.value.empty())
    return result;
  Bound bound(problem, Role::Output, /*count=*/0);
  forEachElement(problem, [&](int64_t i, int64_t channel) {
    Parameter mean = loadParameter(problem, Role::Mean, channel);
    Parameter offset = loadParameter(problem, Role::Offset, channel);
    Parameter factor =
        multiply(loadParameter(problem, Role::Scale, channel, /*absent=*/1),
                 loadInvStd(problem, channel));
    Parameter product =
        multiply({loadInput(problem, i) - mean.value, mean.error}, factor);
    Real exact = product.value + offset.value;
    result.value[i] = static_cast<double>(exact);
    result.bound[i] =
        bound(exact, std::fabs(product.value) + std::fabs(offset.value),
              product.error + offset.error);
  });
  return result;
}

ReferenceMoments computeReferenceMoments(const ReferenceProblem &problem) {
  auto [numChannels, perChannel] = Sizes(problem);
  ReferenceMoments results;
  resize(results.sum, numChannels);
  resize(results.squareSum, numChannels);
  Bound sumBound(problem, Role::Sum, perChannel);
  Bound squareSumBound(problem, Role::SquareSum, perChannel);
  struct Sums {
    CompensatedSum sum, squares;
    Real absSum = 0;
  };
  std::vector<Sums> channels(static_cast<size_t>(numChannels));
  if (numChannels != 0 && perChannel != 0)
    forEachElement(problem, [&](int64_t i, int64_t channel) {
      Sums &c = channels[channel];
      Real shifted = loadInput(problem, i) -
                     loadParameter(problem, Role::Shift, channel).value;
      c.sum.add(shifted);
      c.squares.add(shifted * shifted);
      c.absSum += std::fabs(shifted);
    });
  for (int64_t channel = 0; channel < numChannels; ++channel) {
    const Sums &c = channels[channel];
    Real sum = c.sum.get(), squares = c.squares.get();
    Real error = loadParameter(problem, Role::Shift, channel).error;
    Real sumError = effect(static_cast<Real>(perChannel), error);
    results.sum.value[channel] = static_cast<double>(sum);
    results.sum.bound[channel] = sumBound(sum, c.absSum, sumError);
    results.squareSum.value[channel] = static_cast<double>(squares);
    results.squareSum.bound[channel] = squareSumBound(
        squares, squares, effect(2 * c.absSum + sumError, error));
  }
  return results;
}

} // namespace bngrad
