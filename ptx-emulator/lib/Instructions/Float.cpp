//===- Float.cpp - f32 and f64 arithmetic -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arithmetic.h"

#include <cmath>
#include <limits>

namespace ptx {

namespace {

struct Add {
  template <typename T> static T apply(T a, T b, T) { return a + b; }
};
struct Sub {
  template <typename T> static T apply(T a, T b, T) { return a - b; }
};
struct Mul {
  template <typename T> static T apply(T a, T b, T) { return a * b; }
};
struct Fma {
  template <typename T> static T apply(T a, T b, T c) {
    return std::fma(a, b, c);
  }
};
struct Div {
  template <typename T> static T apply(T a, T b, T) { return a / b; }
};
struct Sqrt {
  template <typename T> static T apply(T a, T, T) { return std::sqrt(a); }
};
struct Reciprocal {
  template <typename T> static T apply(T a, T, T) { return T(1) / a; }
};
/// Functions that hardware only approximates: the emulator's results are
/// correctly rounded, or nearly so.
struct ReciprocalSqrt {
  template <typename T> static T apply(T a, T, T) {
    return T(1.0 / std::sqrt(double(a)));
  }
};
struct Exp2 {
  template <typename T> static T apply(T a, T, T) {
    return T(std::exp2(double(a)));
  }
};
struct Log2 {
  template <typename T> static T apply(T a, T, T) {
    return T(std::log2(double(a)));
  }
};
struct Sin {
  template <typename T> static T apply(T a, T, T) {
    return T(std::sin(double(a)));
  }
};
struct Cos {
  template <typename T> static T apply(T a, T, T) {
    return T(std::cos(double(a)));
  }
};
struct Tanh {
  template <typename T> static T apply(T a, T, T) {
    return T(std::tanh(double(a)));
  }
};
struct Neg {
  template <typename T> static T apply(T a, T, T) { return -a; }
};
struct Abs {
  template <typename T> static T apply(T a, T, T) { return std::fabs(a); }
};

/// The lesser of two numbers; -0 is less than +0, and a number is preferred to
/// a NaN.
struct Min {
  template <typename T> static T apply(T a, T b, T) {
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) ? b : a;
    if (a == b)
      return std::signbit(a) ? a : b;
    return a < b ? a : b;
  }
};
struct Max {
  template <typename T> static T apply(T a, T b, T) {
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) ? b : a;
    if (a == b)
      return std::signbit(a) ? b : a;
    return a > b ? a : b;
  }
};
template <typename Op> struct OfThree {
  template <typename T> static T apply(T a, T b, T c) {
    return Op::apply(Op::apply(a, b, c), c, c);
  }
};
template <typename Op> struct OfMagnitudes {
  template <typename T> static T apply(T a, T b, T c) {
    return Op::apply(std::fabs(a), std::fabs(b), std::fabs(c));
  }
};
/// With two operands, `c` is one of them.
template <typename Op> struct WithNaN {
  template <typename T> static T apply(T a, T b, T c) {
    if (std::isnan(a) || std::isnan(b) || std::isnan(c))
      return std::numeric_limits<T>::quiet_NaN();
    return Op::apply(a, b, c);
  }
};

} // namespace

template <typename T> static T flush(T value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(T(0), value)
                                                : value;
}

template <typename T> static uint64_t finish(T value, bool canonical) {
  // A single-precision NaN result has one encoding.
  if (sizeof(T) == 4 && canonical && std::isnan(value))
    return 0x7FFFFFFF;
  return toBits(value);
}

/// Rounds to nearest, without flushing or clamping.
template <typename Op, typename T, bool Canonical>
static void executePlain(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = inst.source.count > 1 ? warp.in(inst.source[1]) : a;
  const uint64_t *c = inst.source.count > 2 ? warp.in(inst.source[2]) : a;
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    d[lane] = finish(Op::apply(fromBits<T>(a[lane]), fromBits<T>(b[lane]),
                               fromBits<T>(c[lane])),
                     Canonical);
  });
}

