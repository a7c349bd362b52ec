//===- Bits.cpp - logic, shifts and bit fields ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

#include <algorithm>

namespace ptx {

namespace {

struct And {
  template <typename T> static T apply(T a, T b) { return a & b; }
};
struct Or {
  template <typename T> static T apply(T a, T b) { return a | b; }
};
struct Xor {
  template <typename T> static T apply(T a, T b) { return a ^ b; }
};
struct Not {
  template <typename T> static T apply(T a) { return T(~a); }
};
struct LogicalNot {
  template <typename T> static T apply(T a) { return a == 0; }
};
struct PopCount {
  template <typename T> static uint32_t apply(T a) {
    return __builtin_popcountll(a);
  }
};
struct LeadingZeros {
  static uint32_t apply(uint32_t a) { return a ? __builtin_clz(a) : 32; }
  static uint32_t apply(uint64_t a) { return a ? __builtin_clzll(a) : 64; }
};
struct Reverse {
  template <typename T> static T apply(T a) {
    T result = 0;
    for (unsigned i = 0; i < sizeof(T) * 8; ++i)
      result |= (a >> i & 1) << (sizeof(T) * 8 - 1 - i);
    return result;
  }
};

} // namespace

/// Moves the state of bytes with the bytes. A byte of the result has bits of
/// two bytes of the source if the shift amount is not a multiple of 8.
template <typename T>
static void defineShifted(Warp &warp, const Inst &inst, uint32_t mask,
                          bool left) {
  constexpr unsigned kWidth = sizeof(T);
  uint32_t affected =
      warp.undefinedOf(inst.source[0]) | warp.undefinedOf(inst.source[1]);
  const uint64_t *b = warp.in(inst.source[1]);
  warp.define(inst.dest[0], mask, affected, [&](unsigned lane) -> uint8_t {
    unsigned from =
        warp.undefinedBytes(inst.source[0], lane) & lowBytes(kWidth);
    if (warp.undefinedBytes(inst.source[1], lane) & lowBytes(4))
      return lowBytes(kWidth);
    unsigned shift = std::min<uint32_t>(uint32_t(b[lane]), kWidth * 8);
    unsigned whole = shift / 8;
    bool hasSign = T(-1) < T(0) && from >> (kWidth - 1) & 1;
    unsigned next = shift % 8 != 0 ? 1 : 0;
    unsigned result = left ? from << whole | from << (whole + next)
                           : from >> whole | from >> (whole + next);
    if (!left && hasSign) // fills the bytes that become free
      result |= lowBytes(kWidth) & ~(lowBytes(kWidth) >> whole >> next);
    return result & lowBytes(kWidth);
  });
}

/// The shift amount has 32 bits and may exceed the width.
template <typename T>
static void executeShiftLeft(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  uint64_t *d = warp.out(inst.dest[0]);
  defineShifted<T>(warp, inst, mask, /*left=*/true);
  forLanes(mask, [&](unsigned lane) {
    uint32_t shift = uint32_t(b[lane]);
    d[lane] = shift < sizeof(T) * 8 ? T(T(a[lane]) << shift) : 0;
  });
}

template <typename T>
static void executeShiftRight(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  uint64_t *d = warp.out(inst.dest[0]);
  defineShifted<T>(warp, inst, mask, /*left=*/false);
  forLanes(mask, [&](unsigned lane) {
    uint32_t shift = uint32_t(b[lane]);
    T value = fromBits<T>(a[lane]);
    if (shift >= sizeof(T) * 8)
      d[lane] = toBits<T>(value < T(0) ? T(-1) : T(0));
    else
      d[lane] = toBits<T>(T(value >> shift));
  });
}

static bool decodeShift(Decoder &decoder, Inst &inst, bool left) {
  inst.undefinedRule = UndefinedRule::Handler;
  inst.type = decoder.takeType();
  switch (inst.type) {
  case Type::B16:
  case Type::U16:
    inst.handler =
        left ? executeShiftLeft<uint16_t> : executeShiftRight<uint16_t>;
    break;
  case Type::B32:
  case Type::U32:
    inst.handler =
        left ? executeShiftLeft<uint32_t> : executeShiftRight<uint32_t>;
    break;
  case Type::B64:
  case Type::U64:
    inst.handler =
        left ? executeShiftLeft<uint64_t> : executeShiftRight<uint64_t>;
    break;
  case Type::S16:
    inst.handler = left ? nullptr : executeShiftRight<int16_t>;
    break;
  case Type::S32:
    inst.handler = left ? nullptr : executeShiftRight<int32_t>;
    break;
  case Type::S64:
    inst.handler = left ? nullptr : executeShiftRight<int64_t>;
    break;
  default:
    break;
  }
  if (!inst.handler)
    return decoder.unknown();
  return decoder.dest(inst, 0, inst.type) &&
         decoder.source(inst, 1, inst.type) &&
         decoder.source(inst, 2, Type::U32);
}

/// shf: mode bit 0: right, bit 1: wraps.
static void executeFunnel(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  const uint64_t *c = warp.in(inst.source[2]);
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    uint64_t both = (b[lane] << 32) | uint32_t(a[lane]);
    uint32_t shift = uint32_t(c[lane]);
    shift = inst.mode & 2 ? shift & 31 : std::min(shift, 32u);
    d[lane] = inst.mode & 1 ? uint32_t(both >> shift)
                            : uint32_t((both << shift) >> 32);
  });
}

