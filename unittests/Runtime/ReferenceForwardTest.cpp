//===- ReferenceForwardTest.cpp - the reference of the forward pass -------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReferenceCase.h"

#include <gtest/gtest.h>

#include <cmath>
#include <list>

using namespace bngrad;

namespace {
/// A problem of one feature dim, 1, with operands of `type`.
struct Forward {
  ElementType type = ElementType::F32;
  ReferenceProblem problem;

  explicit Forward(const Shape &shape, ElementType type = ElementType::F32)
      : type(type) {
    problem.shape = shape;
    problem.featureDims = {1};
    for (Role role : {Role::Output, Role::Mean, Role::Variance, Role::InvStd,
                      Role::Sum, Role::SquareSum})
      problem[role].type = ElementType::F64;
  }

  void set(Role role, const std::vector<double> &values,
           const std::vector<double> &errors = {}) {
    data.push_back(encode(type, values));
    problem[role].type = type;
    problem[role].data = data.back().data();
    if (errors.empty())
      return;
    allErrors.push_back(errors);
    problem[role].error = allErrors.back().data();
  }

private:
  std::list<std::vector<char>> data;
  std::list<std::vector<double>> allErrors;
};
} // namespace

static const double kU = 0x1p-24;
/// G for M = 4.
static const double kG = 4 * kU * (4 + std::log2(5.0));
static const double kMean = 3, kVariance = 3.5, kEpsilon = 0.5; // inv_std 1/2
static const double kRoot =
    std::sqrt(kVariance) + 2 * kG * std::sqrt(kMean * kMean + kVariance);
static const double kRelative = 1 + kRoot * kRoot / 4;

/// One channel with the elements 1, 2, 3 and 6.
static Forward makeForward() {
  Forward forward({4, 1});
  forward.set(Role::Input, {1, 2, 3, 6});
  forward.problem.epsilon = kEpsilon;
  return forward;
}

static double withRounding(double exact, double bound) {
  return 0x1p-53 * std::fabs(exact) + bound + 0x1p-1074;
}

TEST(ReferenceForwardTest, LiteralBoundsOfStatistics) {
  Forward forward = makeForward();
  ReferenceTraining training = computeReferenceTraining(forward.problem);
  EXPECT_EQ(training.mean.value[0], kMean);
  EXPECT_EQ(training.variance.value[0], kVariance);
  EXPECT_EQ(training.invStd.value[0], 0.5);
  EXPECT_DOUBLE_EQ(training.mean.bound[0],
                   withRounding(kMean, kG * kRoot + kU * kMean));
  EXPECT_DOUBLE_EQ(training.variance.bound[0],
                   withRounding(kVariance, kG * (kRoot * kRoot) + 0x1p-149));
  EXPECT_DOUBLE_EQ(training.invStd.bound[0],
                   withRounding(0.5, kG * 0.5 * kRelative));
}

TEST(ReferenceForwardTest, LiteralBoundsOfOutput) {
  Forward forward = makeForward();
  forward.set(Role::Scale, {-2}, {0.25});
  forward.set(Role::Offset, {5}, {0.125});
  ReferenceTraining training = computeReferenceTraining(forward.problem);
  for (int i = 0; i < 4; ++i) {
    const double xmu[] = {-2, -1, 0, 3};
    EXPECT_EQ(training.output.value[i], 5 - xmu[i]);
    double error = std::fabs(xmu[i]) * 0.5 * 0.25 + 0.125;
    double absolute = (2 + 0.25) * 0.5 *
                          (std::fabs(xmu[i]) * kRelative + kRoot + kU * kMean) +
                      5;
    EXPECT_NEAR(training.output.bound[i],
                withRounding(std::fabs(5 - xmu[i]) + error,
                             kG * (absolute + error) + error),
                1e-12)
        << i;
  }
}

/// A scale of 0 does not hide that inv_std has no bound.
TEST(ReferenceForwardTest, NoBoundTimesZeroIsNoBound) {
  Forward forward({256, 1});
  std::vector<double> input(256, 0x1p24);
  input.back() += 2;
  forward.set(Role::Input, input);
  forward.set(Role::Scale, {0});
  ReferenceTraining training = computeReferenceTraining(forward.problem);
  EXPECT_EQ(training.invStd.bound[0], kInfinity);
  EXPECT_EQ(training.output.bound[0], kInfinity);

  forward.set(Role::Mean, {1}, {kInfinity});
  forward.set(Role::InvStd, {1});
  EXPECT_EQ(computeReferenceInference(forward.problem).bound[0], kInfinity);
}

