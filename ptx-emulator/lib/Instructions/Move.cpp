//===- Move.cpp - moves, selections and addresses ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

namespace ptx {

// Copies propagate the set of uninitialised bytes.

/// Propagates the state of `bytes` bytes of `source`, from byte `shift` on.
static void passUndefined(Warp &warp, Column dest, Column source, uint32_t mask,
                          unsigned bytes, unsigned shift = 0) {
  warp.define(dest, mask, warp.undefinedOf(source), [&](unsigned lane) {
    return warp.undefinedBytes(source, lane) >> shift & lowBytes(bytes);
  });
}

static void executeMove(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  uint64_t *d = warp.out(inst.dest[0]);
  unsigned bits = inst.bytes * 8;
  uint64_t keep = ~uint64_t(0) >> (64 - bits);
  forLanes(mask, [&](unsigned lane) { d[lane] = a[lane] & keep; });
  passUndefined(warp, inst.dest[0], inst.source[0], mask, inst.bytes);
}

/// Several sources to one destination, or the reverse.
static void executePack(Warp &warp, const Inst &inst, uint32_t mask) {
  uint64_t *d = warp.out(inst.dest[0]);
  unsigned bits = inst.bytes * 8;
  uint64_t keep = ~uint64_t(0) >> (64 - bits);
  uint32_t affected = 0;
  uint64_t result[32] = {};
  for (unsigned i = 0; i < inst.source.count; ++i) {
    const uint64_t *a = warp.in(inst.source[i]);
    forLanes(mask, [&](unsigned lane) {
      result[lane] |= (a[lane] & keep) << (i * bits);
    });
    affected |= warp.undefinedOf(inst.source[i]);
  }
  forLanes(mask, [&](unsigned lane) { d[lane] = result[lane]; });
  warp.define(inst.dest[0], mask, affected, [&](unsigned lane) {
    uint8_t parts = 0;
    for (unsigned i = 0; i < inst.source.count; ++i)
      parts |=
          (warp.undefinedBytes(inst.source[i], lane) & lowBytes(inst.bytes))
          << (i * inst.bytes);
    return parts;
  });
}

static void executeUnpack(Warp &warp, const Inst &inst, uint32_t mask) {
  unsigned bits = inst.bytes * 8;
  uint64_t keep = ~uint64_t(0) >> (64 - bits);
  uint64_t value[32];
  const uint64_t *a = warp.in(inst.source[0]);
  forLanes(mask, [&](unsigned lane) { value[lane] = a[lane]; });
  for (unsigned i = 0; i < inst.dest.count; ++i) {
    uint64_t *d = warp.out(inst.dest[i]);
    forLanes(mask, [&](unsigned lane) {
      d[lane] = value[lane] >> (i * bits) & keep;
    });
    passUndefined(warp, inst.dest[i], inst.source[0], mask, inst.bytes,
                  i * inst.bytes);
  }
}

/// b128: the pair of registers that holds it, from or to two of 64 bits.
static void executeMovePair(Warp &warp, const Inst &inst, uint32_t mask) {
  for (unsigned i = 0; i < 2; ++i) {
    const uint64_t *a = warp.in(inst.source[i]);
    uint64_t *d = warp.out(inst.dest[i]);
    forLanes(mask, [&](unsigned lane) { d[lane] = a[lane]; });
    passUndefined(warp, inst.dest[i], inst.source[i], mask, 8);
  }
}

static void executeMovePredicate(Warp &warp, const Inst &inst, uint32_t mask) {
  warp.setPredicate(inst, 0, mask, warp.predicate(inst, 0));
}

static void executeClock(Warp &warp, const Inst &inst, uint32_t mask) {
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    d[lane] = inst.bytes == 4 ? uint32_t(warp.launch->instructions)
                              : warp.launch->instructions;
  });
}

/// Adds the two columns of a 128-bit operand.
static bool addPair(Decoder &decoder, const SyntaxOperand &operand,
                    Few<Column, 8> *dest, Few<Column, 10> *source) {
  std::vector<Column> columns;
  if (operand.kind == SyntaxOperand::Vector) {
    for (const SyntaxOperand &element : operand.elements) {
      Inst scratch;
      if (dest ? !decoder.dest(scratch, element, Type::B64)
               : !decoder.source(scratch, element, Type::B64))
        return false;
      columns.push_back(dest ? scratch.dest[0] : scratch.source[0]);
    }
  } else if (const Symbol *symbol = decoder.lookup(operand.name)) {
    columns = {symbol->index, symbol->index + 1};
  }
  if (columns.size() != 2)
    return decoder.unsupported("expected 128 bits");
  for (Column column : columns) {
    if (dest)
      dest->add(column);
    else
      source->add(column);
  }
  return true;
}

