//===- Integer.cpp - integer arithmetic -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace ptx {

namespace {

struct Add {
  template <typename T> static T apply(T a, T b) {
    return T(uint64_t(a) + uint64_t(b));
  }
};

struct Sub {
  template <typename T> static T apply(T a, T b) {
    return T(uint64_t(a) - uint64_t(b));
  }
};

struct AddSaturated {
  static int32_t apply(int32_t a, int32_t b) {
    int64_t sum = int64_t(a) + b;
    return int32_t(
        std::min<int64_t>(std::max<int64_t>(sum, INT32_MIN), INT32_MAX));
  }
};

struct SubSaturated {
  static int32_t apply(int32_t a, int32_t b) {
    int64_t difference = int64_t(a) - b;
    return int32_t(
        std::min<int64_t>(std::max<int64_t>(difference, INT32_MIN), INT32_MAX));
  }
};

struct MulLow {
  template <typename T> static T apply(T a, T b) {
    return T(uint64_t(a) * uint64_t(b));
  }
};

struct MulHigh {
  template <typename T> static T apply(T a, T b) {
    using Wide =
        std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return T((Wide(a) * Wide(b)) >> (sizeof(T) * 8));
  }
};

struct MulWide {
  static uint32_t apply(uint16_t a, uint16_t b) { return uint32_t(a) * b; }
  static int32_t apply(int16_t a, int16_t b) { return int32_t(a) * b; }
  static uint64_t apply(uint32_t a, uint32_t b) { return uint64_t(a) * b; }
  static int64_t apply(int32_t a, int32_t b) { return int64_t(a) * b; }
};

template <typename Mul> struct Mad {
  template <typename S, typename D> static D apply(S a, S b, D c) {
    return D(uint64_t(Mul::apply(a, b)) + uint64_t(c));
  }
};

/// A division by zero gives all ones, as the hardware does in practice.
struct Div {
  template <typename T> static T apply(T a, T b) {
    if (b == 0)
      return T(~T(0));
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1))
        return T(0 - uint64_t(a));
    return T(a / b);
  }
};

struct Rem {
  template <typename T> static T apply(T a, T b) {
    if (b == 0)
      return a;
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1))
        return 0;
    return T(a % b);
  }
};

struct Min {
  template <typename T> static T apply(T a, T b) { return std::min(a, b); }
};

struct Max {
  template <typename T> static T apply(T a, T b) { return std::max(a, b); }
};

struct Neg {
  template <typename T> static T apply(T a) { return T(0 - uint64_t(a)); }
};

struct Abs {
  template <typename T> static T apply(T a) {
    return a < 0 ? T(0 - uint64_t(a)) : a;
  }
};

struct Sad {
  template <typename T> static T apply(T a, T b, T c) {
    return T(uint64_t(c) +
             (a < b ? uint64_t(b) - uint64_t(a) : uint64_t(a) - uint64_t(b)));
  }
};

/// Clamps at zero.
template <typename Op> struct Relu {
  template <typename T> static T apply(T a, T b) {
    return std::max(Op::apply(a, b), T(0));
  }
};

/// Two of type T in 32 bits.
template <typename Op, typename T> struct Pair {
  static uint32_t apply(uint32_t a, uint32_t b) {
    uint16_t low = Op::apply(T(a), T(b));
    uint16_t high = Op::apply(T(a >> 16), T(b >> 16));
    return low | uint32_t(high) << 16;
  }
};

/// The first summand of add.cc and similar instructions.
struct First {
  template <typename T> static T apply(T a, T) { return a; }
};

} // namespace

/// The handler of `Op` for integers or pairs of them, or null.
template <typename Op> static Handler binaryOrPairFor(Type type) {
  switch (type) {
  case Type::U16x2:
    return executeBinary<Pair<Op, uint16_t>, uint32_t>;
  case Type::S16x2:
    return executeBinary<Pair<Op, int16_t>, uint32_t>;
  default:
    return binaryFor<Op>(type);
  }
}

/// The modes of an instruction with carry.
enum CarryMode : uint16_t { kSubtracts = 1, kUsesCarry = 2, kSetsCarry = 4 };

/// d = Op::apply(a, b) + c, or a - c, with a carry, where `c` is the last
/// operand.
template <typename Op, typename T>
static void executeCarry(Warp &warp, const Inst &inst, uint32_t mask) {
  using Bits = std::make_unsigned_t<T>;
  using Wide = unsigned __int128;
  if ((inst.mode & kUsesCarry) && (warp.carryUndefined & mask)) {
    warp.report(__builtin_ctz(warp.carryUndefined & mask), "uninitialised",
                "reads the carry, which no instruction with .cc has written");
    return;
  }
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  const uint64_t *c = warp.in(inst.source[inst.source.count - 1]);
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    Wide carry = (inst.mode & kUsesCarry) ? warp.carry >> lane & 1 : 0;
    Wide x = Bits(Op::apply(fromBits<T>(a[lane]), fromBits<T>(b[lane])));
    Wide y = fromBits<Bits>(c[lane]);
    Wide result = (inst.mode & kSubtracts) ? x - y - carry : x + y + carry;
    d[lane] = toBits(Bits(result));
    if (inst.mode & kSetsCarry) {
      uint32_t out = uint32_t(result >> (sizeof(T) * 8)) & 1;
      warp.carry = (warp.carry & ~(1u << lane)) | out << lane;
    }
  });
  if (inst.mode & kSetsCarry)
    warp.carryUndefined &= ~mask;
}

