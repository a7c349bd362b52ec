//===- Rounding.h - floating-point formats and rounding ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every result is rounded once. narrow() rounds the exact value of a double. A
// result that does not fit a double is first rounded to odd, which keeps the
// last bit sticky and so does not affect a later rounding to fewer bits.
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_ROUNDING_H
#define PTX_EMULATOR_LIB_ROUNDING_H

#include "Types.h"

#include <cfenv>

namespace ptx {

enum class Round : uint8_t { NearestEven, NearestAway, Zero, Down, Up };

struct FloatFormat {
  unsigned exponentBits;
  unsigned fractionBits;

  uint32_t signBit() const { return 1u << (exponentBits + fractionBits); }
  uint32_t infinity() const {
    return ((1u << exponentBits) - 1) << fractionBits;
  }
};

inline constexpr FloatFormat kHalf = {5, 10};
inline constexpr FloatFormat kBFloat = {8, 7};
inline constexpr FloatFormat kSingle = {8, 23};
/// The upper 19 bits of a single.
inline constexpr FloatFormat kTensorFloat = {8, 10};

/// Rounds `value` to `format`. A NaN gives the canonical NaN (all ones but the
/// sign); overflow gives infinity, or the largest finite number if `round`
/// requires it or `saturate` is set.
uint32_t narrow(double value, FloatFormat format, Round round,
                bool saturate = false);

/// The exact value of `bits`.
double widen(uint32_t bits, FloatFormat format);

/// a + b and a * b + c, rounded to odd.
double addToOdd(double a, double b);
double fmaToOdd(double a, double b, double c);

/// `value` as an integer in the floating-point format.
double roundToInteger(double value, Round round);

/// The double nearest to an integer, rounded to odd.
double fromInteger(int64_t value);
double fromUnsigned(uint64_t value);

/// Sets the processor's rounding mode during its lifetime. Computations in its
/// scope must use volatile variables.
class RoundingScope {
public:
  explicit RoundingScope(Round round) {
    switch (round) {
    case Round::Zero:
      fesetround(FE_TOWARDZERO);
      break;
    case Round::Down:
      fesetround(FE_DOWNWARD);
      break;
    case Round::Up:
      fesetround(FE_UPWARD);
      break;
    default:
      break;
    }
  }
  ~RoundingScope() { fesetround(FE_TONEAREST); }
  RoundingScope(const RoundingScope &) = delete;
  RoundingScope &operator=(const RoundingScope &) = delete;
};

} // namespace ptx

#endif // PTX_EMULATOR_LIB_ROUNDING_H
