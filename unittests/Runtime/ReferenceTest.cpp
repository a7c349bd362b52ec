//===- ReferenceTest.cpp - gradients against differences --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Runtime/Reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

using namespace bngrad;

using Real = long double;
using Shape = std::vector<int64_t>;
__extension__ using Int128 = __int128;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// `values` as elements of `type`.
static std::vector<char> encode(ElementType type,
                                const std::vector<double> &values) {
  std::vector<char> data(values.size() * byteSize(type));
  for (size_t i = 0; i < values.size(); ++i)
    storeRounded(type, data.data(), static_cast<int64_t>(i), values[i]);
  return data;
}

namespace {
/// A problem that owns its operands, as doubles.
struct Case {
  Shape shape;
  Shape featureDims = {1};
  std::vector<double> gradOutput, input, scale, mean, statistic;
  std::vector<uint8_t> mask;
  double epsilon = 0;
  bool globalStatistics = false;
  bool statisticIsInvStd = false;
  ElementType dataType = ElementType::F64;
  ElementType parameterType = ElementType::F64;
  ElementType resultType = ElementType::F64;

  ReferenceResults compute() const {
    std::vector<char> dy = encode(dataType, gradOutput);
    std::vector<char> x = encode(dataType, input);
    std::vector<char> s = encode(parameterType, scale);
    std::vector<char> m = encode(parameterType, mean);
    std::vector<char> v = encode(parameterType, statistic);
    ReferenceProblem problem;
    problem.shape = shape;
    problem.featureDims = featureDims;
    problem.epsilon = epsilon;
    problem.globalStatistics = globalStatistics;
    problem.statisticIsInvStd = statisticIsInvStd;
    problem.dataType = dataType;
    problem.parameterType = parameterType;
    problem.gradInputType = resultType;
    problem.gradScaleType = resultType;
    problem.gradOffsetType = resultType;
    problem.gradOutput = dy.data();
    problem.input = x.data();
    problem.scale = scale.empty() ? nullptr : s.data();
    problem.mean = m.data();
    problem.statistic = v.data();
    problem.mask = mask.empty() ? nullptr : mask.data();
    return computeReference(problem);
  }

  /// Channel of every element of input, by division, unlike the reference.
  std::vector<int64_t> channels() const {
    std::vector<int64_t> result;
    for (size_t i = 0; i < input.size(); ++i) {
      int64_t rest = static_cast<int64_t>(i), channel = 0, stride = 1;
      for (size_t dim = shape.size(); dim-- > 0; rest /= shape[dim]) {
        for (int64_t featureDim : featureDims) {
          if (featureDim == static_cast<int64_t>(dim)) {
            channel += rest % shape[dim] * stride;
            stride *= shape[dim];
          }
        }
      }
      result.push_back(channel);
    }
    return result;
  }

  /// The loss sum(dy * y) of the forward pass y = scale * (x - mean) * r +
  /// offset; the op computes its derivatives. Needs a variance rather than an
  /// inv_std.
  Real loss(const std::vector<Real> &x, const std::vector<Real> &gamma,
            const std::vector<Real> &beta) const {
    std::vector<int64_t> channelOf = channels();
    std::vector<Real> m(mean.begin(), mean.end());
    std::vector<Real> r(statistic.begin(), statistic.end());
    if (!globalStatistics)
      computeStatistics(x, m, r);
    for (Real &value : r)
      value = 1 / std::sqrt(value + epsilon);
    Real sum = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      int64_t c = channelOf[i];
      if (mask.empty() || mask[i])
        sum += gradOutput[i] * (gamma[c] * (x[i] - m[c]) * r[c] + beta[c]);
    }
    return sum;
  }

  void computeStatistics(const std::vector<Real> &x, std::vector<Real> &m,
                         std::vector<Real> &variance) const {
    std::vector<int64_t> channelOf = channels();
    Real count = static_cast<Real>(x.size() / mean.size());
    m.assign(mean.size(), 0);
    variance.assign(mean.size(), 0);
    for (size_t i = 0; i < x.size(); ++i)
      m[channelOf[i]] += x[i] / count;
    for (size_t i = 0; i < x.size(); ++i) {
      Real centered = x[i] - m[channelOf[i]];
      variance[channelOf[i]] += centered * centered / count;
    }
  }
};
} // namespace