/// With the modifiers of `inst`.
template <typename Op, typename T>
static T compute(const Inst &inst, T a, T b, T c) {
  volatile T x = a, y = b, z = c;
  if (inst.flushSubnormals) {
    x = flush<T>(x);
    y = flush<T>(y);
    z = flush<T>(z);
  }
  volatile T result;
  {
    RoundingScope scope(inst.round);
    result = Op::apply(T(x), T(y), T(z));
  }
  if (inst.flushSubnormals)
    result = flush<T>(result);
  if (inst.saturate)
    result = result > T(1) ? T(1) : result > T(0) ? T(result) : T(0);
  return result;
}

template <typename Op, typename T, bool Canonical>
static void executeGeneral(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = inst.source.count > 1 ? warp.in(inst.source[1]) : a;
  const uint64_t *c = inst.source.count > 2 ? warp.in(inst.source[2]) : a;
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    d[lane] = finish(compute<Op>(inst, fromBits<T>(a[lane]),
                                 fromBits<T>(b[lane]), fromBits<T>(c[lane])),
                     Canonical);
  });
}

/// Singles; all operands but the last are f16 or bf16.
template <typename Op>
static void executeMixed(Warp &warp, const Inst &inst, uint32_t mask) {
  FloatFormat format = inst.sourceType == Type::F16 ? kHalf : kBFloat;
  unsigned last = inst.source.count - 1;
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    float in[3] = {};
    for (unsigned i = 0; i < last; ++i)
      in[i] = widen(warp.in(inst.source[i])[lane] & 0xFFFF, format);
    in[last] = fromBits<float>(warp.in(inst.source[last])[lane]);
    d[lane] = finish(compute<Op>(inst, in[0], in[1], in[2]), true);
  });
}

/// Two singles in 64 bits.
template <typename Op>
static void executePair(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *in[3];
  for (unsigned i = 0; i < 3; ++i)
    in[i] = warp.in(inst.source[i < inst.source.count ? i : 0]);
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    uint64_t result = 0;
    for (unsigned half = 0; half < 64; half += 32) {
      float value = compute<Op>(inst, fromBits<float>(in[0][lane] >> half),
                                fromBits<float>(in[1][lane] >> half),
                                fromBits<float>(in[2][lane] >> half));
      result |= finish(value, true) << half;
    }
    d[lane] = result;
  });
}

template <typename Op, bool Canonical = true>
static bool finishDecoding(Decoder &decoder, Inst &inst, unsigned numSources) {
  inst.type = decoder.takeType();
  bool plain = inst.round == Round::NearestEven && !inst.flushSubnormals &&
               !inst.saturate;
  if (inst.type == Type::F32)
    inst.handler = plain ? executePlain<Op, float, Canonical>
                         : executeGeneral<Op, float, Canonical>;
  else if (inst.type == Type::F64 && !inst.flushSubnormals && !inst.saturate)
    inst.handler = plain ? executePlain<Op, double, Canonical>
                         : executeGeneral<Op, double, Canonical>;
  return decodePlain(decoder, inst, numSources);
}

static void takeFlags(Decoder &decoder, Inst &inst) {
  inst.flushSubnormals = decoder.take("ftz");
  inst.saturate = decoder.take("sat");
}

template <typename Op>
static bool decodeRounded(Decoder &decoder, Inst &inst, unsigned numSources) {
  decoder.takeRound(inst.round);
  if (inst.round == Round::NearestAway)
    return decoder.unknown();
  takeFlags(decoder, inst);
  if (decoder.lastType() == Type::F32x2) {
    inst.type = decoder.takeType();
    inst.handler = executePair<Op>;
    return decodePlain(decoder, inst, numSources);
  }
  return finishDecoding<Op>(decoder, inst, numSources);
}

static bool isHalf(Type type) {
  return type >= Type::F16 && type <= Type::BF16x2;
}

/// Such as sub.rn.sat.f32.bf16; only `fma` requires a rounding mode.
template <typename Op>
static bool decodeMixed(Decoder &decoder, Inst &inst, unsigned numSources) {
  if (!decoder.takeRound(inst.round) && numSources == 3)
    return decoder.unknown();
  inst.saturate = decoder.take("sat");
  inst.type = decoder.takeType();
  inst.sourceType = decoder.takeType();
  if (inst.round == Round::NearestAway || inst.type != Type::F32 ||
      (inst.sourceType != Type::F16 && inst.sourceType != Type::BF16))
    return decoder.unknown();
  inst.handler = executeMixed<Op>;
  if (!decoder.dest(inst, 0, inst.type))
    return false;
  for (unsigned i = 1; i < numSources; ++i)
    if (!decoder.source(inst, i, inst.sourceType))
      return false;
  return decoder.source(inst, numSources, inst.type);
}

