//===- Convert.cpp - conversions --------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

#include <algorithm>
#include <cmath>

namespace ptx {

static FloatFormat formatOf(Type type) {
  switch (type) {
  case Type::F16:
  case Type::F16x2:
    return kHalf;
  case Type::BF16:
  case Type::BF16x2:
    return kBFloat;
  case Type::TF32:
    return kTensorFloat;
  default:
    return kSingle;
  }
}

static double flush(double value) {
  // Flush values below the smallest normal single.
  return std::fabs(value) < 0x1p-126 ? std::copysign(0.0, value) : value;
}

/// The integer in the low bits; one of 64 bits as if it were signed.
static int64_t extend(Type type, uint64_t bits) {
  switch (type) {
  case Type::U8:
    return uint8_t(bits);
  case Type::U16:
    return uint16_t(bits);
  case Type::U32:
    return uint32_t(bits);
  case Type::S8:
    return int8_t(bits);
  case Type::S16:
    return int16_t(bits);
  case Type::S32:
    return int32_t(bits);
  default:
    return int64_t(bits);
  }
}

/// The value of a float or integer source; an integer that is too wide is
/// rounded to odd.
static double readValue(Type type, uint64_t bits) {
  switch (type) {
  case Type::F64:
    return fromBits<double>(bits);
  case Type::F32:
    return fromBits<float>(bits);
  case Type::F16:
    return widen(bits & 0xFFFF, kHalf);
  case Type::BF16:
    return widen(bits & 0xFFFF, kBFloat);
  case Type::U8:
  case Type::U16:
  case Type::U32:
  case Type::S8:
  case Type::S16:
  case Type::S32:
    return double(extend(type, bits));
  case Type::U64:
    return fromUnsigned(bits);
  case Type::S64:
    return fromInteger(int64_t(bits));
  default:
    return 0;
  }
}

/// Converts a double to the float type of `inst`.
static uint64_t writeFloat(const Inst &inst, double value) {
  if (inst.saturate)
    value = value > 1 ? 1 : value > 0 ? value : 0;
  if (inst.relu)
    value = value > 0 || std::isnan(value) ? value : 0;
  if (inst.type == Type::F64)
    return toBits(value);
  FloatFormat format = formatOf(inst.type);
  uint32_t bits = narrow(value, format, inst.round, inst.mode & 1);
  if (inst.type == Type::TF32)
    bits <<= 13;
  if (inst.type == Type::F32 && inst.flushSubnormals &&
      !(bits & format.infinity()))
    bits &= format.signBit();
  return bits;
}

/// Converts an integer source to f64 with a single rounding, by the mode of
/// `inst`.
static double integerToDouble(const Inst &inst, uint64_t bits) {
  // The compiler's conversion of an unsigned zero would be -0 when rounding
  // down.
  if (bits == 0)
    return 0;
  RoundingScope scope(inst.round);
  volatile double result;
  if (inst.sourceType == Type::U64) {
    volatile uint64_t value = bits;
    result = double(value);
  } else {
    volatile int64_t value = int64_t(bits);
    result = double(value);
  }
  return result;
}

static void executeToFloat(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  uint64_t *d = warp.out(inst.dest[0]);
  bool flushInput = inst.flushSubnormals && inst.sourceType == Type::F32;
  bool toInteger = inst.mode & 2;
  bool wideInteger = inst.type == Type::F64 && (inst.sourceType == Type::U64 ||
                                                inst.sourceType == Type::S64);
  forLanes(mask, [&](unsigned lane) {
    if (wideInteger) {
      d[lane] = toBits(integerToDouble(inst, a[lane]));
      return;
    }
    double value = readValue(inst.sourceType, a[lane]);
    if (flushInput)
      value = flush(value);
    if (toInteger)
      value = roundToInteger(value, inst.round);
    d[lane] = writeFloat(inst, value);
  });
}

/// Converts two singles to a pair of f16 or bf16; the first becomes the upper
/// half.
static void executeToPair(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    uint64_t high = writeFloat(inst, fromBits<float>(a[lane]));
    uint64_t low = writeFloat(inst, fromBits<float>(b[lane]));
    d[lane] = high << 16 | low;
  });
}

/// The range of an integer type as doubles, [low, high), and the result for
/// NaN.
static uint64_t toInteger(Type type, double value, bool wideSource) {
  unsigned bits = byteWidth(type) * 8;
  bool sign = isSigned(type);
  uint64_t mask = ~uint64_t(0) >> (64 - bits);
  uint64_t most = sign ? mask >> 1 : mask;
  uint64_t least = sign ? ~(mask >> 1) : 0;
  if (std::isnan(value)) {
    if (bits < 64 && !wideSource)
      return 0;
    return uint64_t(1) << (bits - 1);
  }
  if (value >= std::ldexp(1.0, sign ? bits - 1 : bits))
    return most;
  if (sign ? value < -std::ldexp(1.0, bits - 1) : value < 0)
    return least;
  return sign ? uint64_t(int64_t(value)) : uint64_t(value);
}