template <typename Op>
static bool decodeCarry(Decoder &decoder, Inst &inst, uint16_t mode,
                        unsigned numSources) {
  inst.mode = mode | (decoder.take("cc") ? kSetsCarry : 0);
  inst.type = decoder.takeType();
  switch (inst.type) {
  case Type::U32:
    inst.handler = executeCarry<Op, uint32_t>;
    break;
  case Type::S32:
    inst.handler = executeCarry<Op, int32_t>;
    break;
  case Type::U64:
    inst.handler = executeCarry<Op, uint64_t>;
    break;
  case Type::S64:
    inst.handler = executeCarry<Op, int64_t>;
    break;
  default:
    break;
  }
  return decodePlain(decoder, inst, numSources);
}

/// mad.cc and madc, which have no .wide.
static bool decodeMadCarry(Decoder &decoder, Inst &inst, int part,
                           uint16_t mode) {
  return part == 0   ? decodeCarry<MulLow>(decoder, inst, mode, 3)
         : part == 1 ? decodeCarry<MulHigh>(decoder, inst, mode, 3)
                     : decoder.unknown();
}

static bool decodeAdd(Decoder &decoder, Inst &inst) {
  bool saturated = decoder.take("sat");
  inst.type = decoder.takeType();
  inst.handler =
      saturated ? (inst.type == Type::S32 ? executeBinary<AddSaturated, int32_t>
                                          : nullptr)
                : binaryOrPairFor<Add>(inst.type);
  return decodePlain(decoder, inst, 2);
}

static bool decodeSub(Decoder &decoder, Inst &inst) {
  bool saturated = decoder.take("sat");
  inst.type = decoder.takeType();
  inst.handler =
      saturated ? (inst.type == Type::S32 ? executeBinary<SubSaturated, int32_t>
                                          : nullptr)
                : binaryFor<Sub>(inst.type);
  return decodePlain(decoder, inst, 2);
}

bool decodeIntegerAdd(Decoder &decoder, Inst &inst) {
  return decoder.has("cc") ? decodeCarry<First>(decoder, inst, 0, 2)
                           : decodeAdd(decoder, inst);
}

bool decodeIntegerSub(Decoder &decoder, Inst &inst) {
  return decoder.has("cc") ? decodeCarry<First>(decoder, inst, kSubtracts, 2)
                           : decodeSub(decoder, inst);
}

bool decodeIntegerMul(Decoder &decoder, Inst &inst) {
  int part = decoder.takeOneOf({"lo", "hi", "wide"});
  inst.type = decoder.takeType();
  if (part == 0) {
    inst.handler = binaryFor<MulLow>(inst.type);
  } else if (part == 1) {
    inst.handler = binaryFor<MulHigh>(inst.type);
  } else if (part == 2) {
    switch (inst.type) {
    case Type::U16:
      inst.handler = executeBinary<MulWide, uint32_t, uint16_t>;
      break;
    case Type::S16:
      inst.handler = executeBinary<MulWide, int32_t, int16_t>;
      break;
    case Type::U32:
      inst.handler = executeBinary<MulWide, uint64_t, uint32_t>;
      break;
    case Type::S32:
      inst.handler = executeBinary<MulWide, int64_t, int32_t>;
      break;
    default:
      break;
    }
  }
  return decodePlain(decoder, inst, 2);
}

bool decodeIntegerMad(Decoder &decoder, Inst &inst) {
  int part = decoder.takeOneOf({"lo", "hi", "wide"});
  if (decoder.has("cc"))
    return decodeMadCarry(decoder, inst, part, 0);
  inst.type = decoder.takeType();
  Type addend = inst.type;
  if (part == 0) {
    inst.handler = ternaryFor<Mad<MulLow>>(inst.type);
  } else if (part == 1) {
    inst.handler = ternaryFor<Mad<MulHigh>>(inst.type);
  } else if (part == 2) {
    switch (inst.type) {
    case Type::U16:
      inst.handler = executeTernary<Mad<MulWide>, uint32_t, uint16_t>;
      addend = Type::U32;
      break;
    case Type::S16:
      inst.handler = executeTernary<Mad<MulWide>, int32_t, int16_t>;
      addend = Type::S32;
      break;
    case Type::U32:
      inst.handler = executeTernary<Mad<MulWide>, uint64_t, uint32_t>;
      addend = Type::U64;
      break;
    case Type::S32:
      inst.handler = executeTernary<Mad<MulWide>, int64_t, int32_t>;
      addend = Type::S64;
      break;
    default:
      break;
    }
  }
  if (!inst.handler)
    return decoder.unknown();
  return decoder.dest(inst, 0, addend) && decoder.source(inst, 1, inst.type) &&
         decoder.source(inst, 2, inst.type) && decoder.source(inst, 3, addend);
}