/// A case whose channels differ in location, spread, scale and statistics.
static Case makeCase(const Shape &shape, const Shape &featureDims,
                     bool globalStatistics) {
  Case result;
  result.shape = shape;
  result.featureDims = featureDims;
  result.globalStatistics = globalStatistics;
  result.epsilon = 0.125;
  size_t size = 1, numChannels = 1;
  for (int64_t extent : shape)
    size *= static_cast<size_t>(extent);
  for (int64_t dim : featureDims)
    numChannels *= static_cast<size_t>(shape[static_cast<size_t>(dim)]);
  std::mt19937 random(static_cast<unsigned>(size + 31 * numChannels));
  auto uniform = [&] { return random() / 2147483648.0 - 1; };
  result.input.resize(size);
  result.gradOutput.resize(size);
  std::vector<int64_t> channelOf = result.channels();
  for (size_t i = 0; i < size; ++i) {
    double c = static_cast<double>(channelOf[i]);
    result.input[i] = 0.5 * c + (1 + 0.25 * c) * uniform();
    result.gradOutput[i] = uniform() + 0.125 * c + 0.5;
  }
  for (size_t c = 0; c < numChannels; ++c) {
    double odd = c % 2 == 0 ? 1 : -1;
    result.scale.push_back(odd * (0.75 + 0.5 * double(c)));
    result.mean.push_back(0.5 * double(c) + 0.0625);
    result.statistic.push_back(0.5 + 0.375 * double(c));
  }
  if (!globalStatistics) {
    std::vector<Real> m, variance;
    result.computeStatistics({result.input.begin(), result.input.end()}, m,
                             variance);
    result.mean.assign(m.begin(), m.end());
    result.statistic.assign(variance.begin(), variance.end());
  }
  return result;
}

static void useInvStd(Case &testCase) {
  for (double &value : testCase.statistic)
    value = 1 / std::sqrt(value + testCase.epsilon);
  testCase.epsilon = 0;
  testCase.statisticIsInvStd = true;
}

/// The three gradients of `testCase` against central differences of the loss of
/// `forward`, which is the same function.
static void expectDerivatives(const Case &testCase, const Case &forward) {
  ReferenceResults results = testCase.compute();
  std::vector<Real> x(forward.input.begin(), forward.input.end());
  std::vector<Real> gamma(forward.scale.begin(), forward.scale.end());
  gamma.resize(forward.mean.size(), 1);
  std::vector<Real> beta(gamma.size(), 0);
  auto check = [&](std::vector<Real> &variables,
                   const ReferenceResult &gradient, const char *name) {
    const Real kStep = 1e-5;
    ASSERT_EQ(gradient.value.size(), variables.size());
    ASSERT_EQ(gradient.bound.size(), variables.size());
    for (size_t i = 0; i < variables.size(); ++i) {
      Real old = variables[i];
      variables[i] = old + kStep;
      Real above = forward.loss(x, gamma, beta);
      variables[i] = old - kStep;
      Real below = forward.loss(x, gamma, beta);
      variables[i] = old;
      EXPECT_NEAR(gradient.value[i],
                  static_cast<double>((above - below) / (2 * kStep)), 1e-8)
          << name << " " << i;
    }
  };
  check(x, results.gradInput, "grad_input");
  check(gamma, results.gradScale, "grad_scale");
  check(beta, results.gradOffset, "grad_offset");
}