static bool decodeFunnel(Decoder &decoder, Inst &inst) {
  int direction = decoder.takeOneOf({"l", "r"});
  int overflow = decoder.takeOneOf({"clamp", "wrap"});
  inst.type = decoder.takeType();
  if (direction < 0 || overflow < 0 || inst.type != Type::B32)
    return decoder.unknown();
  inst.mode = direction | overflow << 1;
  inst.handler = executeFunnel;
  return decodePlain(decoder, inst, 3);
}

static void executeLop3(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  const uint64_t *c = warp.in(inst.source[2]);
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    uint32_t result = 0;
    uint32_t x = a[lane], y = b[lane], z = c[lane];
    for (unsigned row = 0; row < 8; ++row)
      if (inst.mode >> row & 1)
        result |= (row & 4 ? x : ~x) & (row & 2 ? y : ~y) & (row & 1 ? z : ~z);
    d[lane] = result;
  });
}

static bool decodeLop3(Decoder &decoder, Inst &inst) {
  inst.type = decoder.takeType();
  if (inst.type != Type::B32)
    return decoder.unknown();
  inst.mode = decoder.operand(4).integer;
  inst.undefinedRule = UndefinedRule::Bitwise;
  inst.table = inst.mode;
  inst.handler = executeLop3;
  return decodePlain(decoder, inst, 3) && decoder.expectOperands(5);
}

template <typename T>
static void executeExtract(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  const uint64_t *c = warp.in(inst.source[2]);
  uint64_t *d = warp.out(inst.dest[0]);
  const unsigned bits = sizeof(T) * 8;
  bool isSigned = ptx::isSigned(inst.type);
  forLanes(mask, [&](unsigned lane) {
    unsigned position = b[lane] & 0xFF, length = c[lane] & 0xFF;
    T value = T(a[lane]);
    unsigned last = std::min(position + length - 1, bits - 1);
    bool sign = isSigned && length != 0 && (value >> last & 1);
    T result = 0;
    for (unsigned i = 0; i < bits; ++i) {
      bool bit = i < length && position + i < bits ? value >> (position + i) & 1
                                                   : sign;
      result |= T(bit) << i;
    }
    d[lane] = result;
  });
}

template <typename T>
static void executeInsert(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  const uint64_t *c = warp.in(inst.source[2]);
  const uint64_t *e = warp.in(inst.source[3]);
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    unsigned position = c[lane] & 0xFF, length = e[lane] & 0xFF;
    T result = T(b[lane]);
    for (unsigned i = 0; i < length && position + i < sizeof(T) * 8; ++i) {
      T bit = T(1) << (position + i);
      result = T(a[lane]) >> i & 1 ? result | bit : result & ~bit;
    }
    d[lane] = result;
  });
}