static uint64_t fitRegister(const Inst &inst, uint64_t value) {
  // A value that is narrower than the register is extended to it.
  unsigned bits = byteWidth(inst.type) * 8;
  uint64_t mask = ~uint64_t(0) >> (64 - bits);
  value &= mask;
  if (isSigned(inst.type) && (value >> (bits - 1) & 1))
    value |= ~mask;
  return inst.destBytes >= 8
             ? value
             : value & ((uint64_t(1) << inst.destBytes * 8) - 1);
}

static void executeFloatToInteger(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  uint64_t *d = warp.out(inst.dest[0]);
  bool flushInput = inst.flushSubnormals && inst.sourceType == Type::F32;
  forLanes(mask, [&](unsigned lane) {
    double value = readValue(inst.sourceType, a[lane]);
    if (flushInput)
      value = flush(value);
    value = roundToInteger(value, inst.round);
    d[lane] = fitRegister(
        inst, toInteger(inst.type, value, inst.sourceType == Type::F64));
  });
}

/// Clamps to the range of a type; the source is below 2^63 or unsigned.
static uint64_t clampInteger(const Inst &inst, int64_t value) {
  unsigned bits = byteWidth(inst.type) * 8;
  uint64_t mask = ~uint64_t(0) >> (64 - bits);
  bool negative = value < 0 && inst.sourceType != Type::U64;
  if (!isSigned(inst.type))
    return negative ? 0 : uint64_t(value) > mask ? mask : value;
  int64_t most = mask >> 1;
  if (negative)
    return value < -most - 1 ? -most - 1 : value;
  return uint64_t(value) > uint64_t(most) ? most : value;
}

static void executeIntegerToInteger(Warp &warp, const Inst &inst,
                                    uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    int64_t value = extend(inst.sourceType, a[lane]);
    d[lane] = fitRegister(inst, inst.saturate ? clampInteger(inst, value)
                                              : uint64_t(value));
  });
}

static bool isConvertible(Type type) {
  return (isFloat(type) || isInteger(type)) &&
         !(type >= Type::B8 && type <= Type::B128);
}

static bool decodeConvert(Decoder &decoder, Inst &inst) {
  bool hasIntegerRound = decoder.takeIntegerRound(inst.round);
  bool hasRound = !hasIntegerRound && decoder.takeRound(inst.round);
  // The manual's order is .ftz .relu .satfinite .sat; some compilers write
  // .satfinite first.
  for (;;) {
    if (decoder.take("ftz"))
      inst.flushSubnormals = true;
    else if (decoder.take("relu"))
      inst.relu = true;
    else if (decoder.take("satfinite"))
      inst.mode |= 1;
    else if (decoder.take("sat"))
      inst.saturate = true;
    else
      break;
  }
  inst.type = decoder.takeType();
  inst.sourceType = decoder.takeType();
  if (!isConvertible(inst.type) || !isConvertible(inst.sourceType) ||
      inst.sourceType == Type::TF32)
    return decoder.unknown();
  unsigned numSources = 1;
  if (inst.type == Type::F16x2 || inst.type == Type::BF16x2) {
    if (inst.sourceType != Type::F32 || !hasRound)
      return decoder.unknown();
    inst.handler = executeToPair;
    numSources = 2;
  } else if (byteWidth(inst.sourceType) == 8 &&
             inst.sourceType == Type::F32x2) {
    return decoder.unknown();
  } else if (isFloat(inst.type)) {
    if (inst.sourceType == Type::F16x2 || inst.sourceType == Type::BF16x2 ||
        inst.type == Type::F32x2)
      return decoder.unknown();
    if (hasIntegerRound)
      inst.mode |= 2;
    inst.handler = executeToFloat;
  } else if (isFloat(inst.sourceType)) {
    if (!hasIntegerRound)
      return decoder.unknown();
    inst.handler = executeFloatToInteger;
  } else {
    inst.handler = executeIntegerToInteger;
    // Only saturation reads the bytes above a narrower type.
    if (!inst.saturate)
      inst.readBytes =
          lowBytes(std::min(byteWidth(inst.type), byteWidth(inst.sourceType)));
  }
  inst.destBytes =
      decoder.registerBytes(decoder.operand(0), byteWidth(inst.type));
  if (!decoder.dest(inst, 0, inst.type))
    return false;
  for (unsigned i = 1; i <= numSources; ++i)
    if (!decoder.source(inst, i, inst.sourceType))
      return false;
  return true;
}

void addConvertInstructions(DecodeTable &table) {
  table["cvt"] = decodeConvert;
}

} // namespace ptx
