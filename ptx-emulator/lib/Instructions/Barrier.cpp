//===- Barrier.cpp - barriers of warps, blocks and clusters -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

#include <algorithm>

namespace ptx {

//===----------------------------------------------------------------------===//
// bar.warp.sync
//===----------------------------------------------------------------------===//

static void executeWarpBarrier(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *members = warp.in(inst.source[0]);
  uint32_t left = mask;
  while (left) {
    unsigned first = __builtin_ctz(left);
    uint32_t member = uint32_t(members[first]);
    uint32_t here = 0;
    forLanes(left, [&](unsigned lane) {
      here |= uint32_t(uint32_t(members[lane]) == member) << lane;
    });
    left &= ~here;
    if (here & ~member) {
      warp.report(first, "divergent-shuffle",
                  "lanes " + hex(here) + " wait for the member mask " +
                      hex(member));
      return;
    }
    // Other lanes of the mask may wait at another bar.warp.sync.
    uint32_t all = here;
    for (const Group &group : warp.groups)
      if (group.wait == Wait::WarpBarrier && group.detail == member)
        all |= group.mask;
    if (all != (member & warp.alive)) {
      warp.suspend(here, warp.pc() + 1, Wait::WarpBarrier, member);
      continue;
    }
    for (Group &group : warp.groups)
      if (group.wait == Wait::WarpBarrier && group.detail == member)
        group.wait = Wait::None;
    warp.synchronizeLanes(all);
  }
}

//===----------------------------------------------------------------------===//
// bar.sync and similar instructions
//===----------------------------------------------------------------------===//

/// The value of an operand that must be uniform in the warp.
static bool uniformValue(Warp &warp, const uint64_t *column, uint32_t mask,
                         uint32_t &value) {
  value = uint32_t(column[__builtin_ctz(mask)]);
  return forLanesWhile(mask, [&](unsigned lane) {
    if (uint32_t(column[lane]) == value)
      return true;
    warp.report(lane, "divergent-barrier",
                "expected barrier operand " + std::to_string(value) +
                    " as in other lanes, got " +
                    std::to_string(uint32_t(column[lane])));
    return false;
  });
}

/// mode: BarrierOp; mode2: whether the number of threads is given.
static void executeBarrier(Warp &warp, const Inst &inst, uint32_t mask) {
  Block &block = *warp.block;
  BarrierOp op = BarrierOp(inst.mode);
  // All lanes that have not exited must arrive together; missing ones may still
  // arrive.
  if (inst.aligned && mask != warp.alive) {
    warp.suspend(mask, warp.pc(), Wait::Lanes, warp.alive);
    return;
  }
  uint32_t id, expected;
  if (!uniformValue(warp, warp.in(inst.source[0]), mask, id))
    return;
  uint32_t threads = warp.launch->threadsPerBlock();
  expected = threads;
  if (inst.mode2 &&
      !uniformValue(warp, warp.in(inst.source[1]), mask, expected))
    return;
  unsigned lane = __builtin_ctz(mask);
  if (id > 15 || (inst.mode2 && (expected == 0 || expected % 32 != 0))) {
    warp.report(lane, "divergent-barrier",
                "expected a barrier below 16 and a multiple of 32 threads, "
                "got barrier " +
                    std::to_string(id) + " and " + std::to_string(expected) +
                    " threads");
    return;
  }
  NamedBarrier &barrier = block.barriers[id];
  if (barrier.arrived != 0 && barrier.expected != expected) {
    warp.report(lane, "divergent-barrier",
                "expected " + std::to_string(barrier.expected) +
                    " threads as others at barrier " + std::to_string(id) +
                    ", got " + std::to_string(expected));
    return;
  }
  barrier.expected = expected;
  barrier.isCounted = inst.mode2;
  barrier.arrived += __builtin_popcount(mask);
  // A given number of threads counts whole warps.
  if (inst.mode2 && mask == warp.existing)
    barrier.arrived += 32 - __builtin_popcount(mask);
  Order &order = block.cluster->order;
  forLanes(mask, [&](unsigned l) {
    barrier.meeting.add(order.leave(warp.actorOf(l)));
  });
  if (op != BarrierOp::Sync && op != BarrierOp::Arrive) {
    barrier.count += __builtin_popcount(warp.predicate(inst, 0) & mask);
    barrier.voters += __builtin_popcount(mask);
  }
  if (op != BarrierOp::Arrive)
    barrier.op = op;
  if (op != BarrierOp::Arrive) {
    barrier.waiters.push_back({&warp, mask, inst.dest.count ? inst.dest[0] : -1,
                               inst.predDest.count ? inst.predDest[0] : -1});
    warp.suspend(mask, warp.pc() + 1, Wait::Barrier, id);
  }
  ++warp.launch->progress;
  block.finishIfComplete(barrier);
}

static bool decodeBarrier(Decoder &decoder, Inst &inst, bool isShort) {
  if (decoder.take("warp")) {
    inst.handler = executeWarpBarrier;
    return decoder.take("sync") ? decoder.source(inst, 0, Type::U32)
                                : decoder.unknown();
  }
  decoder.take("cta");
  int op = decoder.takeOneOf({"sync", "arrive", "red"});
  if (op < 0)
    return decoder.unknown();
  bool aligned = decoder.take("aligned");
  BarrierOp kind = op == 0 ? BarrierOp::Sync : BarrierOp::Arrive;
  unsigned next = 0;
  if (op == 2) {
    int reduction = decoder.takeOneOf({"popc", "and", "or"});
    if (reduction < 0)
      return decoder.unknown();
    aligned |= decoder.take("aligned");
    kind = reduction == 0   ? BarrierOp::PopCount
           : reduction == 1 ? BarrierOp::And
                            : BarrierOp::Or;
    Type type = decoder.takeType();
    if (type != (reduction == 0 ? Type::U32 : Type::Pred))
      return decoder.unknown();
    bool fine = reduction == 0 ? decoder.dest(inst, next++, Type::U32)
                               : decoder.predDest(inst, next++);
    if (!fine)
      return false;
  }
  inst.aligned = isShort || aligned;
  inst.mode = uint16_t(kind);
  inst.handler = executeBarrier;
  if (!decoder.source(inst, next++, Type::U32))
    return false;
  unsigned operandsAfter = op == 2 ? 1 : 0;
  inst.mode2 = decoder.numOperands() > next + operandsAfter;
  if (inst.mode2 && !decoder.source(inst, next++, Type::U32))
    return false;
  return op != 2 || decoder.predSource(inst, next);
}

//===----------------------------------------------------------------------===//
// barrier.cluster
//===----------------------------------------------------------------------===//

/// mode: 0 arrive, 1 wait; `release`: arrive orders memory.
static void executeClusterBarrier(Warp &warp, const Inst &inst, uint32_t mask) {
  if (inst.aligned && mask != warp.alive) {
    warp.suspend(mask, warp.pc(), Wait::Lanes, warp.alive);
    return;
  }
  Cluster &cluster = *warp.block->cluster;
  if (inst.mode == 0) {
    cluster.arriveAtClusterBarrier(warp, mask, inst.release);
    return;
  }
  uint32_t waiting = 0;
  forLanes(mask, [&](unsigned lane) {
    if (!warp.launch->failed() && !cluster.passClusterBarrier(warp, lane))
      waiting |= 1u << lane;
  });
  // They execute the wait again when the barrier is complete.
  if (waiting && !warp.launch->failed())
    warp.suspend(waiting, warp.pc(), Wait::Cluster);
}

static bool decodeClusterBarrier(Decoder &decoder, Inst &inst) {
  int op = decoder.takeOneOf({"arrive", "wait"});
  if (op < 0)
    return decoder.unknown();
  inst.mode = op;
  inst.release = !decoder.take("relaxed");
  decoder.takeOneOf({"release", "acquire"});
  inst.aligned = decoder.take("aligned");
  inst.handler = executeClusterBarrier;
  return decoder.expectOperands(0);
}

void addBarrierInstructions(DecodeTable &table) {
  table["bar"] = [](Decoder &d, Inst &i) { return decodeBarrier(d, i, true); };
  table["barrier"] = [](Decoder &d, Inst &i) {
    return d.take("cluster") ? decodeClusterBarrier(d, i)
                             : decodeBarrier(d, i, false);
  };
}

} // namespace ptx