TEST(ReferenceTest, AgreesWithDifferencesOfTheForwardPass) {
  struct {
    Shape shape, featureDims;
  } const kCases[] = {{{5, 3}, {1}},          {{4, 3}, {0}},
                      {{4, 3, 5}, {1}},       {{3, 2, 4, 3}, {1}},
                      {{3, 4, 2, 3}, {3}},    {{2, 3, 4, 3}, {1, 3}},
                      {{6, 2, 3}, {1, 2}},    {{3, 2, 2, 3}, {1, 2, 3}},
                      {{2, 3, 4, 2}, {0, 2}}, {{3, 2, 1, 2, 3}, {1, 2}},
                      {{7, 1}, {1}},          {{2, 3, 2, 2, 3}, {1, 4}}};
  for (const auto &testCase : kCases) {
    for (bool globalStatistics : {false, true}) {
      Case base =
          makeCase(testCase.shape, testCase.featureDims, globalStatistics);
      SCOPED_TRACE(std::to_string(&testCase - kCases) +
                   (globalStatistics ? " global" : " batch"));
      expectDerivatives(base, base);
      Case invStd = base;
      useInvStd(invStd);
      expectDerivatives(invStd, base);
      Case noScale = base;
      noScale.scale.clear();
      expectDerivatives(noScale, noScale);
      Case masked = base;
      masked.mask.resize(masked.input.size());
      for (size_t i = 0; i < masked.mask.size(); ++i)
        masked.mask[i] = i % 3 != 1;
      expectDerivatives(masked, masked);
    }
  }
}

/// Mean and variance are not those of input, and are not recomputed.
static Case makeLiteralCase() {
  Case result;
  result.shape = {3, 2};
  result.input = {1, 2, 3, -1, 8, 5};
  result.gradOutput = {1, 3, -2, 5, 4, -2};
  result.scale = {2, -8};
  result.mean = {4, 2};
  result.statistic = {3, 15};
  result.epsilon = 1;
  return result;
}

TEST(ReferenceTest, LiteralBatch) {
  ReferenceResults results = makeLiteralCase().compute();
  EXPECT_EQ(results.gradOffset.value, (std::vector<double>{3, 6}));
  EXPECT_EQ(results.gradScale.value, (std::vector<double>{7.5, -5.25}));
  EXPECT_EQ(results.gradInput.value,
            (std::vector<double>{3.75, -2, -1.75, -3.375, -2, 5.375}));
}

TEST(ReferenceTest, LiteralGlobal) {
  Case testCase = makeLiteralCase();
  testCase.globalStatistics = true;
  ReferenceResults results = testCase.compute();
  EXPECT_EQ(results.gradOffset.value, (std::vector<double>{3, 6}));
  EXPECT_EQ(results.gradScale.value, (std::vector<double>{7.5, -5.25}));
  EXPECT_EQ(results.gradInput.value,
            (std::vector<double>{1, -6, -2, -10, 4, 4}));
}

/// M = 3, so 4 * (4 + log2(M + 1)) = 24.
TEST(ReferenceTest, LiteralBounds) {
  Case testCase = makeLiteralCase();
  testCase.dataType = testCase.parameterType = ElementType::F16;
  testCase.resultType = ElementType::BF16;
  auto expected = [](double exact, double absolute) {
    return 0x1p-8 * std::fabs(exact) + 24 * 0x1p-24 * absolute + 0x1p-133;
  };
  ReferenceResults results = testCase.compute();
  EXPECT_DOUBLE_EQ(results.gradOffset.bound[0], expected(3, 1 + 2 + 4));
  EXPECT_DOUBLE_EQ(results.gradOffset.bound[1], expected(6, 3 + 5 + 2));
  EXPECT_DOUBLE_EQ(results.gradScale.bound[0],
                   expected(7.5, (3 + 2 + 16) * 0.5));
  EXPECT_DOUBLE_EQ(results.gradScale.bound[1],
                   expected(-5.25, (0 + 15 + 6) * 0.25));
  EXPECT_DOUBLE_EQ(results.gradInput.bound[0],
                   expected(3.75, 1 + 7 / 3.0 + 3 * 0.25 * 21 / 3));
  EXPECT_DOUBLE_EQ(results.gradInput.bound[5],
                   expected(5.375, 2 * (2 + 10 / 3.0 + 3 * 0.0625 * 21 / 3)));

  testCase.globalStatistics = true;
  EXPECT_DOUBLE_EQ(testCase.compute().gradInput.bound[3], expected(-10, 10));
  // Either operand type widens the accumulator.
  testCase.parameterType = ElementType::F64;
  EXPECT_DOUBLE_EQ(testCase.compute().gradInput.bound[3],
                   0x1p-8 * 10 + 24 * 0x1p-53 * 10 + 0x1p-133);
  std::swap(testCase.dataType, testCase.parameterType);
  EXPECT_DOUBLE_EQ(testCase.compute().gradOffset.bound[1],
                   0x1p-8 * 6 + 24 * 0x1p-53 * 10 + 0x1p-133);
}

