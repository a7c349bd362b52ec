//===- Half.cpp - f16 and bf16 arithmetic -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arithmetic.h"

#include <cmath>

namespace ptx {

static bool isPair(Type type) {
  return type == Type::F16x2 || type == Type::BF16x2;
}

static FloatFormat formatOf(Type type) {
  return type == Type::F16 || type == Type::F16x2 ? kHalf : kBFloat;
}

static bool isNaN(uint32_t bits, FloatFormat format) {
  return (bits & (format.signBit() - 1)) > format.infinity();
}

/// A subnormal of `format` becomes a zero of its sign.
static uint32_t flush(uint32_t bits, FloatFormat format) {
  return bits & format.infinity() ? bits : bits & format.signBit();
}

static double orderedMin(double a, double b) {
  return a < b || (a == b && std::signbit(a)) ? a : b;
}

static uint32_t minMax(uint32_t a, uint32_t b, FloatFormat format, bool isMin,
                       bool propagateNaN) {
  uint32_t canonical = format.signBit() - 1;
  bool aNaN = isNaN(a, format), bNaN = isNaN(b, format);
  if ((aNaN && bNaN) || (propagateNaN && (aNaN || bNaN)))
    return canonical;
  if (aNaN || bNaN)
    return aNaN ? b : a;
  double x = widen(a, format), y = widen(b, format);
  double least = orderedMin(x, y);
  bool takeA = toBits(least) == toBits(x);
  return takeA == isMin ? a : b;
}

/// The modes of an instruction on f16 or bf16.
enum HalfMode : uint16_t { kOpMask = 15, kPropagateNaN = 16 };

static uint32_t compute(const Inst &inst, FloatFormat format, uint32_t a,
                        uint32_t b, uint32_t c) {
  if (inst.flushSubnormals) {
    a = flush(a, format);
    b = flush(b, format);
    c = flush(c, format);
  }
  double x = widen(a, format), y = widen(b, format), z = widen(c, format);
  double exact = 0;
  switch (FloatOp(inst.mode & kOpMask)) {
  case FloatOp::Add:
    exact = addToOdd(x, y);
    break;
  case FloatOp::Sub:
    exact = addToOdd(x, -y);
    break;
  case FloatOp::Mul:
    exact = x * y;
    break;
  case FloatOp::Fma:
    exact = fmaToOdd(x, y, z);
    break;
  case FloatOp::Min:
  case FloatOp::Max:
    return minMax(a, b, format, FloatOp(inst.mode & kOpMask) == FloatOp::Min,
                  inst.mode & kPropagateNaN);
  case FloatOp::Neg:
    return a ^ format.signBit();
  case FloatOp::Abs:
    return a & ~format.signBit();
  }
  if (inst.saturate)
    exact = exact > 1 ? 1 : exact > 0 ? exact : 0;
  uint32_t result = narrow(exact, format, Round::NearestEven);
  if (inst.relu && (result & format.signBit()))
    result = 0;
  return inst.flushSubnormals ? flush(result, format) : result;
}

static void executeHalf(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *in[3];
  for (unsigned i = 0; i < 3; ++i)
    in[i] = warp.in(inst.source[i < inst.source.count ? i : 0]);
  uint64_t *d = warp.out(inst.dest[0]);
  FloatFormat format = formatOf(inst.type);
  unsigned parts = isPair(inst.type) ? 2 : 1;
  forLanes(mask, [&](unsigned lane) {
    uint64_t result = 0;
    for (unsigned shift = 0; shift < parts * 16; shift += 16)
      result |= uint64_t(compute(inst, format, in[0][lane] >> shift & 0xFFFF,
                                 in[1][lane] >> shift & 0xFFFF,
                                 in[2][lane] >> shift & 0xFFFF))
                << shift;
    d[lane] = result;
  });
}

bool decodeHalf(Decoder &decoder, Inst &inst, FloatOp op) {
  bool isMinMax = op == FloatOp::Min || op == FloatOp::Max;
  bool isSign = op == FloatOp::Neg || op == FloatOp::Abs;
  inst.mode = uint16_t(op);
  if (!isMinMax && !isSign)
    decoder.take("rn");
  inst.flushSubnormals = decoder.take("ftz");
  if (isMinMax && decoder.take("NaN"))
    inst.mode |= kPropagateNaN;
  if (!isMinMax && !isSign)
    inst.saturate = decoder.take("sat");
  if (op == FloatOp::Fma)
    inst.relu = decoder.take("relu");
  inst.type = decoder.takeType();
  inst.handler = executeHalf;
  return decodePlain(decoder, inst, op == FloatOp::Fma ? 3 : isSign ? 1 : 2);
}

static void executeHalfFunction(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  uint64_t *d = warp.out(inst.dest[0]);
  FloatFormat format = formatOf(inst.type);
  unsigned parts = isPair(inst.type) ? 2 : 1;
  forLanes(mask, [&](unsigned lane) {
    uint64_t result = 0;
    for (unsigned shift = 0; shift < parts * 16; shift += 16) {
      uint32_t bits = a[lane] >> shift & 0xFFFF;
      if (inst.flushSubnormals)
        bits = flush(bits, format);
      double x = widen(bits, format);
      uint32_t value = narrow(inst.mode ? std::tanh(x) : std::exp2(x), format,
                              Round::NearestEven);
      if (inst.flushSubnormals)
        value = flush(value, format);
      result |= uint64_t(value) << shift;
    }
    d[lane] = result;
  });
}

bool decodeHalfFunction(Decoder &decoder, Inst &inst, bool isTanh) {
  if (!decoder.take("approx"))
    return decoder.unknown();
  inst.flushSubnormals = decoder.take("ftz");
  inst.mode = isTanh;
  inst.type = decoder.takeType();
  inst.handler = executeHalfFunction;
  return decodePlain(decoder, inst, 1);
}

} // namespace ptx
