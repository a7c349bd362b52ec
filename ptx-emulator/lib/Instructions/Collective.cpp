//===- Collective.cpp - instructions of several lanes -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

#include <algorithm>

namespace ptx {

/// Whether all lanes of the member masks, which are in `members`, are at this
/// instruction or have exited. Otherwise suspends the lanes.
static bool gather(Warp &warp, const uint64_t *members, uint32_t mask) {
  uint32_t missing = 0, wanted = 0;
  bool fine = forLanesWhile(mask, [&](unsigned lane) {
    uint32_t member = uint32_t(members[lane]);
    if (!(member >> lane & 1)) {
      warp.report(lane, "divergent-shuffle",
                  "lane " + std::to_string(lane) +
                      " is not in its own member mask " + hex(member));
      return false;
    }
    missing |= member & warp.alive & ~mask;
    wanted |= member;
    return true;
  });
  if (!fine)
    return false;
  if (missing) {
    warp.suspend(mask, warp.pc(), Wait::Lanes, wanted);
    return false;
  }
  for (uint32_t left = mask; warp.launch->shufflesOrder && left;) {
    uint32_t member = uint32_t(members[__builtin_ctz(left)]) & warp.alive;
    warp.synchronizeLanes(member);
    left &= ~member;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// shfl.sync
//===----------------------------------------------------------------------===//

namespace {
enum class Shuffle : uint8_t { Up, Down, Butterfly, Index };
} // namespace

static void executeShuffle(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *members = warp.in(inst.source[3]);
  // The value may be undefined: it is only copied.
  if (!warp.checkSources(inst, mask, 1, inst.source.count) ||
      !gather(warp, members, mask))
    return;
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  const uint64_t *c = warp.in(inst.source[2]);
  uint32_t inRange = 0, affected = 0;
  uint64_t result[32];
  uint8_t undefined[32];
  bool fine = forLanesWhile(mask, [&](unsigned lane) {
    uint32_t offset = b[lane] & 31, control = uint32_t(c[lane]);
    uint32_t clamp = control & 31, segment = control >> 8 & 31;
    uint32_t most = (lane & segment) | (clamp & ~segment);
    uint32_t least = lane & segment;
    int from = 0;
    bool valid = false;
    switch (Shuffle(inst.mode)) {
    case Shuffle::Up:
      from = int(lane) - int(offset);
      valid = from >= int(most);
      break;
    case Shuffle::Down:
      from = lane + offset;
      valid = from <= int(most);
      break;
    case Shuffle::Butterfly:
      from = lane ^ offset;
      valid = from <= int(most);
      break;
    case Shuffle::Index:
      from = least | (offset & ~segment);
      valid = from <= int(most);
      break;
    }
    if (!valid)
      from = lane;
    if (!(uint32_t(members[lane]) >> from & 1)) {
      warp.report(lane, "divergent-shuffle",
                  "reads from lane " + std::to_string(from) +
                      ", which is not in the member mask " +
                      hex(uint32_t(members[lane])));
      return false;
    }
    if ((warp.existing & ~warp.alive) >> from & 1) {
      warp.report(lane, "divergent-shuffle",
                  "reads from lane " + std::to_string(from) +
                      ", which has exited");
      return false;
    }
    inRange |= uint32_t(valid) << lane;
    result[lane] = uint32_t(a[from]);
    // The value of a lane without a thread is undefined.
    undefined[lane] = warp.alive >> from & 1
                          ? warp.undefinedBytes(inst.source[0], from)
                          : 0xFF;
    undefined[lane] &= lowBytes(4);
    affected |= uint32_t(undefined[lane] != 0) << lane;
    return true;
  });
  if (!fine)
    return;
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) { d[lane] = result[lane]; });
  warp.define(inst.dest[0], mask, affected,
              [&](unsigned lane) { return undefined[lane]; });
  if (inst.predDest.count)
    warp.setPredicate(inst, 0, mask, inRange);
}

static bool decodeShuffle(Decoder &decoder, Inst &inst) {
  if (!decoder.take("sync"))
    return decoder.unsupported("expected shfl.sync");
  int mode = decoder.takeOneOf({"up", "down", "bfly", "idx"});
  inst.type = decoder.takeType();
  if (mode < 0 || inst.type != Type::B32)
    return decoder.unknown();
  inst.mode = mode;
  inst.undefinedRule = UndefinedRule::Handler;
  inst.handler = executeShuffle;
  if (!decoder.dest(inst, 0, inst.type))
    return false;
  const std::string &second = decoder.operand(0).second;
  if (!second.empty() && !decoder.predDest(inst, second))
    return false;
  for (unsigned i = 1; i <= 4; ++i)
    if (!decoder.source(inst, i, Type::U32))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// vote.sync, match.sync, redux.sync, elect.sync, activemask
//===----------------------------------------------------------------------===//

static void executeVote(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *members = warp.in(inst.source[0]);
  if (!gather(warp, members, mask))
    return;
  uint32_t votes = warp.predicate(inst, 0);
  uint32_t holds = 0;
  forLanes(mask, [&](unsigned lane) {
    uint32_t member = uint32_t(members[lane]) & warp.alive;
    uint32_t mine = votes & member;
    switch (inst.mode) {
    case 0:
      holds |= uint32_t(mine == member) << lane;
      break;
    case 1:
      holds |= uint32_t(mine != 0) << lane;
      break;
    case 2:
      holds |= uint32_t(mine == 0 || mine == member) << lane;
      break;
    default:
      warp.out(inst.dest[0])[lane] = mine;
      break;
    }
  });
  if (inst.mode != 3)
    warp.setPredicate(inst, 0, mask, holds);
}

static bool decodeVote(Decoder &decoder, Inst &inst) {
  if (!decoder.take("sync"))
    return decoder.unsupported("expected vote.sync");
  int mode = decoder.takeOneOf({"all", "any", "uni", "ballot"});
  inst.type = decoder.takeType();
  if (mode < 0 || inst.type != (mode == 3 ? Type::B32 : Type::Pred))
    return decoder.unknown();
  inst.mode = mode;
  inst.handler = executeVote;
  bool fine =
      mode == 3 ? decoder.dest(inst, 0, Type::B32) : decoder.predDest(inst, 0);
  return fine && decoder.predSource(inst, 1) &&
         decoder.source(inst, 2, Type::U32);
}

static void executeMatch(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *members = warp.in(inst.source[1]);
  if (!gather(warp, members, mask))
    return;
  const uint64_t *a = warp.in(inst.source[0]);
  uint64_t keep = inst.type == Type::B32 ? 0xFFFFFFFF : ~uint64_t(0);
  uint32_t result[32], all = 0;
  forLanes(mask, [&](unsigned lane) {
    uint32_t same = 0, member = uint32_t(members[lane]) & warp.alive;
    forLanes(member, [&](unsigned other) {
      same |= uint32_t((a[other] & keep) == (a[lane] & keep)) << other;
    });
    bool isAll = inst.mode == 1;
    result[lane] = isAll ? (same == member ? member : 0) : same;
    all |= uint32_t(same == member) << lane;
  });
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) { d[lane] = result[lane]; });
  if (inst.predDest.count)
    warp.setPredicate(inst, 0, mask, all);
}