/// The bound per unit of A grows with the logarithm of M.
TEST(ReferenceTest, BoundGrowsWithTheLogarithm) {
  for (int64_t count : {1, 3, 7, 1023}) {
    Case testCase;
    testCase.shape = {count, 1};
    testCase.input.assign(static_cast<size_t>(count), 2);
    testCase.gradOutput.assign(static_cast<size_t>(count), 1);
    testCase.gradOutput[0] = 1.0 - static_cast<double>(count - 1);
    testCase.mean = {1};
    testCase.statistic = {1};
    testCase.dataType = testCase.parameterType = ElementType::F32;
    testCase.resultType = ElementType::F32;
    // sum_dy is 1 for M = 1, otherwise 0 + 1.
    double exact = 1, absolute = count == 1 ? 1 : 2.0 * double(count) - 3;
    ReferenceResults results = testCase.compute();
    ASSERT_EQ(results.gradOffset.value[0], exact);
    double log = std::log2(static_cast<double>(count) + 1);
    EXPECT_DOUBLE_EQ(results.gradOffset.bound[0],
                     0x1p-24 * exact + 4 * 0x1p-24 * (4 + log) * absolute +
                         0x1p-149);
  }
}

/// Operand types change the bound, not the value.
TEST(ReferenceTest, ReadsEveryOperandType) {
  Case testCase = makeLiteralCase();
  ReferenceResults expected = testCase.compute();
  for (ElementType dataType : {ElementType::F16, ElementType::BF16,
                               ElementType::F32, ElementType::F64}) {
    for (ElementType parameterType : {ElementType::F16, ElementType::BF16,
                                      ElementType::F32, ElementType::F64}) {
      testCase.dataType = dataType;
      testCase.parameterType = parameterType;
      ReferenceResults results = testCase.compute();
      EXPECT_EQ(results.gradInput.value, expected.gradInput.value);
      EXPECT_EQ(results.gradScale.value, expected.gradScale.value);
      EXPECT_EQ(results.gradOffset.value, expected.gradOffset.value);
    }
  }
}

/// Sums of a million terms are exact to the last bit of a double, in rows and
/// across rows, even if the terms cancel.
TEST(ReferenceTest, SumsAreMoreExactThanF64) {
  constexpr int64_t kCount = 1 << 20;
  for (const Shape &shape :
       {Shape{1, 1, kCount}, Shape{kCount, 1, 1}, Shape{kCount / 2, 2, 1},
        Shape{4, 2, kCount / 8}}) {
    Case testCase;
    testCase.shape = shape;
    size_t numChannels = static_cast<size_t>(shape[1]);
    testCase.mean.assign(numChannels, 0);
    testCase.statistic.assign(numChannels, 1);
    testCase.input.assign(kCount, 1);
    testCase.gradOutput.resize(kCount);
    std::vector<int64_t> channelOf = testCase.channels();
    std::vector<Int128> sums(numChannels, 0);
    std::mt19937_64 random(3);
    for (size_t i = 0; i < kCount; ++i) {
      int64_t term = static_cast<int64_t>(random() >> 11) - (int64_t(1) << 52);
      testCase.gradOutput[i] = static_cast<double>(term);
      sums[static_cast<size_t>(channelOf[i])] += term;
    }
    ReferenceResults results = testCase.compute();
    for (size_t c = 0; c < numChannels; ++c) {
      double expected = static_cast<double>(sums[c]);
      EXPECT_NEAR(results.gradOffset.value[c], expected,
                  std::fabs(expected) * 0x1p-52);
      EXPECT_NEAR(results.gradScale.value[c], expected,
                  std::fabs(expected) * 0x1p-52);
    }
  }
}

