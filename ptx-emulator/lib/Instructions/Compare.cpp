//===- Compare.cpp - comparisons --------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

#include "../Rounding.h"

#include <cmath>

namespace ptx {

namespace {

enum class Relation : uint8_t {
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  Lo,
  Ls,
  Hi,
  Hs,
  Equ,
  Neu,
  Ltu,
  Leu,
  Gtu,
  Geu,
  Num,
  Nan
};

enum class Combine : uint8_t { None, And, Or, Xor };

} // namespace

template <typename T> static bool compare(Relation relation, T a, T b) {
  switch (relation) {
  case Relation::Eq:
    return a == b;
  case Relation::Ne:
    return a < b || a > b;
  case Relation::Lt:
  case Relation::Lo:
    return a < b;
  case Relation::Le:
  case Relation::Ls:
    return a <= b;
  case Relation::Gt:
  case Relation::Hi:
    return a > b;
  case Relation::Ge:
  case Relation::Hs:
    return a >= b;
  case Relation::Equ:
    return !(a < b || a > b);
  case Relation::Neu:
    return !(a == b);
  case Relation::Ltu:
    return !(a >= b);
  case Relation::Leu:
    return !(a > b);
  case Relation::Gtu:
    return !(a <= b);
  case Relation::Geu:
    return !(a < b);
  case Relation::Num:
    return !std::isnan(a) && !std::isnan(b);
  case Relation::Nan:
    return std::isnan(a) || std::isnan(b);
  }
  return false;
}

template <typename T> static T flush(T value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(T(0), value)
                                                : value;
}

template <typename T> static T operandValue(const Inst &inst, uint64_t bits) {
  T value = fromBits<T>(bits);
  if constexpr (std::is_floating_point_v<T>)
    if (inst.flushSubnormals)
      return flush(value);
  return value;
}

template <typename T>
static uint32_t compareLanes(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  uint32_t result = 0;
  forLanes(mask, [&](unsigned lane) {
    bool holds = compare(Relation(inst.mode), operandValue<T>(inst, a[lane]),
                         operandValue<T>(inst, b[lane]));
    result |= uint32_t(holds) << lane;
  });
  return result;
}

/// f16 and bf16, the low half or the high half of a pair.
static uint32_t compareHalves(Warp &warp, const Inst &inst, uint32_t mask,
                              unsigned shift) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  bool isHalf = inst.sourceType == Type::F16 || inst.sourceType == Type::F16x2;
  FloatFormat format = isHalf ? kHalf : kBFloat;
  uint32_t result = 0;
  forLanes(mask, [&](unsigned lane) {
    auto value = [&](uint64_t bits) {
      uint32_t half = bits >> shift & 0xFFFF;
      if (inst.flushSubnormals && !(half & format.infinity()))
        half &= format.signBit();
      return widen(half, format);
    };
    bool holds = compare(Relation(inst.mode), value(a[lane]), value(b[lane]));
    result |= uint32_t(holds) << lane;
  });
  return result;
}

static uint32_t compareAny(Warp &warp, const Inst &inst, uint32_t mask) {
  switch (inst.sourceType) {
  case Type::B16:
  case Type::U16:
    return compareLanes<uint16_t>(warp, inst, mask);
  case Type::S16:
    return compareLanes<int16_t>(warp, inst, mask);
  case Type::B32:
  case Type::U32:
    return compareLanes<uint32_t>(warp, inst, mask);
  case Type::S32:
    return compareLanes<int32_t>(warp, inst, mask);
  case Type::B64:
  case Type::U64:
    return compareLanes<uint64_t>(warp, inst, mask);
  case Type::S64:
    return compareLanes<int64_t>(warp, inst, mask);
  case Type::F32:
    return compareLanes<float>(warp, inst, mask);
  case Type::F64:
    return compareLanes<double>(warp, inst, mask);
  default:
    return compareHalves(warp, inst, mask, 0);
  }
}