static bool decodeMatch(Decoder &decoder, Inst &inst) {
  int mode = decoder.takeOneOf({"any", "all"});
  if (mode < 0 || !decoder.take("sync"))
    return decoder.unknown();
  inst.type = decoder.takeType();
  if (inst.type != Type::B32 && inst.type != Type::B64)
    return decoder.unknown();
  inst.mode = mode;
  inst.handler = executeMatch;
  const std::string &second = decoder.operand(0).second;
  return decoder.dest(inst, 0, Type::B32) &&
         (second.empty() || decoder.predDest(inst, second)) &&
         decoder.source(inst, 1, inst.type) &&
         decoder.source(inst, 2, Type::U32);
}

static void executeRedux(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *members = warp.in(inst.source[1]);
  if (!gather(warp, members, mask))
    return;
  const uint64_t *a = warp.in(inst.source[0]);
  uint32_t result[32];
  bool isSigned = inst.type == Type::S32;
  forLanes(mask, [&](unsigned lane) {
    uint32_t member = uint32_t(members[lane]) & warp.alive;
    uint32_t value = uint32_t(a[__builtin_ctz(member)]);
    forLanes(member & (member - 1), [&](unsigned other) {
      uint32_t x = uint32_t(a[other]);
      switch (inst.mode) {
      case 0:
        value += x;
        break;
      case 1:
        value = isSigned ? uint32_t(std::min(int32_t(value), int32_t(x)))
                         : std::min(value, x);
        break;
      case 2:
        value = isSigned ? uint32_t(std::max(int32_t(value), int32_t(x)))
                         : std::max(value, x);
        break;
      case 3:
        value &= x;
        break;
      case 4:
        value |= x;
        break;
      default:
        value ^= x;
        break;
      }
    });
    result[lane] = value;
  });
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) { d[lane] = result[lane]; });
}

static bool decodeRedux(Decoder &decoder, Inst &inst) {
  if (!decoder.take("sync"))
    return decoder.unknown();
  int op = decoder.takeOneOf({"add", "min", "max", "and", "or", "xor"});
  inst.type = decoder.takeType();
  if (op < 0 || byteWidth(inst.type) != 4 || !isInteger(inst.type))
    return decoder.unknown();
  inst.mode = op;
  inst.handler = executeRedux;
  return decoder.dest(inst, 0, inst.type) &&
         decoder.source(inst, 1, inst.type) &&
         decoder.source(inst, 2, Type::U32);
}

static void executeElect(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *members = warp.in(inst.source[0]);
  if (!gather(warp, members, mask))
    return;
  uint32_t elected = 0;
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    unsigned leader = __builtin_ctz(uint32_t(members[lane]) & warp.alive);
    elected |= uint32_t(leader == lane) << lane;
    d[lane] = leader;
  });
  warp.setPredicate(inst, 0, mask, elected);
}

static bool decodeElect(Decoder &decoder, Inst &inst) {
  if (!decoder.take("sync"))
    return decoder.unknown();
  inst.handler = executeElect;
  return decoder.dest(inst, 0, Type::B32) &&
         decoder.predDest(inst, decoder.operand(0).second) &&
         decoder.source(inst, 1, Type::U32);
}

static void executeActiveMask(Warp &warp, const Inst &inst, uint32_t mask) {
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) { d[lane] = mask; });
}

void addCollectiveInstructions(DecodeTable &table) {
  table["shfl"] = decodeShuffle;
  table["vote"] = decodeVote;
  table["match"] = decodeMatch;
  table["redux"] = decodeRedux;
  table["elect"] = decodeElect;
  table["activemask"] = [](Decoder &decoder, Inst &inst) {
    inst.type = decoder.takeType();
    inst.handler = executeActiveMask;
    return inst.type == Type::B32 ? decoder.dest(inst, 0, Type::B32)
                                  : decoder.unknown();
  };
}

} // namespace ptx