/// Digits lost in adding a large term are recovered after subtracting it.
TEST(ReferenceTest, SumsAreCompensated) {
  for (int64_t rowLength : {1, 1024}) {
    Case testCase;
    testCase.shape = {3, 2, rowLength};
    for (double term : {0x1p100, 1.0, -0x1p100})
      testCase.gradOutput.insert(testCase.gradOutput.end(),
                                 static_cast<size_t>(2 * rowLength), term);
    testCase.input.assign(testCase.gradOutput.size(), 2);
    testCase.mean = {1, 0};
    testCase.statistic = {1, 1};
    double length = static_cast<double>(rowLength);
    ReferenceResults results = testCase.compute();
    EXPECT_EQ(results.gradOffset.value, (std::vector<double>{length, length}));
    EXPECT_EQ(results.gradScale.value,
              (std::vector<double>{length, 2 * length}));
  }
}

//===----------------------------------------------------------------------===//
// Sizes and special values
//===----------------------------------------------------------------------===//

static Case makeEmptyCase(const Shape &shape, size_t numChannels) {
  Case result;
  result.shape = shape;
  result.scale.assign(numChannels, 2);
  result.mean.assign(numChannels, 3);
  // r is infinite: 0 * r would be NaN.
  result.statistic.assign(numChannels, 0);
  return result;
}

TEST(ReferenceTest, NothingToReduce) {
  for (const Shape &shape : {Shape{0, 3}, Shape{4, 3, 0}, Shape{0, 3, 0}}) {
    ReferenceResults results = makeEmptyCase(shape, 3).compute();
    EXPECT_TRUE(results.gradInput.value.empty());
    EXPECT_TRUE(results.gradInput.bound.empty());
    for (const ReferenceResult &result :
         {results.gradScale, results.gradOffset}) {
      EXPECT_EQ(result.value, (std::vector<double>{0, 0, 0}));
      EXPECT_EQ(result.bound, std::vector<double>(3, 0x1p-1074));
    }
  }
}

TEST(ReferenceTest, NoChannels) {
  for (const Shape &shape : {Shape{3, 0}, Shape{3, 0, 2}, Shape{0, 0}}) {
    ReferenceResults results = makeEmptyCase(shape, 0).compute();
    for (const ReferenceResult &result :
         {results.gradInput, results.gradScale, results.gradOffset}) {
      EXPECT_TRUE(result.value.empty());
      EXPECT_TRUE(result.bound.empty());
    }
  }
}

/// M = 1 is not a special case: x - mean need not be 0.
TEST(ReferenceTest, OneElementPerChannel) {
  Case testCase;
  testCase.shape = {2};
  testCase.featureDims = {0};
  testCase.input = {3, 5};
  testCase.gradOutput = {2, -4};
  testCase.mean = {1, 2};
  testCase.statistic = {0.5, 2};
  testCase.statisticIsInvStd = true;
  ReferenceResults results = testCase.compute();
  EXPECT_EQ(results.gradOffset.value, (std::vector<double>{2, -4}));
  EXPECT_EQ(results.gradScale.value, (std::vector<double>{2, -24}));
  // 0.5 * (0 - 2 * (4 * 0.25)), 2 * (0 - 3 * (-12 * 4)).
  EXPECT_EQ(results.gradInput.value, (std::vector<double>{-1, 288}));
}

static void expectAllNaN(const std::vector<double> &values,
                         const std::vector<size_t> &indices) {
  for (size_t i = 0; i < values.size(); ++i) {
    bool expected = false;
    for (size_t index : indices)
      expected |= index == i;
    EXPECT_EQ(std::isnan(values[i]), expected) << i;
  }
}