static bool decodeBitField(Decoder &decoder, Inst &inst, bool insert) {
  inst.type = decoder.takeType();
  bool wide = byteWidth(inst.type) == 8;
  if (byteWidth(inst.type) < 4)
    return decoder.unknown();
  if (insert)
    inst.handler = wide ? executeInsert<uint64_t> : executeInsert<uint32_t>;
  else
    inst.handler = wide ? executeExtract<uint64_t> : executeExtract<uint32_t>;
  unsigned numValues = insert ? 2 : 1;
  if (!decoder.dest(inst, 0, inst.type))
    return false;
  for (unsigned i = 1; i <= numValues; ++i)
    if (!decoder.source(inst, i, inst.type))
      return false;
  return decoder.source(inst, numValues + 1, Type::U32) &&
         decoder.source(inst, numValues + 2, Type::U32);
}

static void executeFind(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  uint64_t *d = warp.out(inst.dest[0]);
  unsigned bits = byteWidth(inst.type) * 8;
  forLanes(mask, [&](unsigned lane) {
    uint64_t value = a[lane] & (~uint64_t(0) >> (64 - bits));
    if (isSigned(inst.type) && (value >> (bits - 1) & 1))
      value = ~value & (~uint64_t(0) >> (64 - bits));
    uint32_t result = ~0u;
    if (value)
      result = 63 - __builtin_clzll(value);
    if (value && inst.mode)
      result = bits - 1 - result;
    d[lane] = result;
  });
}

static void executePermute(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  const uint64_t *c = warp.in(inst.source[2]);
  uint64_t *d = warp.out(inst.dest[0]);
  uint32_t affected = 0;
  for (Column column : inst.source)
    affected |= warp.undefinedOf(column);
  warp.define(inst.dest[0], mask, affected, [&](unsigned lane) -> uint8_t {
    if (warp.undefinedBytes(inst.source[2], lane) & lowBytes(2))
      return lowBytes(4);
    unsigned from = (warp.undefinedBytes(inst.source[0], lane) & lowBytes(4)) |
                    (warp.undefinedBytes(inst.source[1], lane) & lowBytes(4))
                        << 4;
    unsigned result = 0;
    for (unsigned i = 0; i < 4; ++i)
      result |= (from >> (c[lane] >> (4 * i) & 7) & 1u) << i;
    return result;
  });
  forLanes(mask, [&](unsigned lane) {
    uint64_t bytes = (b[lane] << 32) | uint32_t(a[lane]);
    uint32_t selector = c[lane], result = 0;
    for (unsigned i = 0; i < 4; ++i) {
      unsigned choice = selector >> (4 * i) & 15;
      uint32_t byte = bytes >> (8 * (choice & 7)) & 0xFF;
      if (choice & 8)
        byte = byte & 0x80 ? 0xFF : 0;
      result |= byte << (8 * i);
    }
    d[lane] = result;
  });
}

/// bmsk: `b` ones from bit `a` on; mode: 1 wraps, 0 clamps.
static void executeMask(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    uint32_t first = uint32_t(a[lane]), count = uint32_t(b[lane]);
    if (inst.mode) {
      first &= 31;
      count &= 31;
    }
    uint64_t from = first < 32 ? ~uint64_t(0) << first : 0;
    uint64_t to = ~uint64_t(0)
                  << std::min<uint64_t>(uint64_t(first) + count, 32);
    d[lane] = uint32_t(from & ~to);
  });
}

/// and, or, xor, not of predicates.
static void executePredicateLogic(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t a = warp.predicate(inst, 0);
  uint32_t b = inst.predSource.count > 1 ? warp.predicate(inst, 1) : 0;
  uint32_t result = inst.mode == 0   ? a & b
                    : inst.mode == 1 ? a | b
                    : inst.mode == 2 ? a ^ b
                                     : ~a;
  warp.setPredicate(inst, 0, mask, result);
}