static uint32_t combine(Warp &warp, const Inst &inst, uint32_t value) {
  if (inst.predSource.count == 0)
    return value;
  uint32_t other = warp.predicate(inst, 0);
  switch (Combine(inst.mode2)) {
  case Combine::And:
    return value & other;
  case Combine::Or:
    return value | other;
  case Combine::Xor:
    return value ^ other;
  case Combine::None:
    break;
  }
  return value;
}

static void executeSetPredicate(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t value = compareAny(warp, inst, mask);
  bool isPair =
      inst.sourceType == Type::F16x2 || inst.sourceType == Type::BF16x2;
  uint32_t second = isPair ? compareHalves(warp, inst, mask, 16) : ~value;
  uint32_t first = combine(warp, inst, value);
  second = combine(warp, inst, second);
  warp.setPredicate(inst, 0, mask, first);
  if (inst.predDest.count > 1)
    warp.setPredicate(inst, 1, mask, second);
}

static void executeSet(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t value = combine(warp, inst, compareAny(warp, inst, mask));
  uint32_t high = 0;
  bool isPair =
      inst.sourceType == Type::F16x2 || inst.sourceType == Type::BF16x2;
  if (isPair)
    high = combine(warp, inst, compareHalves(warp, inst, mask, 16));
  uint64_t *d = warp.out(inst.dest[0]);
  uint64_t one = inst.type == Type::F32      ? 0x3F800000
                 : inst.type == Type::F16    ? 0x3C00
                 : inst.type == Type::BF16   ? 0x3F80
                 : byteWidth(inst.type) == 2 ? 0xFFFF
                                             : 0xFFFFFFFF;
  if (isPair)
    one = inst.type == Type::F16x2    ? 0x3C00
          : inst.type == Type::BF16x2 ? 0x3F80
                                      : 0xFFFF;
  forLanes(mask, [&](unsigned lane) {
    d[lane] = value >> lane & 1 ? one : 0;
    if (high >> lane & 1)
      d[lane] |= one << 16;
  });
}

static bool takeRelation(Decoder &decoder, Inst &inst) {
  int relation = decoder.takeOneOf({"eq", "ne", "lt", "le", "gt", "ge", "lo",
                                    "ls", "hi", "hs", "equ", "neu", "ltu",
                                    "leu", "gtu", "geu", "num", "nan"});
  if (relation < 0)
    return decoder.unknown();
  inst.mode = relation;
  inst.mode2 = decoder.takeOneOf({"and", "or", "xor"}) + 1;
  inst.flushSubnormals = decoder.take("ftz");
  return true;
}

static bool decodeSources(Decoder &decoder, Inst &inst) {
  return decoder.source(inst, 1, inst.sourceType) &&
         decoder.source(inst, 2, inst.sourceType) &&
         (inst.mode2 == 0 || decoder.predSource(inst, 3));
}

static bool isComparable(Type type) {
  return byteWidth(type) >= 2 && (isInteger(type) || isFloat(type)) &&
         type != Type::TF32 && type != Type::F32x2;
}

static bool decodeSetPredicate(Decoder &decoder, Inst &inst) {
  if (!takeRelation(decoder, inst))
    return false;
  inst.sourceType = decoder.takeType();
  if (!isComparable(inst.sourceType))
    return decoder.unknown();
  inst.handler = executeSetPredicate;
  if (!decoder.predDest(inst, 0))
    return false;
  const std::string &second = decoder.operand(0).second;
  if (!second.empty() && !decoder.predDest(inst, second))
    return false;
  return decodeSources(decoder, inst);
}

static bool decodeSet(Decoder &decoder, Inst &inst) {
  if (!takeRelation(decoder, inst))
    return false;
  inst.type = decoder.takeType();
  inst.sourceType = decoder.takeType();
  if (!isComparable(inst.sourceType) || inst.type == Type::None)
    return decoder.unknown();
  inst.handler = executeSet;
  return decoder.dest(inst, 0, inst.type) && decodeSources(decoder, inst);
}

void addCompareInstructions(DecodeTable &table) {
  table["setp"] = decodeSetPredicate;
  table["set"] = decodeSet;
}

} // namespace ptx