/// An infinite sum of distances without an error of the shift.
TEST(ReferenceForwardTest, ExactShiftHasNoEffect) {
  Forward forward({2, 1});
  forward.set(Role::Input, {1, 4});
  forward.set(Role::Shift, {2}, {0});
  ReferenceMoments moments = computeReferenceMoments(forward.problem);
  EXPECT_EQ(moments.sum.value[0], 1);
  EXPECT_EQ(moments.squareSum.value[0], 5);
  double g = 4 * kU * (4 + std::log2(3.0));
  EXPECT_DOUBLE_EQ(moments.sum.bound[0], withRounding(1, g * 3));
  EXPECT_DOUBLE_EQ(moments.squareSum.bound[0], withRounding(5, g * 5));
  forward.set(Role::Shift, {2}, {kInfinity});
  moments = computeReferenceMoments(forward.problem);
  EXPECT_EQ(moments.sum.bound[0], kInfinity);
  EXPECT_EQ(moments.squareSum.bound[0], kInfinity);
}

/// The mean is 2^50 + 2/3, and long double has 13 bits for the fraction.
TEST(ReferenceForwardTest, MeanIsMoreExactThanLongDouble) {
  Forward forward({3, 1}, ElementType::F64);
  double base = 0x1p50;
  forward.set(Role::Input, {base, base + 1, base + 1});
  ReferenceTraining training = computeReferenceTraining(forward.problem);
  Real variance = Real(2) / 9, invStd = 1 / std::sqrt(variance);
  EXPECT_NEAR(training.variance.value[0], static_cast<double>(variance), 1e-16);
  EXPECT_NEAR(training.output.value[0],
              static_cast<double>(-Real(2) / 3 * invStd), 4e-16);
}

/// The sums about the first element may overflow, even if the mean does not.
TEST(ReferenceForwardTest, NoBoundIfSumsMayOverflow) {
  Forward forward({4, 1});
  forward.set(Role::Input, {-1e38, 1e38, 1e38, 1e38});
  ReferenceTraining training = computeReferenceTraining(forward.problem);
  EXPECT_EQ(training.mean.bound[0], kInfinity);
  forward.set(Role::Input, {-1e22, 1e22, 1e22, 1e22});
  training = computeReferenceTraining(forward.problem);
  EXPECT_LT(training.mean.bound[0], 1e18);
  EXPECT_EQ(training.variance.bound[0], kInfinity);
  // Equal elements have no sums.
  forward.set(Role::Input, {3e38, 3e38, 3e38, 3e38});
  training = computeReferenceTraining(forward.problem);
  EXPECT_EQ(training.variance.value[0], 0);
  EXPECT_LT(training.variance.bound[0], 1e-300);
}

/// In f32, an epsilon below its range is 0.
TEST(ReferenceForwardTest, EpsilonIsRounded) {
  for (ElementType type : {ElementType::F32, ElementType::F64}) {
    Forward forward({4, 1}, type);
    forward.set(Role::Input, {2, 2, 2, 2});
    forward.problem.epsilon = 0x1p-160;
    double expected = type == ElementType::F32 ? kInfinity : 0x1p80;
    EXPECT_EQ(computeReferenceTraining(forward.problem).invStd.value[0],
              expected);
    forward.set(Role::Mean, {1});
    forward.set(Role::Variance, {0});
    EXPECT_EQ(computeReferenceInference(forward.problem).value[0], expected);
  }
}

/// The sum of equal elements is rounded, but their mean is one of them.
TEST(ReferenceForwardTest, EqualElements) {
  for (int64_t count : {3001, 4097, 5003, 6007}) {
    Forward forward({count, 1}, ElementType::F64);
    forward.set(Role::Input,
                std::vector<double>(static_cast<size_t>(count), 0.1));
    ReferenceTraining training = computeReferenceTraining(forward.problem);
    EXPECT_EQ(training.mean.value[0], 0.1);
    EXPECT_EQ(training.variance.value[0], 0) << count;
  }
}