template <typename Op> static bool decodeUnary(Decoder &decoder, Inst &inst) {
  inst.type = decoder.takeType();
  inst.handler = unaryFor<Op>(inst.type);
  return decodePlain(decoder, inst, 1);
}

template <typename Op> static bool decodeBinary(Decoder &decoder, Inst &inst) {
  inst.type = decoder.takeType();
  inst.handler = binaryFor<Op>(inst.type);
  return decodePlain(decoder, inst, 2);
}

template <typename Op> static bool decodeMinMax(Decoder &decoder, Inst &inst) {
  bool relu = decoder.take("relu");
  inst.type = decoder.takeType();
  if (!relu)
    inst.handler = binaryOrPairFor<Op>(inst.type);
  else if (inst.type == Type::S32 || inst.type == Type::S16x2)
    inst.handler = binaryOrPairFor<Relu<Op>>(inst.type);
  return decodePlain(decoder, inst, 2);
}

bool decodeIntegerMin(Decoder &d, Inst &i) { return decodeMinMax<Min>(d, i); }
bool decodeIntegerMax(Decoder &d, Inst &i) { return decodeMinMax<Max>(d, i); }
bool decodeIntegerDiv(Decoder &d, Inst &i) { return decodeBinary<Div>(d, i); }
bool decodeIntegerNeg(Decoder &d, Inst &i) { return decodeUnary<Neg>(d, i); }
bool decodeIntegerAbs(Decoder &d, Inst &i) { return decodeUnary<Abs>(d, i); }

/// dp4a, dp2a: c and the products of the parts of a and b. mode: bit 0: a is
/// signed, bit 1: b is; mode2: parts, and 1 more for those of b's upper half.
static void executeDotProduct(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  const uint64_t *c = warp.in(inst.source[2]);
  uint64_t *d = warp.out(inst.dest[0]);
  auto part = [](uint64_t value, unsigned bits, unsigned i, bool isSigned) {
    uint64_t shifted = value << (64 - bits * (i + 1));
    return isSigned ? int64_t(shifted) >> (64 - bits)
                    : int64_t(shifted >> (64 - bits));
  };
  unsigned count = inst.mode2 & ~1u, first = inst.mode2 & 1 ? 2 : 0;
  forLanes(mask, [&](unsigned lane) {
    uint64_t sum = c[lane];
    for (unsigned i = 0; i < count; ++i)
      sum += uint64_t(part(a[lane], 32 / count, i, inst.mode & 1) *
                      part(b[lane], 8, first + i, inst.mode & 2));
    d[lane] = uint32_t(sum);
  });
}

static bool decodeDotProduct(Decoder &decoder, Inst &inst, unsigned parts) {
  int half = parts == 2 ? decoder.takeOneOf({"lo", "hi"}) : 0;
  Type types[] = {decoder.takeType(), decoder.takeType()};
  for (Type type : types)
    if (half < 0 || (type != Type::U32 && type != Type::S32))
      return decoder.unknown();
  inst.mode = isSigned(types[0]) | isSigned(types[1]) << 1;
  inst.mode2 = parts + half;
  inst.type = inst.mode ? Type::S32 : Type::U32;
  inst.handler = executeDotProduct;
  return decodePlain(decoder, inst, 3);
}

void addIntegerInstructions(DecodeTable &table) {
  table["rem"] = decodeBinary<Rem>;
  table["addc"] = [](Decoder &d, Inst &i) {
    return decodeCarry<First>(d, i, kUsesCarry, 2);
  };
  table["subc"] = [](Decoder &d, Inst &i) {
    return decodeCarry<First>(d, i, kSubtracts | kUsesCarry, 2);
  };
  table["madc"] = [](Decoder &d, Inst &i) {
    int part = d.takeOneOf({"lo", "hi"});
    return decodeMadCarry(d, i, part, kUsesCarry);
  };
  table["dp4a"] = [](Decoder &d, Inst &i) { return decodeDotProduct(d, i, 4); };
  table["dp2a"] = [](Decoder &d, Inst &i) { return decodeDotProduct(d, i, 2); };
  table["sad"] = [](Decoder &decoder, Inst &inst) {
    inst.type = decoder.takeType();
    inst.handler = ternaryFor<Sad>(inst.type);
    return decodePlain(decoder, inst, 3);
  };
}

} // namespace ptx
