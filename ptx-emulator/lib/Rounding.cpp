//===- Rounding.cpp - floating-point formats and rounding -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rounding.h"

#include <cmath>

namespace ptx {

/// Whether rounding increases the magnitude by one unit; `dropped` are the lost
/// bits, `half` is half a unit of them.
static bool roundsUp(uint64_t kept, uint64_t dropped, uint64_t half,
                     bool negative, Round round) {
  switch (round) {
  case Round::NearestEven:
    return dropped > half || (dropped == half && (kept & 1));
  case Round::NearestAway:
    return dropped >= half;
  case Round::Zero:
    return false;
  case Round::Down:
    return negative && dropped != 0;
  case Round::Up:
    return !negative && dropped != 0;
  }
  return false;
}

uint32_t narrow(double value, FloatFormat format, Round round, bool saturate) {
  uint64_t bits = toBits(value);
  bool negative = bits >> 63;
  uint32_t sign = negative ? format.signBit() : 0;
  int exponent = int(bits >> 52 & 0x7FF);
  uint64_t fraction = bits & ((uint64_t(1) << 52) - 1);

  if (exponent == 0x7FF && fraction != 0)
    return format.signBit() - 1;
  if (exponent == 0x7FF)
    return sign | (saturate ? format.infinity() - 1 : format.infinity());
  if (exponent == 0 && fraction == 0)
    return sign;

  // value = significand * 2^(scale - 52). Bit 52 is set unless the double is
  // subnormal, which is far below every format here.
  uint64_t significand = fraction | (exponent ? uint64_t(1) << 52 : 0);
  int scale = (exponent ? exponent : 1) - 1023;
  int bias = (1 << (format.exponentBits - 1)) - 1;
  int minScale = 1 - bias;

  unsigned shift = 52 - format.fractionBits;
  if (scale < minScale) {
    // Subnormal: fewer bits are kept. Above 62, only the sticky bit remains.
    unsigned extra = minScale - scale;
    shift = shift + extra > 62 ? 62 : shift + extra;
    if (shift == 62)
      significand = 1;
  }
  uint64_t kept = significand >> shift;
  uint64_t dropped = significand & ((uint64_t(1) << shift) - 1);
  if (roundsUp(kept, dropped, uint64_t(1) << (shift - 1), negative, round))
    ++kept;

  // A carry out of the fraction increments the exponent.
  uint64_t encoded = kept;
  if (scale >= minScale)
    encoded += uint64_t(scale + bias - 1) << format.fractionBits;
  if (encoded >= format.infinity()) {
    bool away = round == Round::NearestEven || round == Round::NearestAway ||
                (round == Round::Down && negative) ||
                (round == Round::Up && !negative);
    return sign |
           (away && !saturate ? format.infinity() : format.infinity() - 1);
  }
  return sign | uint32_t(encoded);
}

double widen(uint32_t bits, FloatFormat format) {
  // All formats but half are the upper bits of a single.
  if (format.exponentBits == 8)
    return fromBits<float>(bits << (23 - format.fractionBits));
  uint32_t exponent = bits >> 10 & 0x1F, fraction = bits & 0x3FF;
  double magnitude;
  if (exponent == 0x1F)
    magnitude = fraction ? NAN : INFINITY;
  else if (exponent == 0)
    magnitude = fraction * 0x1p-24;
  else
    magnitude = fromBits<double>(uint64_t(exponent - 15 + 1023) << 52 |
                                 uint64_t(fraction) << 42);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/// Makes the last bit of `sum` odd if the exact value is sum + error.
static double stick(double sum, double error) {
  uint64_t bits = toBits(sum);
  if (error == 0 || !std::isfinite(sum) || (bits & 1))
    return sum;
  // Toward the exact value: the magnitude grows if error has the sign of sum.
  if (sum == 0)
    return error;
  return fromBits<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

double addToOdd(double a, double b) {
  double sum = a + b;
  double bPart = sum - a;
  double error = (a - (sum - bPart)) + (b - bPart);
  return stick(sum, std::isfinite(sum) ? error : 0);
}

double fmaToOdd(double a, double b, double c) {
  // Operands of at most 24 bits: the product is exact.
  return addToOdd(a * b, c);
}

double roundToInteger(double value, Round round) {
  switch (round) {
  case Round::NearestEven:
    return std::nearbyint(value);
  case Round::NearestAway:
    return std::round(value);
  case Round::Zero:
    return std::trunc(value);
  case Round::Down:
    return std::floor(value);
  case Round::Up:
    return std::ceil(value);
  }
  return value;
}

double fromUnsigned(uint64_t value) {
  if (value >> 53 == 0)
    return double(value);
  unsigned shift = 11 - __builtin_clzll(value);
  uint64_t kept = value >> shift;
  if (value & ((uint64_t(1) << shift) - 1))
    kept |= 1;
  return std::ldexp(double(kept), shift);
}

double fromInteger(int64_t value) {
  return value < 0 ? -fromUnsigned(-uint64_t(value)) : fromUnsigned(value);
}

} // namespace ptx
