//===- ElementTypeTest.cpp - rounding and sizes -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReferenceCase.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace bngrad;

static constexpr ElementType kSmallFloats[] = {ElementType::F16,
                                               ElementType::BF16};

static uint16_t bitsOf(ElementType type, double value) {
  uint16_t bits = 0;
  storeRounded(type, &bits, 0, value);
  return bits;
}

static double fromBits(ElementType type, uint16_t bits) {
  return loadAsDouble(type, &bits, 0);
}

/// Pattern of infinity; those below it are the non-negative finite numbers in
/// ascending order.
static uint16_t infinityBits(ElementType type) {
  return type == ElementType::F16 ? 0x7c00 : 0x7f80;
}

TEST(ElementTypeTest, Properties) {
  struct {
    ElementType type;
    const char *name;
    size_t size;
    bool isFloat;
  } const kTypes[] = {
      {ElementType::F16, "f16", 2, true},  {ElementType::BF16, "bf16", 2, true},
      {ElementType::F32, "f32", 4, true},  {ElementType::F64, "f64", 8, true},
      {ElementType::I1, "i1", 1, false},   {ElementType::I8, "i8", 1, false},
      {ElementType::I16, "i16", 2, false}, {ElementType::I32, "i32", 4, false},
      {ElementType::I64, "i64", 8, false}};
  for (const auto &type : kTypes) {
    EXPECT_STREQ(name(type.type), type.name);
    EXPECT_EQ(byteSize(type.type), type.size);
    EXPECT_EQ(isFloat(type.type), type.isFloat);
  }
}

/// The constants agree with the arithmetic: 1 + u is halfway to the next
/// number, half the smallest subnormal is halfway to 0.
TEST(ElementTypeTest, ConstantsAgreeWithRounding) {
  for (ElementType type : {ElementType::F16, ElementType::BF16,
                           ElementType::F32, ElementType::F64}) {
    SCOPED_TRACE(name(type));
    double u = unitRoundoff(type);
    EXPECT_EQ(roundTo(type, 1 + u), 1);
    EXPECT_EQ(roundTo(type, 1 + 2 * u), 1 + 2 * u);
    double smallest = smallestSubnormal(type);
    EXPECT_GT(smallest, 0);
    EXPECT_EQ(roundTo(type, smallest), smallest);
    EXPECT_EQ(roundTo(type, smallest / 2), 0);
    double largest = largestFinite(type);
    EXPECT_EQ(roundTo(type, largest), largest);
    EXPECT_EQ(roundTo(type, largest * (1 + 2 * u)), kInfinity);
  }
  EXPECT_EQ(largestFinite(ElementType::F16), 65504);
  EXPECT_EQ(largestFinite(ElementType::BF16), 255 * std::ldexp(1.0, 120));
  EXPECT_EQ(largestFinite(ElementType::F32), FLT_MAX);
  EXPECT_EQ(largestFinite(ElementType::F64), DBL_MAX);
}

TEST(ElementTypeTest, EveryPatternRoundTrips) {
  for (ElementType type : kSmallFloats) {
    for (uint32_t pattern = 0; pattern <= 0xffff; ++pattern) {
      uint16_t bits = static_cast<uint16_t>(pattern);
      uint16_t magnitude = bits & 0x7fff;
      double value = fromBits(type, bits);
      uint16_t back = bitsOf(type, value);
      ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << pattern;
      ASSERT_EQ(std::isinf(value), magnitude == infinityBits(type)) << pattern;
      if (magnitude <= infinityBits(type)) {
        ASSERT_EQ(back, bits) << name(type) << " " << pattern;
        continue;
      }
      // A signaling NaN becomes quiet and keeps the rest of its payload.
      uint16_t quiet = type == ElementType::F16 ? 0x0200 : 0x0040;
      ASSERT_TRUE(std::isnan(value)) << pattern;
      ASSERT_EQ(back, bits | quiet) << name(type) << " " << pattern;
    }
  }
}

/// Checks values against their definition rather than the encoder.
TEST(ElementTypeTest, EveryPatternHasItsValue) {
  for (ElementType type : kSmallFloats) {
    int mantissaBits = type == ElementType::F16 ? 10 : 7;
    int bias = type == ElementType::F16 ? 15 : 127;
    for (int bits = 0; bits < infinityBits(type); ++bits) {
      int exponent = bits >> mantissaBits;
      int mantissa = bits & ((1 << mantissaBits) - 1);
      double expected = exponent == 0
                            ? std::ldexp(mantissa, 1 - bias - mantissaBits)
                            : std::ldexp(mantissa + (1 << mantissaBits),
                                         exponent - bias - mantissaBits);
      ASSERT_EQ(fromBits(type, static_cast<uint16_t>(bits)), expected) << bits;
      ASSERT_EQ(fromBits(type, static_cast<uint16_t>(bits | 0x8000)),
                -expected);
    }
  }
}

