//===- ReferenceBoundsTest.cpp - error bounds of the reference ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReferenceCase.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

using namespace bngrad;

/// M = 3, so 4 * (4 + log2(M + 1)) = 24.
TEST(ReferenceBoundsTest, LiteralBounds) {
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
TEST(ReferenceBoundsTest, BoundGrowsWithTheLogarithm) {
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

/// Results of an ideal compiler: the exact values rounded to `type`.
static std::vector<char> roundedResult(ElementType type,
                                       const ReferenceResult &reference) {
  return encode(type, reference.value);
}

/// Errors of given sums: M = 4, r = 1/2, scale 2 and -1, so that grad_input is
/// off by |scale*r| * (error / M + |x - mean| * error / M * r^2).
TEST(ReferenceBoundsTest, ErrorsOfSumsEnterTheBound) {
  std::vector<double> gradOutput = {1, -2}, input = {3, -4}, scale = {2, -1};
  std::vector<double> mean = {1, 0}, invStd = {0.5, 0.5};
  std::vector<double> sums = {8, -3, 5, 16}, errors = {0.25, 1, 2, 0.5};
  ReferenceProblem problem;
  problem.shape = {1, 2};
  problem.featureDims = {1};
  const int64_t count = 4;
  constexpr ElementType kF64 = ElementType::F64;
  problem[Role::GradInput].type = kF64;
  problem[Role::GradOutput] = {kF64, gradOutput.data()};
  problem[Role::Input] = {kF64, input.data()};
  problem[Role::Scale] = {kF64, scale.data()};
  problem[Role::Mean] = {kF64, mean.data()};
  problem[Role::InvStd] = {kF64, invStd.data()};
  problem[Role::Sums] = {kF64, sums.data()};
  problem[Role::Count] = {ElementType::I64, &count};
  std::vector<double> exact = computeReference(problem).gradInput.bound;
  problem[Role::Sums].error = errors.data();
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

TEST(ReferenceBoundsTest, BoundsAcceptRoundedResults) {
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
TEST(ReferenceBoundsTest, BoundsFlagMistakes) {
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