TEST(ReferenceTest, NaNSpreadsWithinItsChannel) {
  Case base = makeLiteralCase();
  Case testCase = base;
  testCase.gradOutput[2] = kNaN;
  ReferenceResults results = testCase.compute();
  expectAllNaN(results.gradInput.value, {0, 2, 4});
  expectAllNaN(results.gradScale.value, {0});
  expectAllNaN(results.gradOffset.value, {0});
  EXPECT_EQ(results.gradInput.value[3], -3.375);

  testCase = base;
  testCase.input[3] = kNaN;
  results = testCase.compute();
  expectAllNaN(results.gradInput.value, {1, 3, 5});
  expectAllNaN(results.gradScale.value, {1});
  expectAllNaN(results.gradOffset.value, {});

  testCase.globalStatistics = true;
  results = testCase.compute();
  expectAllNaN(results.gradInput.value, {});
  expectAllNaN(results.gradScale.value, {1});

  testCase = base;
  testCase.statistic[0] = -2;
  results = testCase.compute();
  expectAllNaN(results.gradInput.value, {0, 2, 4});
  expectAllNaN(results.gradScale.value, {0});
  expectAllNaN(results.gradOffset.value, {});
}

TEST(ReferenceTest, InfinityFollowsTheFormula) {
  Case testCase = makeLiteralCase();
  testCase.gradOutput[2] = kInfinity;
  ReferenceResults results = testCase.compute();
  EXPECT_EQ(results.gradOffset.value[0], kInfinity);
  // inf * (3 - 4).
  EXPECT_EQ(results.gradScale.value[0], -kInfinity);
  // slope is -inf: (1 - inf) - (-3 * -inf), inf - inf, (4 - inf) - 4 * -inf.
  EXPECT_EQ(results.gradInput.value[0], -kInfinity);
  EXPECT_TRUE(std::isnan(results.gradInput.value[2]));
  EXPECT_TRUE(std::isnan(results.gradInput.value[4]));

  // Variance 0 without epsilon.
  testCase = makeLiteralCase();
  testCase.epsilon = 0;
  testCase.statistic[1] = 0;
  results = testCase.compute();
  EXPECT_EQ(results.gradScale.value[1], -kInfinity);
  EXPECT_EQ(results.gradOffset.value[1], 6);
  // slope is -inf, x - mean is 0, -3 and 3, factor is -inf.
  EXPECT_TRUE(std::isnan(results.gradInput.value[1]));
  EXPECT_EQ(results.gradInput.value[3], kInfinity);
  EXPECT_EQ(results.gradInput.value[5], -kInfinity);
}

TEST(ReferenceTest, MaskSelects) {
  Case testCase = makeLiteralCase();
  Case zeroed = testCase;
  zeroed.gradOutput[2] = zeroed.gradOutput[5] = 0;
  ReferenceResults expected = zeroed.compute();
  testCase.gradOutput[2] = kNaN;
  testCase.gradOutput[5] = kInfinity;
  testCase.mask = {1, 1, 0, 1, 255, 0};
  ReferenceResults results = testCase.compute();
  EXPECT_EQ(results.gradInput.value, expected.gradInput.value);
  EXPECT_EQ(results.gradInput.bound, expected.gradInput.bound);
  EXPECT_EQ(results.gradScale.value, expected.gradScale.value);
  EXPECT_EQ(results.gradOffset.value, expected.gradOffset.value);

  // A NaN of input is not masked: 0 * (NaN - mean).
  testCase.input[2] = kNaN;
  results = testCase.compute();
  expectAllNaN(results.gradScale.value, {0});
  expectAllNaN(results.gradOffset.value, {});
}

//===----------------------------------------------------------------------===//
// Bounds at work
//===----------------------------------------------------------------------===//

/// Results of an ideal compiler: the exact values rounded to `type`.
static std::vector<char> roundedResult(ElementType type,
                                       const ReferenceResult &reference) {
  return encode(type, reference.value);
}