template <typename Op, FloatOp Half, bool HasMixed = true>
static bool decodeArithmetic(Decoder &decoder, Inst &inst,
                             DecodeFunction integer, unsigned numSources) {
  Type type = decoder.lastType();
  if (HasMixed && isHalf(type) && decoder.lastType(1) == Type::F32)
    return decodeMixed<Op>(decoder, inst, numSources);
  if (isHalf(type))
    return decodeHalf(decoder, inst, Half);
  if (isFloat(type))
    return decodeRounded<Op>(decoder, inst, numSources);
  return integer ? integer(decoder, inst) : decoder.unknown();
}

template <typename Op>
static bool finishMinMax(Decoder &decoder, Inst &inst, bool propagatesNaN,
                         unsigned numSources) {
  return propagatesNaN ? finishDecoding<WithNaN<Op>>(decoder, inst, numSources)
                       : finishDecoding<Op>(decoder, inst, numSources);
}

template <typename Op, FloatOp Half>
static bool decodeMinMax(Decoder &decoder, Inst &inst, DecodeFunction integer) {
  Type type = decoder.lastType();
  if (isHalf(type))
    return decodeHalf(decoder, inst, Half);
  if (!isFloat(type))
    return integer(decoder, inst);
  inst.flushSubnormals = decoder.take("ftz");
  bool propagatesNaN = decoder.take("NaN");
  if (type != Type::F32 || decoder.numOperands() != 4)
    return finishMinMax<Op>(decoder, inst, propagatesNaN, 2);
  if (decoder.take("abs"))
    return finishMinMax<OfMagnitudes<OfThree<Op>>>(decoder, inst, propagatesNaN,
                                                   3);
  return finishMinMax<OfThree<Op>>(decoder, inst, propagatesNaN, 3);
}

template <typename Op, FloatOp Half>
static bool decodeSign(Decoder &decoder, Inst &inst, DecodeFunction integer) {
  Type type = decoder.lastType();
  if (isHalf(type))
    return decodeHalf(decoder, inst, Half);
  if (!isFloat(type))
    return integer(decoder, inst);
  inst.flushSubnormals = decoder.take("ftz");
  return finishDecoding<Op, false>(decoder, inst, 1);
}

static bool decodeDiv(Decoder &decoder, Inst &inst) {
  if (!isFloat(decoder.lastType()))
    return decodeIntegerDiv(decoder, inst);
  if (decoder.takeOneOf({"approx", "full"}) < 0 &&
      !decoder.takeRound(inst.round))
    return decoder.unknown();
  inst.flushSubnormals = decoder.take("ftz");
  return finishDecoding<Div>(decoder, inst, 2);
}

/// rcp, sqrt: approximate or rounded.
template <typename Op> static bool decodeRoot(Decoder &decoder, Inst &inst) {
  if (!decoder.take("approx") && !decoder.takeRound(inst.round))
    return decoder.unknown();
  inst.flushSubnormals = decoder.take("ftz");
  if (decoder.lastType() == Type::F64 && inst.flushSubnormals) {
    // rcp.approx.ftz.f64
    inst.type = decoder.takeType();
    inst.handler = executeGeneral<Op, double, true>;
    return decodePlain(decoder, inst, 1);
  }
  return finishDecoding<Op>(decoder, inst, 1);
}

/// Functions that only exist as approximations.
template <typename Op> static bool decodeApprox(Decoder &decoder, Inst &inst) {
  if (!decoder.take("approx"))
    return decoder.unknown();
  inst.flushSubnormals = decoder.take("ftz");
  if (decoder.lastType() == Type::F64) {
    inst.type = decoder.takeType();
    inst.handler = executeGeneral<Op, double, true>;
    return decodePlain(decoder, inst, 1);
  }
  return finishDecoding<Op>(decoder, inst, 1);
}

static void executeCopysign(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  uint64_t *d = warp.out(inst.dest[0]);
  uint64_t sign = uint64_t(1) << (byteWidth(inst.type) * 8 - 1);
  forLanes(mask, [&](unsigned lane) {
    d[lane] = (b[lane] & (sign - 1)) | (a[lane] & sign);
  });
}

