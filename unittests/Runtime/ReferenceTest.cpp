//===- ReferenceTest.cpp - gradients against differences --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReferenceCase.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

using namespace bngrad;

__extension__ using Int128 = __int128;

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
