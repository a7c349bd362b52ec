//===- Reference.cpp - ground truth of the gradients ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Runtime/Reference.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace bngrad {

using Real = long double;

//===----------------------------------------------------------------------===//
// Iteration
//===----------------------------------------------------------------------===//

namespace {
/// Adjacent dims that are all reduced or all features, as one.
struct Loop {
  int64_t extent;
  /// How far one step moves in the row-major list of channels; 0 if reduced.
  int64_t channelStride;
};
} // namespace

static bool isFeatureDim(const std::vector<int64_t> &featureDims, size_t dim) {
  return std::binary_search(featureDims.begin(), featureDims.end(),
                            static_cast<int64_t>(dim));
}

/// The loops over `shape`, innermost first; at least one. Extents are > 0.
static std::vector<Loop> collapse(const std::vector<int64_t> &shape,
                                  const std::vector<int64_t> &featureDims) {
  std::vector<Loop> loops;
  int64_t numChannels = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    if (shape[dim] == 1)
      continue;
    bool isFeature = isFeatureDim(featureDims, dim);
    if (!loops.empty() && (loops.back().channelStride != 0) == isFeature)
      loops.back().extent *= shape[dim];
    else
      loops.push_back({shape[dim], isFeature ? numChannels : 0});
    if (isFeature)
      numChannels *= shape[dim];
  }
  if (loops.empty())
    loops.push_back({1, 0});
  return loops;
}