/// Errors of given sums: M = 4, r = 1/2, scale 2 and -1, so that grad_input is
/// off by |scale*r| * (error / M + |x - mean| * error / M * r^2).
TEST(ReferenceTest, ErrorsOfSumsEnterTheBound) {
  std::vector<double> gradOutput = {1, -2}, input = {3, -4}, scale = {2, -1};
  std::vector<double> mean = {1, 0}, invStd = {0.5, 0.5};
  std::vector<double> sums = {8, -3, 5, 16}, errors = {0.25, 1, 2, 0.5};
  ReferenceProblem problem;
  problem.shape = {1, 2};
  problem.featureDims = {1};
  problem.statisticIsInvStd = true;
  problem.dataType = problem.parameterType = ElementType::F64;
  problem.sumsType = problem.gradInputType = ElementType::F64;
  problem.gradOutput = gradOutput.data();
  problem.input = input.data();
  problem.scale = scale.data();
  problem.mean = mean.data();
  problem.statistic = invStd.data();
  problem.sums = sums.data();
  problem.count = 4;
  std::vector<double> exact = computeReference(problem).gradInput.bound;
  problem.sumsError = errors.data();
  std::vector<double> bound = computeReference(problem).gradInput.bound;
  double allowed[] = {0.25 / 4 + 2 * 2.0 / 4 / 4,
                      0.5 * (1.0 / 4 + 4 * 0.5 / 4 / 4)};
  for (int i : {0, 1}) {
    double added = bound[i] - exact[i];
    EXPECT_NEAR(added, allowed[i], 1e-13);
    // The rounding errors of the larger result are larger, too.
    EXPECT_GT(added, allowed[i] * (1 + 0x1p-52));
  }
}

TEST(ReferenceTest, BoundsAcceptRoundedResults) {
  for (ElementType type : {ElementType::F16, ElementType::BF16,
                           ElementType::F32, ElementType::F64}) {
    Case testCase = makeCase({5, 3, 4}, {1}, false);
    testCase.resultType = type;
    ReferenceResults results = testCase.compute();
    for (const ReferenceResult &result :
         {results.gradInput, results.gradScale, results.gradOffset}) {
      CheckSummary summary =
          checkResult(type, roundedResult(type, result).data(), result);
      EXPECT_TRUE(summary.ok);
      EXPECT_LE(summary.maxError, summary.bound);
      EXPECT_GE(summary.index, 0);
    }
  }
}

/// The bound is effective: small mistakes of a compiler fail, in f32.
TEST(ReferenceTest, BoundsFlagMistakes) {
  constexpr ElementType kF32 = ElementType::F32;
  Case base = makeCase({6, 3, 5}, {1}, false);
  base.dataType = base.parameterType = base.resultType = kF32;
  ReferenceResults reference = base.compute();
  auto isAccepted = [&](const Case &mutant) {
    ReferenceResults results = mutant.compute();
    return checkResult(kF32, roundedResult(kF32, results.gradInput).data(),
                       reference.gradInput)
        .ok;
  };
  EXPECT_TRUE(isAccepted(base));
  Case mutant = base;
  std::swap(mutant.scale[0], mutant.scale[1]);
  EXPECT_FALSE(isAccepted(mutant)) << "one wrong channel";
  mutant = base;
  mutant.epsilon = 0.125 * 1.0001;
  EXPECT_FALSE(isAccepted(mutant)) << "epsilon";
  mutant = base;
  mutant.globalStatistics = true;
  EXPECT_FALSE(isAccepted(mutant)) << "statistics";
  mutant = base;
  mutant.dataType = ElementType::BF16;
  EXPECT_FALSE(isAccepted(mutant)) << "operands rounded to bf16";
  mutant = base;
  mutant.mask.assign(mutant.input.size(), 1);
  mutant.mask[17] = 0;
  EXPECT_FALSE(isAccepted(mutant)) << "mask";

  std::vector<double> swapped = reference.gradScale.value;
  std::swap(swapped[1], swapped[2]);
  EXPECT_FALSE(
      checkResult(kF32, encode(kF32, swapped).data(), reference.gradScale).ok);
}