template <typename T>
static void executeTest(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  uint32_t result = 0;
  forLanes(mask, [&](unsigned lane) {
    int kind = std::fpclassify(fromBits<T>(a[lane]));
    bool holds = false;
    switch (inst.mode) {
    case 0:
      holds = kind != FP_INFINITE && kind != FP_NAN;
      break;
    case 1:
      holds = kind == FP_INFINITE;
      break;
    case 2:
      holds = kind != FP_NAN;
      break;
    case 3:
      holds = kind == FP_NAN;
      break;
    case 4:
      holds = kind == FP_NORMAL || kind == FP_ZERO;
      break;
    default:
      holds = kind == FP_SUBNORMAL;
      break;
    }
    result |= uint32_t(holds) << lane;
  });
  warp.setPredicate(inst, 0, mask, result);
}

void addFloatInstructions(DecodeTable &table) {
  table["add"] = [](Decoder &d, Inst &i) {
    return decodeArithmetic<Add, FloatOp::Add>(d, i, decodeIntegerAdd, 2);
  };
  table["sub"] = [](Decoder &d, Inst &i) {
    return decodeArithmetic<Sub, FloatOp::Sub>(d, i, decodeIntegerSub, 2);
  };
  table["mul"] = [](Decoder &d, Inst &i) {
    return decodeArithmetic<Mul, FloatOp::Mul, false>(d, i, decodeIntegerMul,
                                                      2);
  };
  table["fma"] = [](Decoder &d, Inst &i) {
    return decodeArithmetic<Fma, FloatOp::Fma>(d, i, nullptr, 3);
  };
  table["mad"] = [](Decoder &d, Inst &i) {
    return decodeArithmetic<Fma, FloatOp::Fma, false>(d, i, decodeIntegerMad,
                                                      3);
  };
  table["min"] = [](Decoder &d, Inst &i) {
    return decodeMinMax<Min, FloatOp::Min>(d, i, decodeIntegerMin);
  };
  table["max"] = [](Decoder &d, Inst &i) {
    return decodeMinMax<Max, FloatOp::Max>(d, i, decodeIntegerMax);
  };
  table["neg"] = [](Decoder &d, Inst &i) {
    return decodeSign<Neg, FloatOp::Neg>(d, i, decodeIntegerNeg);
  };
  table["abs"] = [](Decoder &d, Inst &i) {
    return decodeSign<Abs, FloatOp::Abs>(d, i, decodeIntegerAbs);
  };
  table["div"] = decodeDiv;
  table["sqrt"] = decodeRoot<Sqrt>;
  table["rcp"] = decodeRoot<Reciprocal>;
  table["rsqrt"] = decodeApprox<ReciprocalSqrt>;
  table["lg2"] = decodeApprox<Log2>;
  table["sin"] = decodeApprox<Sin>;
  table["cos"] = decodeApprox<Cos>;
  table["ex2"] = [](Decoder &d, Inst &i) {
    return isHalf(d.lastType()) ? decodeHalfFunction(d, i, false)
                                : decodeApprox<Exp2>(d, i);
  };
  table["tanh"] = [](Decoder &d, Inst &i) {
    return isHalf(d.lastType()) ? decodeHalfFunction(d, i, true)
                                : decodeApprox<Tanh>(d, i);
  };
  table["copysign"] = [](Decoder &decoder, Inst &inst) {
    inst.type = decoder.takeType();
    if (isFloat(inst.type))
      inst.handler = executeCopysign;
    return decodePlain(decoder, inst, 2);
  };
  table["testp"] = [](Decoder &decoder, Inst &inst) {
    int test = decoder.takeOneOf(
        {"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
    inst.type = decoder.takeType();
    if (test < 0)
      return decoder.unknown();
    inst.mode = test;
    inst.handler = inst.type == Type::F32   ? executeTest<float>
                   : inst.type == Type::F64 ? executeTest<double>
                                            : nullptr;
    if (!inst.handler)
      return decoder.unknown();
    return decoder.predDest(inst, 0) && decoder.source(inst, 1, inst.type);
  };
}

} // namespace ptx