/// Between every two neighbours: the midpoint rounds to the even one, the
/// doubles next to it to the nearer one. All three are the midpoint after
/// rounding to float, so double rounding through float fails here.
TEST(ElementTypeTest, RoundsToNearestEvenBetweenAllNeighbours) {
  for (ElementType type : kSmallFloats) {
    for (uint16_t low = 0; low < infinityBits(type) - 1; ++low) {
      uint16_t high = low + 1;
      double middle = (fromBits(type, low) + fromBits(type, high)) / 2;
      uint16_t even = (low & 1) == 0 ? low : high;
      ASSERT_EQ(bitsOf(type, middle), even) << name(type) << " " << low;
      ASSERT_EQ(bitsOf(type, std::nextafter(middle, 0)), low);
      ASSERT_EQ(bitsOf(type, std::nextafter(middle, kInfinity)), high);
      ASSERT_EQ(bitsOf(type, -middle), even | 0x8000);
      ASSERT_EQ(bitsOf(type, -std::nextafter(middle, 0)), low | 0x8000);
      ASSERT_EQ(bitsOf(type, -std::nextafter(middle, kInfinity)),
                high | 0x8000);
    }
  }
}

TEST(ElementTypeTest, RoundsOnceNotThroughFloat) {
  double above = 1 + 0x1p-11 + 0x1p-40;
  ASSERT_EQ(static_cast<float>(above), 1 + 0x1p-11f);
  EXPECT_EQ(roundTo(ElementType::F16, above), 1 + 0x1p-10);
  double below = 1 + 0x3p-11 - 0x1p-40;
  ASSERT_EQ(static_cast<float>(below), 1 + 0x3p-11f);
  EXPECT_EQ(roundTo(ElementType::F16, below), 1 + 0x1p-10);
  EXPECT_EQ(roundTo(ElementType::F16, 1 + 0x3p-11), 1 + 0x1p-9);
  EXPECT_EQ(roundTo(ElementType::BF16, 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
  EXPECT_EQ(roundTo(ElementType::BF16, 1 + 0x3p-8 - 0x1p-40), 1 + 0x1p-7);
  // Subnormal, and the first bit lost is far below the last of float.
  EXPECT_EQ(roundTo(ElementType::F16, 0x1p-25 + 0x1p-77), 0x1p-24);
  EXPECT_EQ(roundTo(ElementType::BF16, 0x1p-134 + 0x1p-160), 0x1p-133);
}

TEST(ElementTypeTest, OverflowThreshold) {
  EXPECT_EQ(roundTo(ElementType::F16, 65519.99), 65504);
  EXPECT_EQ(roundTo(ElementType::F16, 65520), kInfinity);
  EXPECT_EQ(roundTo(ElementType::F16, -65519.99), -65504);
  EXPECT_EQ(roundTo(ElementType::F16, -65520), -kInfinity);
  EXPECT_EQ(roundTo(ElementType::F16, std::nextafter(65520, 0)), 65504);
  EXPECT_EQ(roundTo(ElementType::BF16, 0x1.fefffffp127), 0x1.fep127);
  EXPECT_EQ(roundTo(ElementType::BF16, 0x1.ffp127), kInfinity);
  EXPECT_EQ(roundTo(ElementType::F32, 0x1.fffffefp127), FLT_MAX);
  EXPECT_EQ(roundTo(ElementType::F32, 0x1.ffffffp127), kInfinity);
  for (ElementType type : kSmallFloats) {
    EXPECT_EQ(roundTo(type, DBL_MAX), kInfinity);
    EXPECT_EQ(roundTo(type, -DBL_MAX), -kInfinity);
    EXPECT_EQ(roundTo(type, kInfinity), kInfinity);
    EXPECT_EQ(roundTo(type, -kInfinity), -kInfinity);
  }
}

TEST(ElementTypeTest, Subnormals) {
  EXPECT_EQ(bitsOf(ElementType::F16, 0x1p-24), 0x0001);
  EXPECT_EQ(bitsOf(ElementType::F16, 0x1p-25), 0x0000);
  EXPECT_EQ(bitsOf(ElementType::F16, 0x3p-25), 0x0002);
  EXPECT_EQ(bitsOf(ElementType::F16, 0x3ffp-24), 0x03ff);
  // Rounding carries into the smallest normal number.
  EXPECT_EQ(bitsOf(ElementType::F16, 0x7ffp-25), 0x0400);
  EXPECT_EQ(bitsOf(ElementType::F16, 0x1p-14), 0x0400);
  EXPECT_EQ(bitsOf(ElementType::BF16, 0x1p-133), 0x0001);
  EXPECT_EQ(bitsOf(ElementType::BF16, 0x1p-134), 0x0000);
  EXPECT_EQ(bitsOf(ElementType::BF16, 0xffp-134), 0x0080);
  for (ElementType type : kSmallFloats) {
    EXPECT_EQ(bitsOf(type, DBL_MIN), 0x0000);
    EXPECT_EQ(bitsOf(type, -0x1p-1074), 0x8000);
    EXPECT_EQ(bitsOf(type, -0x1p-500), 0x8000);
  }
}

TEST(ElementTypeTest, SignedZeroAndNaN) {
  for (ElementType type : {ElementType::F16, ElementType::BF16,
                           ElementType::F32, ElementType::F64}) {
    SCOPED_TRACE(name(type));
    EXPECT_EQ(roundTo(type, 0.0), 0);
    EXPECT_FALSE(std::signbit(roundTo(type, 0.0)));
    EXPECT_EQ(roundTo(type, -0.0), 0);
    EXPECT_TRUE(std::signbit(roundTo(type, -0.0)));
    EXPECT_TRUE(std::isnan(roundTo(type, kNaN)));
    EXPECT_TRUE(std::isnan(roundTo(type, -kNaN)));
  }
  // A payload that the small formats cannot hold must not turn into infinity.
  uint64_t bits = 0x7ff0000000000001;
  double signaling;
  std::memcpy(&signaling, &bits, sizeof(bits));
  for (ElementType type : kSmallFloats)
    EXPECT_TRUE(std::isnan(roundTo(type, signaling)));
}

TEST(ElementTypeTest, F32AgreesWithTheCompiler) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100000; ++i) {
    uint64_t bits = random();
    // Exponents around the range of float, so that most are not infinite.
    bits = (bits & 0x800fffffffffffff) | (uint64_t(860 + bits % 300) << 52);
    double value;
    std::memcpy(&value, &bits, sizeof(bits));
    ASSERT_EQ(roundTo(ElementType::F32, value),
              static_cast<double>(static_cast<float>(value)));
    ASSERT_EQ(roundTo(ElementType::F64, value), value);
  }
}

