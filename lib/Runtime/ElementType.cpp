//===- ElementType.cpp - element types of arrays ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The two 16-bit formats are converted by integer arithmetic on the bits of the
// double, so that the result depends neither on the compiler's half types nor
// on the floating-point environment.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Runtime/ElementType.h"

#include <cassert>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

namespace bngrad {

namespace {
/// An IEEE 754 interchange format of 16 bits.
struct SmallFormat {
  int exponentBits;
  int mantissaBits;

  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  uint32_t infinity() const {
    return ((1u << exponentBits) - 1) << mantissaBits;
  }
};
} // namespace

static constexpr SmallFormat kHalf = {5, 10};
static constexpr SmallFormat kBFloat = {8, 7};

static constexpr int kDoubleBias = 1023;
static constexpr int kDoubleMantissaBits = 52;
static constexpr uint64_t kDoubleMantissaMask =
    (uint64_t(1) << kDoubleMantissaBits) - 1;

static uint16_t encode(SmallFormat format, double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  uint32_t sign = static_cast<uint32_t>(bits >> 63) << 15;
  int exponent = static_cast<int>(bits >> kDoubleMantissaBits) & 0x7ff;
  uint64_t mantissa = bits & kDoubleMantissaMask;

  int shift = kDoubleMantissaBits - format.mantissaBits;
  if (exponent == 0x7ff) {
    uint32_t result = format.infinity();
    if (mantissa != 0)
      result |= (1u << (format.mantissaBits - 1)) |
                static_cast<uint32_t>(mantissa >> shift);
    return static_cast<uint16_t>(sign | result);
  }
  // Subnormal doubles are far below half the smallest number of either format.
  if (exponent == 0)
    return static_cast<uint16_t>(sign);

  uint64_t significand = mantissa | (uint64_t(1) << kDoubleMantissaBits);
  int biased = exponent - kDoubleBias + format.bias();
  uint32_t base = 0;
  if (biased >= 1) {
    // The significand brings its own leading one, which adds 1 here.
    base = static_cast<uint32_t>(biased - 1) << format.mantissaBits;
  } else {
    shift += 1 - biased;
    if (shift > kDoubleMantissaBits + 1)
      return static_cast<uint16_t>(sign);
  }
  uint64_t quotient = significand >> shift;
  uint64_t remainder = significand & ((uint64_t(1) << shift) - 1);
  uint64_t half = uint64_t(1) << (shift - 1);
  if (remainder > half || (remainder == half && (quotient & 1) != 0))
    ++quotient;
  // A carry out of the mantissa increments the exponent: from subnormal to
  // normal, to the next binade, or to infinity.
  uint32_t result = base + static_cast<uint32_t>(quotient);
  if (result > format.infinity())
    result = format.infinity();
  return static_cast<uint16_t>(sign | result);
}

static double decode(SmallFormat format, uint16_t encoded) {
  uint64_t sign = static_cast<uint64_t>(encoded >> 15) << 63;
  uint32_t magnitude = encoded & 0x7fffu;
  uint32_t exponent = magnitude >> format.mantissaBits;
  uint64_t mantissa = magnitude & ((1u << format.mantissaBits) - 1);

  uint64_t bits;
  if (exponent == 0) {
    double scale = std::ldexp(1.0, 1 - format.bias() - format.mantissaBits);
    double value = static_cast<double>(mantissa) * scale;
    std::memcpy(&bits, &value, sizeof(bits));
  } else {
    uint64_t doubleExponent =
        magnitude >= format.infinity()
            ? 0x7ff
            : static_cast<uint64_t>(static_cast<int>(exponent) - format.bias() +
                                    kDoubleBias);
    bits = (doubleExponent << kDoubleMantissaBits) |
           (mantissa << (kDoubleMantissaBits - format.mantissaBits));
  }
  bits |= sign;
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// `value` rounded toward zero and clamped to the range of `T`; 0 for NaN.
template <typename T> static T truncate(double value) {
  double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (std::isnan(value))
    return 0;
  if (value >= end)
    return std::numeric_limits<T>::max();
  if (value < -end)
    return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

template <typename T> static T load(const void *data, int64_t index) {
  T value;
  std::memcpy(&value,
              static_cast<const char *>(data) +
                  index * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

template <typename T> static void store(void *data, int64_t index, T value) {
  std::memcpy(static_cast<char *>(data) +
                  index * static_cast<int64_t>(sizeof(T)),
              &value, sizeof(T));
}

size_t byteSize(ElementType type) {
  switch (type) {
  case ElementType::F16:
  case ElementType::BF16:
  case ElementType::I16:
    return 2;
  case ElementType::F32:
  case ElementType::I32:
    return 4;
  case ElementType::F64:
  case ElementType::I64:
    return 8;
  case ElementType::I1:
  case ElementType::I8:
    return 1;
  }
  assert(false && "unknown element type");
  return 0;
}

const char *name(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return "f16";
  case ElementType::BF16:
    return "bf16";
  case ElementType::F32:
    return "f32";
  case ElementType::F64:
    return "f64";
  case ElementType::I1:
    return "i1";
  case ElementType::I8:
    return "i8";
  case ElementType::I16:
    return "i16";
  case ElementType::I32:
    return "i32";
  case ElementType::I64:
    return "i64";
  }
  assert(false && "unknown element type");
  return "";
}

bool isFloat(ElementType type) {
  switch (type) {
  case ElementType::F16:
  case ElementType::BF16:
  case ElementType::F32:
  case ElementType::F64:
    return true;
  case ElementType::I1:
  case ElementType::I8:
  case ElementType::I16:
  case ElementType::I32:
  case ElementType::I64:
    return false;
  }
  assert(false && "unknown element type");
  return false;
}

namespace {
/// Numbers of a float type.
struct FloatLimits {
  double unitRoundoff, smallestSubnormal, largestFinite;
};
} // namespace

static FloatLimits getLimits(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return {0x1p-11, 0x1p-24, 65504};
  case ElementType::BF16:
    return {0x1p-8, 0x1p-133, 0x1.fep127};
  case ElementType::F32:
    return {0x1p-24, 0x1p-149, FLT_MAX};
  case ElementType::F64:
    return {0x1p-53, 0x1p-1074, DBL_MAX};
  default:
    break;
  }
  assert(false && "expected a float type");
  return {};
}

double unitRoundoff(ElementType type) { return getLimits(type).unitRoundoff; }

double smallestSubnormal(ElementType type) {
  return getLimits(type).smallestSubnormal;
}

double largestFinite(ElementType type) { return getLimits(type).largestFinite; }

double loadAsDouble(ElementType type, const void *data, int64_t index) {
  switch (type) {
  case ElementType::F16:
    return decode(kHalf, load<uint16_t>(data, index));
  case ElementType::BF16:
    return decode(kBFloat, load<uint16_t>(data, index));
  case ElementType::F32:
    return load<float>(data, index);
  case ElementType::F64:
    return load<double>(data, index);
  case ElementType::I1:
    return load<uint8_t>(data, index) != 0;
  case ElementType::I8:
    return load<int8_t>(data, index);
  case ElementType::I16:
    return load<int16_t>(data, index);
  case ElementType::I32:
    return load<int32_t>(data, index);
  case ElementType::I64:
    return static_cast<double>(load<int64_t>(data, index));
  }
  assert(false && "unknown element type");
  return 0;
}

void storeRounded(ElementType type, void *data, int64_t index, double value) {
  switch (type) {
  case ElementType::F16:
    return store<uint16_t>(data, index, encode(kHalf, value));
  case ElementType::BF16:
    return store<uint16_t>(data, index, encode(kBFloat, value));
  case ElementType::F32:
    return store<float>(data, index, static_cast<float>(value));
  case ElementType::F64:
    return store<double>(data, index, value);
  case ElementType::I1:
    return store<uint8_t>(data, index, value != 0);
  case ElementType::I8:
    return store(data, index, truncate<int8_t>(value));
  case ElementType::I16:
    return store(data, index, truncate<int16_t>(value));
  case ElementType::I32:
    return store(data, index, truncate<int32_t>(value));
  case ElementType::I64:
    return store(data, index, truncate<int64_t>(value));
  }
  assert(false && "unknown element type");
}

double roundTo(ElementType type, double value) {
  uint64_t element = 0;
  storeRounded(type, &element, 0, value);
  return loadAsDouble(type, &element, 0);
}

double nextNumber(ElementType type, double value, bool upwards) {
  assert(isFloat(type) && roundTo(type, value) == value &&
         "expected a number of a float type");
  if (value == 0)
    return upwards ? smallestSubnormal(type) : -smallestSubnormal(type);
  // Below the sign, the bits of floats order them by magnitude.
  uint64_t bits = 0;
  storeRounded(type, &bits, 0, value);
  bits += (value > 0) == upwards ? 1 : -1;
  return loadAsDouble(type, &bits, 0);
}

} // namespace bngrad