static bool decodeMove(Decoder &decoder, Inst &inst) {
  inst.undefinedRule = UndefinedRule::Handler;
  inst.type = decoder.takeType();
  inst.bytes = byteWidth(inst.type);
  if (inst.type == Type::Pred) {
    inst.undefinedRule = UndefinedRule::Whole;
    inst.handler = executeMovePredicate;
    return decoder.predDest(inst, 0) && decoder.predSource(inst, 1);
  }
  if (inst.bytes == 0)
    return decoder.unknown();
  if (inst.type == Type::B128) {
    inst.handler = executeMovePair;
    return decoder.expectOperands(2) &&
           addPair(decoder, decoder.operand(0), &inst.dest, nullptr) &&
           addPair(decoder, decoder.operand(1), nullptr, &inst.source);
  }
  const SyntaxOperand &from = decoder.operand(1);
  if (from.name == "%clock" || from.name == "%clock64" ||
      from.name == "%clock_hi" || from.name == "%globaltimer" ||
      from.name == "%globaltimer_lo" || from.name == "%globaltimer_hi") {
    inst.undefinedRule = UndefinedRule::Report;
    inst.handler = executeClock;
    return decoder.expectOperands(2) && decoder.dest(inst, 0, inst.type);
  }
  bool unpacks = decoder.operand(0).kind == SyntaxOperand::Vector;
  bool packs = from.kind == SyntaxOperand::Vector;
  if (unpacks && packs)
    return decoder.unknown();
  if (!unpacks && !packs) {
    inst.handler = executeMove;
    return decoder.dest(inst, 0, inst.type) &&
           decoder.source(inst, 1, inst.type);
  }
  std::vector<SyntaxOperand> parts = decoder.elements(packs ? 1 : 0);
  if (parts.size() > inst.bytes)
    return decoder.unknown();
  inst.bytes /= parts.size();
  Type partType = inst.bytes == 1   ? Type::B8
                  : inst.bytes == 2 ? Type::B16
                                    : Type::B32;
  inst.handler = packs ? executePack : executeUnpack;
  for (const SyntaxOperand &part : parts)
    if (packs ? !decoder.source(inst, part, partType)
              : !decoder.dest(inst, part, partType))
      return false;
  return decoder.expectOperands(2) &&
         (packs ? decoder.dest(inst, 0, inst.type)
                : decoder.source(inst, 1, inst.type));
}

static void executeSelect(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  uint64_t *d = warp.out(inst.dest[0]);
  uint32_t choice = warp.predicate(inst, 0);
  // With an undefined choice, a result is defined if both sources are equal.
  uint32_t unknown = warp.predUndefined[inst.predSource[0]] & mask;
  forLanes(unknown, [&](unsigned lane) {
    unknown &= ~(uint32_t(a[lane] == b[lane]) << lane);
  });
  forLanes(mask, [&](unsigned lane) {
    d[lane] = choice >> lane & 1 ? a[lane] : b[lane];
  });
  // One of the sources may be the destination, whose state must not change
  // before it is read.
  uint32_t affected =
      warp.undefinedOf(inst.source[0]) | warp.undefinedOf(inst.source[1]);
  warp.define(inst.dest[0], mask, affected | unknown, [&](unsigned lane) {
    Column source = inst.source[choice >> lane & 1 ? 0 : 1];
    return unknown >> lane & 1 ? lowBytes(byteWidth(inst.type))
                               : uint8_t(warp.undefinedBytes(source, lane) &
                                         lowBytes(byteWidth(inst.type)));
  });
}

static bool decodeSelect(Decoder &decoder, Inst &inst) {
  inst.undefinedRule = UndefinedRule::Handler;
  inst.type = decoder.takeType();
  inst.handler = executeSelect;
  return decodePlain(decoder, inst, 2) && decoder.predSource(inst, 3);
}

static void executeSelectBySign(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  const uint64_t *c = warp.in(inst.source[2]);
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    bool first = inst.sourceType == Type::F32 ? fromBits<float>(c[lane]) >= 0
                                              : int32_t(c[lane]) >= 0;
    d[lane] = first ? a[lane] : b[lane];
  });
}