template <typename Op>
static bool decodeLogic(Decoder &decoder, Inst &inst, unsigned mode) {
  static constexpr uint8_t kTables[] = {0xC0, 0xFC, 0x3C};
  inst.type = decoder.takeType();
  inst.undefinedRule = UndefinedRule::Bitwise;
  inst.table = kTables[mode];
  if (inst.type == Type::Pred) {
    inst.mode = mode;
    inst.handler = executePredicateLogic;
    return decoder.predDest(inst, 0) && decoder.predSource(inst, 1) &&
           decoder.predSource(inst, 2);
  }
  inst.handler = binaryFor<Op>(inst.type);
  return decodePlain(decoder, inst, 2);
}

template <typename Op> static bool decodeCount(Decoder &decoder, Inst &inst) {
  inst.type = decoder.takeType();
  inst.handler = inst.type == Type::B32   ? executeUnary<Op, uint32_t>
                 : inst.type == Type::B64 ? executeUnary<Op, uint32_t, uint64_t>
                                          : nullptr;
  return decodePlain(decoder, inst, 1);
}

void addBitInstructions(DecodeTable &table) {
  table["and"] = [](Decoder &d, Inst &i) { return decodeLogic<And>(d, i, 0); };
  table["or"] = [](Decoder &d, Inst &i) { return decodeLogic<Or>(d, i, 1); };
  table["xor"] = [](Decoder &d, Inst &i) { return decodeLogic<Xor>(d, i, 2); };
  table["not"] = [](Decoder &decoder, Inst &inst) {
    inst.type = decoder.takeType();
    inst.undefinedRule = UndefinedRule::Bitwise;
    inst.table = 0x0F;
    if (inst.type == Type::Pred) {
      inst.mode = 3;
      inst.handler = executePredicateLogic;
      return decoder.predDest(inst, 0) && decoder.predSource(inst, 1);
    }
    inst.handler = unaryFor<Not>(inst.type);
    return decodePlain(decoder, inst, 1);
  };
  table["cnot"] = [](Decoder &decoder, Inst &inst) {
    inst.type = decoder.takeType();
    inst.handler = unaryFor<LogicalNot>(inst.type);
    return decodePlain(decoder, inst, 1);
  };
  table["shl"] = [](Decoder &d, Inst &i) { return decodeShift(d, i, true); };
  table["shr"] = [](Decoder &d, Inst &i) { return decodeShift(d, i, false); };
  table["shf"] = decodeFunnel;
  table["lop3"] = decodeLop3;
  table["bfe"] = [](Decoder &d, Inst &i) {
    return decodeBitField(d, i, false);
  };
  table["bfi"] = [](Decoder &d, Inst &i) { return decodeBitField(d, i, true); };
  table["popc"] = decodeCount<PopCount>;
  table["clz"] = decodeCount<LeadingZeros>;
  table["brev"] = [](Decoder &decoder, Inst &inst) {
    inst.type = decoder.takeType();
    inst.handler = inst.type == Type::B32   ? executeUnary<Reverse, uint32_t>
                   : inst.type == Type::B64 ? executeUnary<Reverse, uint64_t>
                                            : nullptr;
    return decodePlain(decoder, inst, 1);
  };
  table["bfind"] = [](Decoder &decoder, Inst &inst) {
    inst.mode = decoder.take("shiftamt");
    inst.type = decoder.takeType();
    if (byteWidth(inst.type) >= 4)
      inst.handler = executeFind;
    return decodePlain(decoder, inst, 1);
  };
  table["bmsk"] = [](Decoder &decoder, Inst &inst) {
    int mode = decoder.takeOneOf({"clamp", "wrap"});
    inst.type = decoder.takeType();
    inst.mode = mode;
    if (mode >= 0 && inst.type == Type::B32)
      inst.handler = executeMask;
    return decodePlain(decoder, inst, 2);
  };
  table["prmt"] = [](Decoder &decoder, Inst &inst) {
    inst.type = decoder.takeType();
    inst.undefinedRule = UndefinedRule::Handler;
    if (inst.type == Type::B32)
      inst.handler = executePermute;
    return decodePlain(decoder, inst, 3);
  };
}

} // namespace ptx
