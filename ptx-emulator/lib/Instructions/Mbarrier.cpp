//===- Mbarrier.cpp - barriers in shared memory -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MbarrierAccess.h"

#include <algorithm>

namespace ptx {

bool findMbarrier(Warp &warp, unsigned lane, Space space, uint64_t address,
                  MbarrierPlace &result) {
  if (space != Space::Generic)
    address &= 0xFFFFFFFF;
  Place &place = result.place;
  if (!findPlace(warp, lane, space, address, 8, 8, place))
    return false;
  if (place.space != Space::Shared) {
    warp.report(lane, "out-of-bounds",
                "expected an mbarrier in shared memory, got address " +
                    hex(address));
    return false;
  }
  auto found = place.block->mbarriers.find(place.offset);
  if (found == place.block->mbarriers.end()) {
    warp.report(lane, "uninitialised",
                "the mbarrier at shared address " + hex(address) +
                    " was never initialised");
    return false;
  }
  result.barrier = &found->second;
  Actor actor = {&warp.block->cluster->order, warp.actorOf(lane),
                 Scope::Device};
  Conflict conflict;
  if (place.region->shadow.read(place.offset, 8, actor, conflict))
    return true;
  warp.report(lane, "race",
              "uses the mbarrier at shared address " + hex(address) +
                  ", which " + warp.launch->describeActor(conflict.id) +
                  " initialised; expected a barrier between");
  return false;
}

/// `count` arrivals of one thread.
static bool arrive(Warp &warp, unsigned lane, const Inst &inst,
                   MbarrierPlace &found, uint32_t count) {
  Mbarrier &barrier = *found.barrier;
  if (count > barrier.pending) {
    warp.report(lane, "divergent-barrier",
                "arrives " + std::to_string(count) +
                    " times at an mbarrier that expects " +
                    std::to_string(barrier.pending) +
                    " more arrivals in this phase");
    return false;
  }
  Cluster &cluster = *warp.block->cluster;
  // Only threads of a barrier's own block can wait for it.
  bool isFar = found.place.block != warp.block;
  if (inst.release && (!isFar || inst.scope >= Scope::Cluster))
    (isFar ? barrier.currentFar : barrier.current)
        .add(cluster.order.leave(warp.actorOf(lane)));
  barrier.pending -= count;
  ++warp.launch->progress;
  cluster.copies.finishPhase(barrier);
  return true;
}

/// The result of `arrive`: the phase, in the emulator's own encoding.
static uint64_t stateOf(const Mbarrier &barrier) {
  return uint64_t(barrier.phase) << 1 | 1;
}

static void executeInit(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *base = warp.in(inst.source[0]);
  const uint64_t *counts = warp.in(inst.source[1]);
  forLanesWhile(mask, [&](unsigned lane) {
    uint64_t address = base[lane] + inst.offset;
    if (inst.space != Space::Generic)
      address &= 0xFFFFFFFF;
    Place place;
    if (!findPlace(warp, lane, inst.space, address, 8, 8, place))
      return false;
    if (place.space != Space::Shared || place.block != warp.block) {
      warp.report(lane, "out-of-bounds",
                  "expected an mbarrier in the shared memory of the own "
                  "block");
      return false;
    }
    uint32_t offset = place.offset, count = uint32_t(counts[lane]);
    if (warp.block->mbarriers.count(offset)) {
      warp.report(lane, "race",
                  "initialises the mbarrier at shared address " + hex(address) +
                      ", which is in use");
      return false;
    }
    if (count == 0 || count > kMostMbarrierCount) {
      warp.report(lane, "out-of-bounds",
                  "expected a count of 1 to " +
                      std::to_string(kMostMbarrierCount) + ", got " +
                      std::to_string(count));
      return false;
    }
    Order &order = warp.block->cluster->order;
    if (!checkAccess(warp, lane, place, 8, AccessKind::Write, Scope::None))
      return false;
    Mbarrier &barrier = warp.block->mbarriers[offset];
    barrier.expected = barrier.pending = count;
    barrier.initId = order.idOf(warp.actorOf(lane));
    barrier.initTime = order.clockOf(warp.actorOf(lane));
    place.region->busy.set(offset, 8, true);
    ++place.region->numBusy;
    place.region->defined.set(offset, 8, true);
    return true;
  });
  ++warp.launch->progress;
}

static void executeInvalidate(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *base = warp.in(inst.source[0]);
  forLanesWhile(mask, [&](unsigned lane) {
    MbarrierPlace found;
    if (!findMbarrier(warp, lane, inst.space, base[lane] + inst.offset, found))
      return false;
    Place &place = found.place;
    place.region->busy.set(place.offset, 8, false);
    --place.region->numBusy;
    place.block->mbarriers.erase(place.offset);
    place.region->defined.set(place.offset, 8, false);
    // A thread that still uses it races with this one.
    return checkAccess(warp, lane, place, 8, AccessKind::Write, Scope::None);
  });
}

namespace {
enum ArriveFlags : uint16_t {
  kExpect = 1,     // expect_tx first
  kArrive = 2,     // arrive
  kComplete = 4,   // complete_tx
  kHasCount = 8,   // the count or the bytes are an operand
  kDrop = 16,      // fewer arrivals are expected in later phases
  kNoComplete = 32 // must not end the phase
};
} // namespace

/// Changes the bytes that the phase still waits for. As copies may complete at
/// any time, the count may be as high as all bytes expected in the phase, or as
/// low as minus those of all copies.
static bool expectBytes(Warp &warp, unsigned lane, Mbarrier &barrier,
                        int64_t bytes) {
  barrier.bytes += bytes;
  if (bytes >= -int64_t(kMostMbarrierCount) &&
      bytes <= int64_t(kMostMbarrierCount) &&
      barrier.bytes >= -int64_t(kMostMbarrierCount) &&
      barrier.bytes <= int64_t(kMostMbarrierCount))
    return true;
  warp.report(lane, "out-of-bounds",
              "expected at most " + std::to_string(kMostMbarrierCount) +
                  " bytes in a phase of an mbarrier, got " +
                  std::to_string(barrier.bytes));
  return false;
}

static void executeArrive(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *base = warp.in(inst.source[0]);
  const uint64_t *operand =
      inst.mode & kHasCount ? warp.in(inst.source[1]) : nullptr;
  forLanesWhile(mask, [&](unsigned lane) {
    MbarrierPlace found;
    if (!findMbarrier(warp, lane, inst.space, base[lane] + inst.offset, found))
      return false;
    Mbarrier &barrier = *found.barrier;
    uint64_t state = stateOf(barrier);
    if ((inst.mode & kExpect) &&
        !expectBytes(warp, lane, barrier, uint32_t(operand[lane])))
      return false;
    if ((inst.mode & kComplete) &&
        !expectBytes(warp, lane, barrier, -int64_t(uint32_t(operand[lane]))))
      return false;
    if (inst.mode & kArrive) {
      uint32_t count =
          operand && !(inst.mode & kExpect) ? uint32_t(operand[lane]) : 1;
      if ((inst.mode & kNoComplete) && count >= barrier.pending) {
        warp.report(lane, "divergent-barrier",
                    "ends the phase of an mbarrier, in spite of .noComplete");
        return false;
      }
      if (inst.mode & kDrop)
        barrier.expected -= std::min(count, barrier.expected);
      if (!arrive(warp, lane, inst, found, count))
        return false;
    } else {
      warp.block->cluster->copies.finishPhase(barrier);
    }
    if (inst.dest.count)
      warp.out(inst.dest[0])[lane] = state;
    return true;
  });
}

/// mode: 0 test_wait, 1 try_wait; mode2: whether a parity is given.
static void executeWait(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *base = warp.in(inst.source[0]);
  const uint64_t *operand = warp.in(inst.source[1]);
  Cluster &cluster = *warp.block->cluster;
  uint32_t done = 0;
  Mbarrier *failed = nullptr;
  bool fine = forLanesWhile(mask, [&](unsigned lane) {
    MbarrierPlace found;
    if (!findMbarrier(warp, lane, inst.space, base[lane] + inst.offset, found))
      return false;
    uint32_t parity = uint32_t(inst.mode2 ? operand[lane] : operand[lane] >> 1);
    bool over = cluster.copies.testPhase(*found.barrier, parity & 1, warp);
    done |= uint32_t(over) << lane;
    if (!over)
      failed = found.barrier;
    if (over && inst.acquire)
      cluster.order.learn(warp.actorOf(lane), found.barrier->completed);
    if (over && inst.acquire && inst.scope >= Scope::Cluster)
      cluster.order.learn(warp.actorOf(lane), found.barrier->completedFar);
    return true;
  });
  if (!fine)
    return;
  warp.setPredicate(inst, 0, mask, done);
  if (failed && std::find(failed->failed.begin(), failed->failed.end(),
                          &warp) == failed->failed.end()) {
    failed->failed.push_back(&warp);
    ++cluster.launch.progress;
  }
  if (mask & ~done)
    warp.yield();
}

static void takeMbarrierSpace(Decoder &decoder, Inst &inst) {
  inst.space = Space::Generic;
  int space = decoder.takeOneOf({"shared", "shared::cta", "shared::cluster"});
  if (space >= 0)
    inst.space = space == 2 ? Space::SharedCluster : Space::Shared;
}

/// Takes .sem and .scope; returns true for .relaxed.
static bool takeSemantics(Decoder &decoder, Inst &inst) {
  int order = decoder.takeOneOf({"release", "acquire", "relaxed"});
  bool isCluster = decoder.takeOneOf({"cta", "cluster"}) == 1;
  inst.scope = isCluster ? Scope::Cluster : Scope::Block;
  return order == 2;
}

static bool decodeArrive(Decoder &decoder, Inst &inst, uint16_t mode) {
  if ((mode & kArrive) && decoder.take("expect_tx"))
    mode |= kExpect | kHasCount;
  if ((mode & kArrive) && decoder.take("noComplete"))
    mode |= kNoComplete;
  inst.release = !takeSemantics(decoder, inst);
  takeMbarrierSpace(decoder, inst);
  inst.type = decoder.takeType();
  if (inst.type != Type::B64)
    return decoder.unknown();
  unsigned next = 0;
  if (mode & kArrive) {
    // A barrier of another block returns no state.
    if (decoder.operand(0).kind == SyntaxOperand::Sink)
      ++next;
    else if (decoder.operand(0).kind != SyntaxOperand::Address &&
             !decoder.dest(inst, next++, Type::B64))
      return false;
  }
  if (!decoder.address(inst, next++))
    return false;
  if (next < decoder.numOperands()) {
    mode |= kHasCount;
    if (!decoder.source(inst, next++, Type::U32))
      return false;
  }
  inst.mode = mode;
  inst.handler = executeArrive;
  return decoder.expectOperands(next);
}

static bool decodeWait(Decoder &decoder, Inst &inst, bool isTry) {
  inst.mode = isTry;
  inst.mode2 = decoder.take("parity");
  inst.acquire = !takeSemantics(decoder, inst);
  takeMbarrierSpace(decoder, inst);
  inst.type = decoder.takeType();
  if (inst.type != Type::B64)
    return decoder.unknown();
  inst.handler = executeWait;
  unsigned count = 3;
  if (!decoder.predDest(inst, 0) || !decoder.address(inst, 1) ||
      !decoder.source(inst, 2, inst.mode2 ? Type::U32 : Type::B64))
    return false;
  // The time hint.
  if (isTry && decoder.numOperands() == 4)
    count = 4;
  return decoder.expectOperands(count);
}

static bool decodeMbarrier(Decoder &decoder, Inst &inst) {
  int op = decoder.takeOneOf({"init", "inval", "arrive", "arrive_drop",
                              "expect_tx", "complete_tx", "test_wait",
                              "try_wait", "pending_count"});
  switch (op) {
  case 0:
    takeMbarrierSpace(decoder, inst);
    inst.handler = executeInit;
    return decoder.takeType() == Type::B64 && decoder.address(inst, 0) &&
           decoder.source(inst, 1, Type::U32);
  case 1:
    takeMbarrierSpace(decoder, inst);
    inst.handler = executeInvalidate;
    return decoder.takeType() == Type::B64 && decoder.address(inst, 0);
  case 2:
    return decodeArrive(decoder, inst, kArrive);
  case 3:
    return decodeArrive(decoder, inst, kArrive | kDrop);
  case 4:
    return decodeArrive(decoder, inst, kExpect | kHasCount);
  case 5:
    return decodeArrive(decoder, inst, kComplete | kHasCount);
  case 6:
    return decodeWait(decoder, inst, false);
  case 7:
    return decodeWait(decoder, inst, true);
  default:
    return decoder.unknown();
  }
}

void addMbarrierInstructions(DecodeTable &table) {
  table["mbarrier"] = decodeMbarrier;
}

} // namespace ptx