static bool decodeSelectBySign(Decoder &decoder, Inst &inst) {
  decoder.take("ftz");
  inst.type = decoder.takeType();
  inst.sourceType = decoder.takeType();
  inst.handler = executeSelectBySign;
  return decodePlain(decoder, inst, 2) &&
         decoder.source(inst, 3, inst.sourceType);
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

static bool takeSpace(Decoder &decoder, Space &space) {
  static constexpr Space kSpaces[] = {
      Space::Global, Space::Constant,      Space::Shared, Space::Shared,
      Space::Local,  Space::SharedCluster, Space::Param,  Space::Param};
  int index =
      decoder.takeOneOf({"global", "const", "shared", "shared::cta", "local",
                         "shared::cluster", "param", "param::entry"});
  if (index >= 0)
    space = kSpaces[index];
  return index >= 0;
}

static uint64_t windowOf(Space space) {
  switch (space) {
  case Space::Shared:
  case Space::SharedCluster:
    return kSharedWindow;
  case Space::Local:
    return kLocalWindow;
  case Space::Param:
    return kParamWindow;
  default:
    return 0;
  }
}

static void executeToGeneric(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  uint64_t *d = warp.out(inst.dest[0]);
  uint64_t window = windowOf(inst.space);
  forLanes(mask, [&](unsigned lane) { d[lane] = a[lane] | window; });
}

static void executeFromGeneric(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  uint64_t *d = warp.out(inst.dest[0]);
  uint64_t window = windowOf(inst.space);
  // An address of another space is unchanged, and so is out of bounds.
  forLanes(mask, [&](unsigned lane) {
    d[lane] = window && (a[lane] & kWindowMask) == window
                  ? a[lane] & ~kWindowMask
                  : a[lane];
  });
}

static bool decodeConvertAddress(Decoder &decoder, Inst &inst) {
  bool from = decoder.take("to");
  if (!takeSpace(decoder, inst.space))
    return decoder.unknown();
  inst.type = decoder.takeType();
  if (inst.type != Type::U64)
    return decoder.unknown();
  inst.handler = from ? executeFromGeneric : executeToGeneric;
  return decodePlain(decoder, inst, 1);
}

static void executeIsSpace(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  uint64_t window = windowOf(inst.space);
  uint32_t result = 0;
  forLanes(mask, [&](unsigned lane) {
    bool is = (a[lane] & kWindowMask) == window;
    if (inst.space == Space::Global || inst.space == Space::Constant)
      is = (a[lane] & kWindowMask) != kSharedWindow &&
           (a[lane] & kWindowMask) != kLocalWindow &&
           (a[lane] & kWindowMask) != kParamWindow;
    uint32_t rank = uint32_t(a[lane]) >> kRankShift;
    if (inst.space == Space::Shared && rank != 0)
      is &= rank - 1 == warp.block->rank;
    result |= uint32_t(is) << lane;
  });
  warp.setPredicate(inst, 0, mask, result);
}

/// mapa: the same offset in the block of a rank.
static void executeMapShared(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  uint64_t *d = warp.out(inst.dest[0]);
  uint32_t numBlocks = warp.block->cluster->blocks.size();
  forLanesWhile(mask, [&](unsigned lane) {
    uint32_t rank = uint32_t(b[lane]);
    if (rank >= numBlocks) {
      warp.report(lane, "out-of-bounds",
                  "expected a rank below " + std::to_string(numBlocks) +
                      ", got " + std::to_string(rank));
      return false;
    }
    uint64_t offset = a[lane] & ((1u << kRankShift) - 1);
    uint64_t window = inst.space == Space::Generic ? kSharedWindow : 0;
    d[lane] = window | uint64_t(rank + 1) << kRankShift | offset;
    return true;
  });
}

static void executeGetRank(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    uint32_t rank = uint32_t(a[lane]) >> kRankShift;
    d[lane] = rank == 0 ? warp.block->rank : rank - 1;
  });
}

void addMoveInstructions(DecodeTable &table) {
  table["mov"] = decodeMove;
  table["selp"] = decodeSelect;
  table["slct"] = decodeSelectBySign;
  table["cvta"] = decodeConvertAddress;
  table["isspacep"] = [](Decoder &decoder, Inst &inst) {
    if (!takeSpace(decoder, inst.space))
      return decoder.unknown();
    inst.handler = executeIsSpace;
    return decoder.predDest(inst, 0) && decoder.source(inst, 1, Type::U64);
  };
  table["mapa"] = [](Decoder &decoder, Inst &inst) {
    if (decoder.take("shared::cluster"))
      inst.space = Space::SharedCluster;
    inst.type = decoder.takeType();
    inst.handler = executeMapShared;
    return decoder.dest(inst, 0, inst.type) &&
           decoder.source(inst, 1, inst.type) &&
           decoder.source(inst, 2, Type::U32);
  };
  table["getctarank"] = [](Decoder &decoder, Inst &inst) {
    decoder.take("shared::cluster");
    inst.type = decoder.takeType();
    inst.handler = executeGetRank;
    return decodePlain(decoder, inst, 1);
  };
}

} // namespace ptx
