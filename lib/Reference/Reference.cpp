//===- Reference.cpp - ground truth of the gradients ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReferenceParts.h"

namespace bngrad {

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

namespace {
struct ChannelSums {
  CompensatedSum dy;
  CompensatedSum dyXmu;
  Real absDy = 0;
  Real absDyXmu = 0;
  /// How far errors of grad_output, or of given sums, move the sums.
  Real errorDy = 0;
  Real errorDyXmu = 0;
};
} // namespace

static bool isMaskedOut(const ReferenceProblem &problem, int64_t index) {
  auto *mask = static_cast<const uint8_t *>(problem[Role::Mask].data);
  return mask && mask[index] == 0;
}

static Real loadGradOutput(const ReferenceProblem &problem, int64_t index) {
  return isMaskedOut(problem, index) ? 0
                                     : load(problem, Role::GradOutput, index);
}

static std::vector<ChannelSums> computeSums(const ReferenceProblem &problem,
                                            const std::vector<Loop> &loops,
                                            const std::vector<double> &mean) {
  std::vector<ChannelSums> sums(mean.size());
  auto loadTerms = [&](int64_t index, int64_t channel, Real &dy, Real &dyXmu) {
    dy = loadGradOutput(problem, index);
    Real x = load(problem, Role::Input, index);
    dyXmu = dy * (x - mean[channel]);
  };
  int64_t extent = loops[0].extent;
  if (loops[0].channelStride != 0) {
    forEachRun(loops, [&](int64_t begin, int64_t firstChannel) {
      for (int64_t i = 0; i < extent; ++i) {
        Real dy, dyXmu;
        loadTerms(begin + i, firstChannel + i, dy, dyXmu);
        ChannelSums &channelSums = sums[firstChannel + i];
        channelSums.dy.add(dy);
        channelSums.dyXmu.add(dyXmu);
        channelSums.absDy += std::fabs(dy);
        channelSums.absDyXmu += std::fabs(dyXmu);
      }
    });
    return sums;
  }
  forEachRun(loops, [&](int64_t begin, int64_t channel) {
    ChannelSums &channelSums = sums[channel];
    for (int64_t block = 0; block < extent; block += kBlock) {
      Real sumDy = 0, sumDyXmu = 0, sumAbsDy = 0, sumAbsDyXmu = 0;
      int64_t end = std::min(block + kBlock, extent);
      for (int64_t i = block; i < end; ++i) {
        Real dy, dyXmu;
        loadTerms(begin + i, channel, dy, dyXmu);
        sumDy += dy;
        sumDyXmu += dyXmu;
        sumAbsDy += std::fabs(dy);
        sumAbsDyXmu += std::fabs(dyXmu);
      }
      channelSums.dy.add(sumDy);
      channelSums.dyXmu.add(sumDyXmu);
      channelSums.absDy += sumAbsDy;
      channelSums.absDyXmu += sumAbsDyXmu;
    }
  });
  return sums;
}

/// |x - mean|.
static Real loadDistance(const ReferenceProblem &problem, int64_t index,
                         double mean) {
  return std::fabs(load(problem, Role::Input, index) - static_cast<Real>(mean));
}

static Real loadError(const ReferenceProblem &problem, int64_t index) {
  const double *errors = problem[Role::GradOutput].error;
  return errors && !isMaskedOut(problem, index) ? errors[index] : 0;
}

static void addErrors(const ReferenceProblem &problem,
                      const std::vector<Loop> &loops,
                      const std::vector<double> &mean,
                      std::vector<ChannelSums> &sums) {
  forEachElement(loops, [&](int64_t i, int64_t channel) {
    Real error = loadError(problem, i);
    sums[channel].errorDy += error;
    sums[channel].errorDyXmu += error * loadDistance(problem, i, mean[channel]);
  });
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

namespace {
/// The coefficients of grad_input for a channel. With k = scale*r,
///   grad_input = k * ((dy - meanDy) - (x - mean) * slope)
///   A = |k| * (|dy| + absMeanDy + |x - mean| * absSlope).
struct Coefficients {
  Parameter factor;
  Real errorMean;
  Real meanDy;
  Real slope;
  Real absMeanDy;
  Real absSlope;
  Real errorMeanDy;
  Real errorSlope;
};
} // namespace

static std::vector<double> loadMean(const ReferenceProblem &problem,
                                    int64_t numChannels) {
  std::vector<double> mean(static_cast<size_t>(numChannels));
  for (int64_t channel = 0; channel < numChannels; ++channel)
    mean[channel] = load(problem, Role::Mean, channel);
  return mean;
}

/// Loads the given sums of a whole batch.
static std::vector<ChannelSums> loadSums(const ReferenceProblem &problem,
                                         int64_t numChannels) {
  std::vector<ChannelSums> sums(static_cast<size_t>(numChannels));
  for (int64_t channel = 0; channel < numChannels; ++channel) {
    ChannelSums &channelSums = sums[channel];
    channelSums.dy.sum = load(problem, Role::Sums, channel);
    channelSums.dyXmu.sum = load(problem, Role::Sums, numChannels + channel);
    channelSums.absDy = std::fabs(channelSums.dy.sum);
    channelSums.absDyXmu = std::fabs(channelSums.dyXmu.sum);
    if (const double *errors = problem[Role::Sums].error) {
      channelSums.errorDy = errors[channel];
      channelSums.errorDyXmu = errors[numChannels + channel];
    }
  }
  return sums;
}

/// The sums over input, or the given sums of a whole batch.
static std::vector<ChannelSums>
computeAllSums(const ReferenceProblem &problem, const std::vector<Loop> &loops,
               const std::vector<double> &mean) {
  if (problem[Role::Sums].data)
    return loadSums(problem, static_cast<int64_t>(mean.size()));
  std::vector<ChannelSums> sums = computeSums(problem, loops, mean);
  if (problem[Role::GradOutput].error)
    addErrors(problem, loops, mean, sums);
  if (const double *errors = problem[Role::Mean].error)
    for (size_t channel = 0; channel < sums.size(); ++channel)
      sums[channel].errorDyXmu +=
          errors[channel] * (sums[channel].absDy + sums[channel].errorDy);
  return sums;
}

static Coefficients computeCoefficients(const ReferenceProblem &problem,
                                        int64_t channel,
                                        const ChannelSums &sums, Real count) {
  Parameter invStd = loadInvStd(problem, channel);
  Parameter scale = loadParameter(problem, Role::Scale, channel, /*absent=*/1);
  Parameter slope = multiply(
      multiply({sums.absDyXmu / count, sums.errorDyXmu / count}, invStd),
      invStd);
  return {multiply(scale, invStd),
          loadParameter(problem, Role::Mean, channel).error,
          sums.dy.get() / count,
          (sums.dyXmu.get() / count * invStd.value) * invStd.value,
          sums.absDy / count,
          slope.value,
          sums.errorDy / count,
          slope.error};
}

ReferenceResult computeReferenceSums(const ReferenceProblem &problem) {
  auto [numChannels, perChannel] = Sizes(problem);
  ReferenceResult result;
  resize(result, 2 * numChannels);
  Bound bound(problem, Role::Sums, perChannel);
  std::vector<ChannelSums> sums(static_cast<size_t>(numChannels));
  if (numChannels != 0 && perChannel != 0)
    sums = computeAllSums(problem, collapse(problem.shape, problem.featureDims),
                          loadMean(problem, numChannels));
  for (int64_t channel = 0; channel < numChannels; ++channel) {
    const ChannelSums &channelSums = sums[channel];
    auto store = [&](int64_t index, Real sum, Real absolute, Real error) {
      result.value[index] = static_cast<double>(sum);
      result.bound[index] = bound(sum, absolute, error);
    };
    store(channel, channelSums.dy.get(), channelSums.absDy,
          channelSums.errorDy);
    store(numChannels + channel, channelSums.dyXmu.get(), channelSums.absDyXmu,
          channelSums.errorDyXmu);
  }
  return result;
}

ReferenceResults computeReference(const ReferenceProblem &problem) {
  auto [numChannels, perChannel] = Sizes(problem);
  auto *given = static_cast<const int64_t *>(problem[Role::Count].data);
  int64_t count = given ? *given : perChannel;

  ReferenceResults results;
  resize(results.gradInput, numChannels * perChannel);
  resize(results.gradScale, numChannels);
  resize(results.gradOffset, numChannels);
  Bound gradInputBound(problem, Role::GradInput, count);
  Bound gradScaleBound(problem, Role::GradScale, count);
  Bound gradOffsetBound(problem, Role::GradOffset, count);
  if (perChannel == 0) {
    for (int64_t channel = 0; channel < numChannels; ++channel) {
      results.gradScale.bound[channel] = gradScaleBound(0, 0, 0);
      results.gradOffset.bound[channel] = gradOffsetBound(0, 0, 0);
    }
    return results;
  }
  if (numChannels == 0)
    return results;

  std::vector<double> mean = loadMean(problem, numChannels);
  std::vector<Loop> loops = collapse(problem.shape, problem.featureDims);
  std::vector<ChannelSums> sums = computeAllSums(problem, loops, mean);

  std::vector<Coefficients> coefficients(static_cast<size_t>(numChannels));
  // Like the op, this does not divide by 0 if there are no elements.
  Real realCount = static_cast<Real>(std::max<int64_t>(count, 1));
  for (int64_t channel = 0; channel < numChannels; ++channel) {
    const ChannelSums &channelSums = sums[channel];
    Real sumDy = channelSums.dy.get();
    Real sumDyXmu = channelSums.dyXmu.get();
    Parameter invStd = loadInvStd(problem, channel);
    Real r = invStd.value;

    Real gradScale = sumDyXmu * r;
    results.gradScale.value[channel] = static_cast<double>(gradScale);
    results.gradScale.bound[channel] = gradScaleBound(
        gradScale, channelSums.absDyXmu * std::fabs(r),
        multiply({channelSums.absDyXmu, channelSums.errorDyXmu}, invStd).error);
    results.gradOffset.value[channel] = static_cast<double>(sumDy);
    results.gradOffset.bound[channel] =
        gradOffsetBound(sumDy, channelSums.absDy, channelSums.errorDy);
    coefficients[channel] =
        computeCoefficients(problem, channel, channelSums, realCount);
  }

  forEachElement(loops, [&](int64_t i, int64_t channel) {
    const Coefficients &c = coefficients[channel];
    Real dy = loadGradOutput(problem, i);
    Real exact, absolute;
    Real error = loadError(problem, i);
    if (problem.globalStatistics) {
      exact = dy;
      absolute = std::fabs(dy);
    } else {
      Real xmu =
          load(problem, Role::Input, i) - static_cast<Real>(mean[channel]);
      exact = (dy - c.meanDy) - xmu * c.slope;
      Parameter product =
          multiply({std::fabs(xmu), c.errorMean}, {c.absSlope, c.errorSlope});
      absolute = std::fabs(dy) + c.absMeanDy + product.value;
      error += c.errorMeanDy + product.error;
    }
    exact *= c.factor.value;
    results.gradInput.value[i] = static_cast<double>(exact);
    results.gradInput.bound[i] =
        gradInputBound(exact, std::fabs(c.factor.value) * absolute,
                       multiply(c.factor, {absolute, error}).error);
  });
  return results;
}

std::shared_ptr<const ReferenceResult> Reference::compute(Role role) {
  bool hasMean = problem[Role::Mean].data != nullptr;
  switch (role) {
  case Role::Sums:
    return std::make_shared<ReferenceResult>(computeReferenceSums(problem));
  case Role::Sum:
  case Role::SquareSum: {
    if (!moments)
      moments =
          std::make_shared<ReferenceMoments>(computeReferenceMoments(problem));
    return {moments, role == Role::Sum ? &moments->sum : &moments->squareSum};
  }
  case Role::Output:
    if (hasMean)
      return std::make_shared<ReferenceResult>(
          computeReferenceInference(problem));
    [[fallthrough]];
  case Role::Mean:
  case Role::Variance:
  case Role::InvStd: {
    if (!training)
      training = std::make_shared<ReferenceTraining>(
          computeReferenceTraining(problem));
    return {training, role == Role::Output     ? &training->output
                      : role == Role::Mean     ? &training->mean
                      : role == Role::Variance ? &training->variance
                                               : &training->invStd};
  }
  default: {
    if (!gradients)
      gradients = std::make_shared<ReferenceResults>(computeReference(problem));
    return {gradients, role == Role::GradInput   ? &gradients->gradInput
                       : role == Role::GradScale ? &gradients->gradScale
                                                 : &gradients->gradOffset};
  }
  }
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

bool isWithinBound(double result, double exact, double bound,
                   ElementType type) {
  if (std::isnan(result) || std::isnan(exact))
    return std::isnan(result) && std::isnan(exact);
  if (result == exact)
    return true;
  if (std::isinf(result) || std::isinf(roundTo(type, exact)))
    return roundTo(type, exact - bound) <= result &&
           result <= roundTo(type, exact + bound);
  return std::fabs(result - exact) <= bound;
}

/// `error / bound`: at most 1 if accepted, above 1 if not, even if one of the
/// two is 0 or infinite.
static double severity(bool ok, double error, double bound) {
  bool hasRatio = bound > 0 && std::isfinite(bound) && std::isfinite(error);
  if (hasRatio)
    return error / bound;
  return ok ? 0 : std::numeric_limits<double>::infinity();
}

CheckSummary checkResult(ElementType type, const void *data,
                         const ReferenceResult &reference) {
  CheckSummary summary;
  double worst = -1;
  int64_t size = static_cast<int64_t>(reference.value.size());
  for (int64_t i = 0; i < size; ++i) {
    double exact = reference.value[i];
    double bound = reference.bound[i];
    double result = loadAsDouble(type, data, i);
    bool ok = isWithinBound(result, exact, bound, type);
    double error;
    if (std::isfinite(result) && std::isfinite(exact))
      error = std::fabs(result - exact);
    else if (!ok)
      error = std::numeric_limits<double>::infinity();
    else
      error = std::isfinite(exact) ? bound : 0;
    summary.ok &= ok;
    double current = severity(ok, error, bound);
    if (current > worst) {
      worst = current;
      summary.maxError = error;
      summary.bound = bound;
      summary.index = i;
    }
  }
  return summary;
}

} // namespace bngrad
