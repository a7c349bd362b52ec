//===- Atomic.cpp - atomic operations on memory -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryModifiers.h"

#include <algorithm>

namespace ptx {

template <typename T> static T integerResult(AtomicOp op, T old, T b, T c) {
  switch (op) {
  case AtomicOp::Add:
    return T(uint64_t(old) + uint64_t(b));
  case AtomicOp::Min:
    return std::min(old, b);
  case AtomicOp::Max:
    return std::max(old, b);
  case AtomicOp::And:
    return old & b;
  case AtomicOp::Or:
    return old | b;
  case AtomicOp::Xor:
    return old ^ b;
  case AtomicOp::Inc:
    return old >= b ? T(0) : T(old + 1);
  case AtomicOp::Dec:
    return old == 0 || old > b ? b : T(old - 1);
  case AtomicOp::Exch:
    return b;
  case AtomicOp::Cas:
    return old == b ? c : old;
  }
  return old;
}

static uint32_t addHalves(uint32_t a, uint32_t b, FloatFormat format) {
  return narrow(addToOdd(widen(a, format), widen(b, format)), format,
                Round::NearestEven);
}

static float flush(float value, bool isGlobal) {
  bool subnormal = value != 0 && value > -0x1p-126f && value < 0x1p-126f;
  return isGlobal && subnormal ? value * 0 : value;
}

uint64_t applyAtomic(const Reduction &reduction, uint64_t old, uint64_t b,
                     uint64_t c) {
  AtomicOp op = reduction.op;
  bool isGlobal = reduction.isGlobal;
  switch (reduction.type) {
  case Type::F32:
    if (op == AtomicOp::Add)
      return toBits(flush(flush(fromBits<float>(old), isGlobal) +
                              flush(fromBits<float>(b), isGlobal),
                          isGlobal));
    break;
  case Type::F64:
    if (op == AtomicOp::Add)
      return toBits(fromBits<double>(old) + fromBits<double>(b));
    break;
  case Type::F16:
  case Type::BF16:
  case Type::F16x2:
  case Type::BF16x2: {
    bool isHalf = reduction.type == Type::F16 || reduction.type == Type::F16x2;
    FloatFormat format = isHalf ? kHalf : kBFloat;
    uint64_t sum = addHalves(old & 0xFFFF, b & 0xFFFF, format);
    if (byteWidth(reduction.type) == 4)
      sum |= uint64_t(addHalves(old >> 16 & 0xFFFF, b >> 16 & 0xFFFF, format))
             << 16;
    return sum;
  }
  case Type::S32:
    return toBits(integerResult<int32_t>(op, int32_t(old), int32_t(b), 0));
  case Type::S64:
    return toBits(integerResult<int64_t>(op, int64_t(old), int64_t(b), 0));
  case Type::B16:
  case Type::U16:
    return integerResult<uint16_t>(op, old, b, c);
  case Type::B32:
  case Type::U32:
    return integerResult<uint32_t>(op, old, b, c);
  default:
    break;
  }
  return integerResult<uint64_t>(op, old, b, c);
}

void reduce(const Reduction &reduction, uint8_t *to, const uint8_t *from,
            uint32_t bytes) {
  unsigned width = byteWidth(reduction.type);
  for (uint32_t at = 0; at < bytes; at += width) {
    uint64_t old = 0, operand = 0;
    std::memcpy(&old, to + at, width);
    std::memcpy(&operand, from + at, width);
    uint64_t value = applyAtomic(reduction, old, operand);
    std::memcpy(to + at, &value, width);
  }
}

/// mode2: the elements of a vector.
static void executeAtomic(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *base = warp.in(inst.source[0]);
  unsigned count = inst.mode2;
  uint32_t bytes = inst.bytes * count;
  bool is32Bit =
      inst.space == Space::Shared || inst.space == Space::SharedCluster;
  bool hasThird = AtomicOp(inst.mode) == AtomicOp::Cas;
  Place places[32];
  unsigned numPlaces = 0;
  uint64_t olds[8][32];
  bool fine = forLanesWhile(mask, [&](unsigned lane) {
    uint64_t address = base[lane] + inst.offset;
    if (is32Bit)
      address &= 0xFFFFFFFF;
    Place &place = places[numPlaces++];
    if (!findPlace(warp, lane, inst.space, address, bytes, bytes, place) ||
        !checkAccess(warp, lane, place, bytes, AccessKind::Atomic,
                     inst.scope) ||
        !checkDefinedBytes(warp, lane, place, bytes))
      return false;
    releaseBefore(warp, inst, lane, place);
    for (unsigned i = 0; i < count; ++i) {
      uint8_t *at = place.data() + size_t(i) * inst.bytes;
      uint64_t old = 0;
      std::memcpy(&old, at, inst.bytes);
      uint64_t b = warp.in(inst.source[1 + i])[lane];
      uint64_t c = hasThird ? warp.in(inst.source[2])[lane] : 0;
      uint64_t value = applyAtomic(
          {AtomicOp(inst.mode), inst.type, place.space == Space::Global}, old,
          b, c);
      std::memcpy(at, &value, inst.bytes);
      olds[i][lane] = old;
    }
    acquireAfter(warp, inst, lane, place);
    return true;
  });
  if (!fine)
    return;
  for (unsigned i = 0; i < inst.dest.count; ++i)
    forLanes(mask, [&](unsigned lane) {
      warp.out(inst.dest[i])[lane] = olds[i][lane];
    });
  ++warp.launch->progress;
  countRequest(warp, places, numPlaces, bytes, AccessKind::Atomic);
}

static bool isAllowed(AtomicOp op, Type type) {
  if (isFloat(type))
    return op == AtomicOp::Add && type != Type::TF32 && type != Type::F32x2;
  if (byteWidth(type) == 2)
    return op == AtomicOp::Cas && type == Type::B16;
  return byteWidth(type) == 4 || byteWidth(type) == 8;
}

static bool decodeAtomic(Decoder &decoder, Inst &inst, bool hasResult) {
  if (decoder.has("async"))
    return decoder.unknown();
  takeOrdering(decoder, inst);
  inst.strong = true;
  inst.space = Space::Generic;
  takeMemorySpace(decoder, inst.space);
  int op = decoder.takeOneOf(
      {"add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas"});
  if (op < 0)
    return decoder.unknown();
  inst.mode = op;
  decoder.take("noftz");
  bool hasPolicy = takeCacheHints(decoder);
  int vector = decoder.takeOneOf({"v2", "v4", "v8"});
  inst.type = decoder.takeType();
  if (!isAllowed(AtomicOp(op), inst.type))
    return decoder.unknown();
  inst.mode2 = vector < 0 ? 1 : 2u << vector;
  inst.bytes = byteWidth(inst.type);
  inst.handler = executeAtomic;
  unsigned next = 0;
  if (hasResult) {
    for (const SyntaxOperand &element : decoder.elements(next))
      if (!decoder.dest(inst, element, inst.type))
        return false;
    ++next;
  }
  if (!decoder.address(inst, next++))
    return false;
  std::vector<SyntaxOperand> values = decoder.elements(next++);
  if (values.size() != inst.mode2 ||
      (hasResult && inst.dest.count != inst.mode2))
    return decoder.unsupported("expected " + std::to_string(inst.mode2) +
                               " elements");
  for (const SyntaxOperand &element : values)
    if (!decoder.source(inst, element, inst.type))
      return false;
  if (AtomicOp(op) == AtomicOp::Cas && !decoder.source(inst, next++, inst.type))
    return false;
  return decoder.expectOperands(next + hasPolicy);
}

void addAtomicInstructions(DecodeTable &table) {
  table["atom"] = [](Decoder &d, Inst &i) { return decodeAtomic(d, i, true); };
  table["red"] = [](Decoder &d, Inst &i) { return decodeAtomic(d, i, false); };
}

} // namespace ptx
