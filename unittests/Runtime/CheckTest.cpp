//===- CheckTest.cpp - comparison with the reference ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReferenceCase.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

using namespace bngrad;

TEST(CheckTest, IsWithinBound) {
  constexpr ElementType kF32 = ElementType::F32;
  EXPECT_TRUE(isWithinBound(1.5, 1, 0.5, kF32));
  EXPECT_FALSE(isWithinBound(1.5, 1, 0.4999, kF32));
  EXPECT_FALSE(isWithinBound(0.5, 1, 0.4999, kF32));
  EXPECT_TRUE(isWithinBound(1, 1, 0, kF32));
  EXPECT_TRUE(isWithinBound(-0.0, 0.0, 0, kF32));
  EXPECT_TRUE(isWithinBound(kNaN, kNaN, kNaN, kF32));
  EXPECT_FALSE(isWithinBound(kNaN, 1, kInfinity, kF32));
  EXPECT_FALSE(isWithinBound(1, kNaN, kNaN, kF32));
  EXPECT_FALSE(isWithinBound(1, kNaN, kInfinity, kF32));
  EXPECT_TRUE(isWithinBound(kInfinity, kInfinity, kInfinity, kF32));
  EXPECT_FALSE(isWithinBound(-kInfinity, kInfinity, kInfinity, kF32));
  EXPECT_FALSE(isWithinBound(1e38, kInfinity, kInfinity, kF32));
  EXPECT_FALSE(isWithinBound(kInfinity, 1, 2, kF32));
  EXPECT_FALSE(isWithinBound(kInfinity, kNaN, kNaN, kF32));
}

TEST(CheckTest, IsWithinBoundNearOverflow) {
  constexpr ElementType kF16 = ElementType::F16;
  // 65520 and above round to infinity.
  EXPECT_TRUE(isWithinBound(kInfinity, 65530, 20, kF16));
  EXPECT_TRUE(isWithinBound(65504, 65530, 20, kF16));
  EXPECT_FALSE(isWithinBound(65504, 65530, 5, kF16));
  EXPECT_FALSE(isWithinBound(-kInfinity, 65530, 20, kF16));
  EXPECT_TRUE(isWithinBound(kInfinity, 65510, 20, kF16));
  EXPECT_FALSE(isWithinBound(kInfinity, 65510, 5, kF16));
  EXPECT_TRUE(isWithinBound(-kInfinity, -1e9, 20, kF16));
  EXPECT_FALSE(isWithinBound(-65504, -1e9, 20, kF16));
  // Between the two ends as well.
  EXPECT_TRUE(isWithinBound(65472, 65530, 200, kF16));
}

TEST(CheckTest, FlagsOneWrongElement) {
  ReferenceResult reference = {{3, -7, 0.5, 11, 2}, {0.5, 0.125, 1, 0.25, 0.5}};
  std::vector<double> result = {3, -7.25, 1, 11, 2.0625};
  CheckSummary summary =
      checkResult(ElementType::F64, result.data(), reference);
  // Twice its bound; the largest error, 0.5, is not the worst.
  EXPECT_FALSE(summary.ok);
  EXPECT_EQ(summary.index, 1);
  EXPECT_EQ(summary.maxError, 0.25);
  EXPECT_EQ(summary.bound, 0.125);

  result[1] = -7.125;
  summary = checkResult(ElementType::F64, result.data(), reference);
  EXPECT_TRUE(summary.ok);
  EXPECT_EQ(summary.index, 1);
  EXPECT_EQ(summary.maxError, 0.125);

  for (double wrong : {kNaN, kInfinity, -kInfinity}) {
    result[3] = wrong;
    summary = checkResult(ElementType::F64, result.data(), reference);
    EXPECT_FALSE(summary.ok);
    EXPECT_EQ(summary.index, 3);
    EXPECT_EQ(summary.maxError, kInfinity);
    EXPECT_EQ(summary.bound, 0.25);
  }
}

static CheckSummary checkAsF16(const std::vector<double> &result,
                               const ReferenceResult &reference) {
  std::vector<uint16_t> data(result.size());
  for (size_t i = 0; i < result.size(); ++i)
    storeRounded(ElementType::F16, data.data(), static_cast<int64_t>(i),
                 result[i]);
  return checkResult(ElementType::F16, data.data(), reference);
}

TEST(CheckTest, SpecialValues) {
  ReferenceResult reference = {{kNaN, kInfinity, 65530, 1},
                               {kNaN, kInfinity, 20, 0.25}};
  std::vector<double> result = {kNaN, kInfinity, kInfinity, 1};
  CheckSummary summary = checkAsF16(result, reference);
  EXPECT_TRUE(summary.ok);
  EXPECT_EQ(summary.index, 2);
  EXPECT_EQ(summary.maxError, 20);
  for (size_t i : {0, 1}) {
    std::vector<double> wrong = result;
    wrong[i] = 7;
    summary = checkAsF16(wrong, reference);
    EXPECT_FALSE(summary.ok);
    EXPECT_EQ(summary.index, static_cast<int64_t>(i));
    EXPECT_EQ(summary.maxError, kInfinity);
  }
}

TEST(CheckTest, NoElements) {
  CheckSummary summary = checkResult(ElementType::F32, nullptr, {});
  EXPECT_TRUE(summary.ok);
  EXPECT_EQ(summary.maxError, 0);
  EXPECT_EQ(summary.index, -1);
}