/// Calls `body(begin, channel)` for every run of the innermost loop, row-major.
template <typename Body>
static void forEachRun(const std::vector<Loop> &loops, Body body) {
  std::vector<int64_t> position(loops.size(), 0);
  int64_t begin = 0, channel = 0;
  while (true) {
    body(begin, channel);
    begin += loops[0].extent;
    size_t i = 1;
    for (; i < loops.size(); ++i) {
      channel += loops[i].channelStride;
      if (++position[i] != loops[i].extent)
        break;
      position[i] = 0;
      channel -= loops[i].extent * loops[i].channelStride;
    }
    if (i == loops.size())
      return;
  }
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

namespace {
/// A sum that keeps its rounding errors separately (D. Knuth, TAOCP 2, 4.2.2,
/// theorem B): its own error does not grow with the number of terms.
struct CompensatedSum {
  Real sum = 0;
  Real errors = 0;

  void add(Real term) {
    Real total = sum + term;
    Real added = total - sum;
    errors += (sum - (total - added)) + (term - added);
    sum = total;
  }
  /// After an infinity or a NaN the errors are NaN and mean nothing.
  Real get() const { return std::isfinite(sum) ? sum + errors : sum; }
};

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

/// Terms of one run are first added up plainly in blocks of this many. The
/// error is at most 2^10 * 2^-64 relative to A; the bound of f64 allows 2^-51.
static constexpr int64_t kBlock = 1024;

/// An element of the tensor of `role`.
static double load(const ReferenceProblem &problem, Role role, int64_t index) {
  return loadAsDouble(problem[role].type, problem[role].data, index);
}

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
  forEachRun(loops, [&](int64_t begin, int64_t channel) {
    for (int64_t i = begin; i < begin + loops[0].extent;
         ++i, channel += loops[0].channelStride) {
      Real error = loadError(problem, i);
      sums[channel].errorDy += error;
      sums[channel].errorDyXmu +=
          error * loadDistance(problem, i, mean[channel]);
    }
  });
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// u_acc: the roundoff of the widest operand, at least f32.
static Real accumulatorRoundoff(const ReferenceProblem &problem) {
  double roundoff = unitRoundoff(ElementType::F32);
  for (const ReferenceTensor &tensor : problem.tensors)
    if (tensor.data && isFloat(tensor.type))
      roundoff = std::min(roundoff, unitRoundoff(tensor.type));
  return roundoff;
}

namespace {
/// The bound of one result as a function of its exact value and of A.
struct Bound {
  Real resultRoundoff;
  /// 4 * u_acc * (4 + log2(M + 1)).
  Real accumulated;
  Real smallest;

  Bound(const ReferenceProblem &problem, Role result, int64_t count)
      : resultRoundoff(unitRoundoff(problem[result].type)),
        accumulated(4 * accumulatorRoundoff(problem) *
                    (4 + std::log2(static_cast<Real>(count) + 1))),
        smallest(smallestSubnormal(problem[result].type)) {}

  /// `error`: the effect of the operands' errors, which may enlarge the result
  /// and A by as much.
  double operator()(Real exact, Real absolute, Real error) const {
    return static_cast<double>(resultRoundoff * (std::fabs(exact) + error) +
                               accumulated * (absolute + error) + smallest +
                               error);
  }
};

/// The coefficients of grad_input for a channel. With k = scale*r,
///   grad_input = k * ((dy - meanDy) - (x - mean) * slope)
///   A = |k| * (|dy| + absMeanDy + |x - mean| * absSlope).
struct Coefficients {
  Real factor;
  Real meanDy;
  Real slope;
  Real absMeanDy;
  Real absSlope;
  Real errorMeanDy;
  Real errorSlope;
};
} // namespace

static void resize(ReferenceResult &result, int64_t size) {
  result.value.resize(static_cast<size_t>(size));
  result.bound.resize(static_cast<size_t>(size));
}

static Real loadInvStd(const ReferenceProblem &problem, int64_t channel) {
  if (problem[Role::InvStd].data)
    return load(problem, Role::InvStd, channel);
  Real variance = load(problem, Role::Variance, channel);
  return 1 / std::sqrt(variance + problem.epsilon);
}

namespace {
struct Sizes {
  int64_t numChannels = 1;
  /// Elements per channel of input. Not a quotient of sizes, as it is needed
  /// even without channels.
  int64_t perChannel = 1;

  explicit Sizes(const ReferenceProblem &problem) {
    assert(!problem.featureDims.empty() &&
           problem.featureDims.back() <
               static_cast<int64_t>(problem.shape.size()) &&
           "expected a verified problem");
    for (size_t dim = 0; dim < problem.shape.size(); ++dim) {
      bool isFeature = isFeatureDim(problem.featureDims, dim);
      (isFeature ? numChannels : perChannel) *= problem.shape[dim];
    }
  }
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
  return sums;
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
  // As in the op: without elements there is no division.
  Real realCount = static_cast<Real>(std::max<int64_t>(count, 1));
  for (int64_t channel = 0; channel < numChannels; ++channel) {
    const ChannelSums &channelSums = sums[channel];
    Real sumDy = channelSums.dy.get();
    Real sumDyXmu = channelSums.dyXmu.get();
    Real r = loadInvStd(problem, channel);
    Real scale =
        problem[Role::Scale].data ? load(problem, Role::Scale, channel) : 1;

    Real gradScale = sumDyXmu * r;
    results.gradScale.value[channel] = static_cast<double>(gradScale);
    results.gradScale.bound[channel] =
        gradScaleBound(gradScale, channelSums.absDyXmu * std::fabs(r),
                       channelSums.errorDyXmu * std::fabs(r));
    results.gradOffset.value[channel] = static_cast<double>(sumDy);
    results.gradOffset.bound[channel] =
        gradOffsetBound(sumDy, channelSums.absDy, channelSums.errorDy);
    coefficients[channel] = {scale * r,
                             sumDy / realCount,
                             (sumDyXmu / realCount * r) * r,
                             channelSums.absDy / realCount,
                             (channelSums.absDyXmu / realCount * r) * r,
                             channelSums.errorDy / realCount,
                             (channelSums.errorDyXmu / realCount * r) * r};
  }

  int64_t extent = loops[0].extent;
  int64_t channelStride = loops[0].channelStride;
  forEachRun(loops, [&](int64_t begin, int64_t channel) {
    for (int64_t i = begin; i < begin + extent; ++i, channel += channelStride) {
      const Coefficients &c = coefficients[channel];
      Real dy = loadGradOutput(problem, i);
      Real exact, absolute;
      Real error = loadError(problem, i);
      if (problem.globalStatistics) {
        exact = c.factor * dy;
        absolute = std::fabs(exact);
      } else {
        Real xmu =
            load(problem, Role::Input, i) - static_cast<Real>(mean[channel]);
        exact = c.factor * ((dy - c.meanDy) - xmu * c.slope);
        absolute = std::fabs(c.factor) *
                   (std::fabs(dy) + c.absMeanDy + std::fabs(xmu) * c.absSlope);
        error += c.errorMeanDy + std::fabs(xmu) * c.errorSlope;
      }
      results.gradInput.value[i] = static_cast<double>(exact);
      results.gradInput.bound[i] =
          gradInputBound(exact, absolute, std::fabs(c.factor) * error);
    }
  });
  return results;
}

std::shared_ptr<const ReferenceResult> Reference::compute(Role role) {
  if (role == Role::Sums)
    return std::make_shared<ReferenceResult>(computeReferenceSums(problem));
  if (!gradients)
    gradients = std::make_shared<ReferenceResults>(computeReference(problem));
  ReferenceResult &result = role == Role::GradInput   ? gradients->gradInput
                            : role == Role::GradScale ? gradients->gradScale
                                                      : gradients->gradOffset;
  return {gradients, &result};
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