TEST(ElementTypeTest, Integers) {
  EXPECT_EQ(roundTo(ElementType::I1, 0), 0);
  EXPECT_EQ(roundTo(ElementType::I1, -0.0), 0);
  EXPECT_EQ(roundTo(ElementType::I1, 0.25), 1);
  EXPECT_EQ(roundTo(ElementType::I1, -3), 1);
  EXPECT_EQ(roundTo(ElementType::I8, 127.9), 127);
  EXPECT_EQ(roundTo(ElementType::I8, -1000), -128);
  EXPECT_EQ(roundTo(ElementType::I16, 40000), 32767);
  EXPECT_EQ(roundTo(ElementType::I16, -2.5), -2);
  EXPECT_EQ(roundTo(ElementType::I32, 0x1p31), 0x1p31 - 1);
  EXPECT_EQ(roundTo(ElementType::I32, kNaN), 0);
  EXPECT_EQ(roundTo(ElementType::I64, 2.75), 2);
  EXPECT_EQ(roundTo(ElementType::I64, -2.75), -2);
  EXPECT_EQ(roundTo(ElementType::I64, 0x1.fffffffffffffp62),
            0x1.fffffffffffffp62);
  EXPECT_EQ(roundTo(ElementType::I64, -0x1p63), -0x1p63);
  int64_t stored;
  storeRounded(ElementType::I64, &stored, 0, 0x1p63);
  EXPECT_EQ(stored, INT64_MAX);
  storeRounded(ElementType::I64, &stored, 0, kInfinity);
  EXPECT_EQ(stored, INT64_MAX);
  storeRounded(ElementType::I64, &stored, 0, -kInfinity);
  EXPECT_EQ(stored, INT64_MIN);
  storeRounded(ElementType::I64, &stored, 0, kNaN);
  EXPECT_EQ(stored, 0);
}

/// Indexes find elements without alignment, and a write leaves the neighbours
/// unchanged.
TEST(ElementTypeTest, IndexesUnalignedElements) {
  for (ElementType type :
       {ElementType::F16, ElementType::BF16, ElementType::F32, ElementType::F64,
        ElementType::I1, ElementType::I64}) {
    SCOPED_TRACE(name(type));
    char bytes[1 + 4 * 8 + 1];
    std::memset(bytes, 0x5a, sizeof(bytes));
    char *data = bytes + 1;
    for (int64_t i = 0; i < 4; ++i)
      storeRounded(type, data, i, 0);
    storeRounded(type, data, 2, 1);
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(loadAsDouble(type, data, i), i == 2 ? 1 : 0);
    EXPECT_EQ(bytes[0], 0x5a);
    EXPECT_EQ(data[4 * byteSize(type)], 0x5a);
  }
}

TEST(ElementTypeTest, NextNumber) {
  for (ElementType type : {ElementType::F16, ElementType::BF16,
                           ElementType::F32, ElementType::F64}) {
    double least = smallestSubnormal(type);
    double infinity = std::numeric_limits<double>::infinity();
    EXPECT_EQ(nextNumber(type, 0.0, true), least);
    EXPECT_EQ(nextNumber(type, -0.0, false), -least);
    EXPECT_EQ(nextNumber(type, least, false), 0.0);
    EXPECT_EQ(nextNumber(type, -least, true), 0.0);
    EXPECT_EQ(nextNumber(type, 1.0, true), 1 + 2 * unitRoundoff(type));
    EXPECT_EQ(nextNumber(type, 1.0, false), 1 - unitRoundoff(type));
    EXPECT_EQ(nextNumber(type, -1.0, false), -1 - 2 * unitRoundoff(type));
    EXPECT_EQ(nextNumber(type, largestFinite(type), true), infinity);
    EXPECT_EQ(nextNumber(type, infinity, false), largestFinite(type));
  }
}
