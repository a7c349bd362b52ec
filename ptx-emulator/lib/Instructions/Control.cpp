//===- Control.cpp - branches, exits and fences -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryModifiers.h"

namespace ptx {

void executeBranch(Warp &warp, const Inst &inst, uint32_t mask) {
  warp.branch(mask, inst.target);
}

void executeTableBranch(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *index = warp.in(inst.source[0]);
  uint64_t values[32];
  forLanes(mask, [&](unsigned lane) { values[lane] = uint32_t(index[lane]); });
  while (mask) {
    unsigned lane = __builtin_ctz(mask);
    uint64_t value = values[lane];
    if (value >= inst.targets.size()) {
      warp.report(lane, "out-of-bounds",
                  "expected an index below " +
                      std::to_string(inst.targets.size()) + ", got " +
                      std::to_string(value));
      return;
    }
    uint32_t same = 0;
    forLanes(mask, [&](unsigned other) {
      same |= uint32_t(values[other] == value) << other;
    });
    warp.branch(same, inst.targets[value]);
    mask &= ~same;
  }
}

static void executeExit(Warp &warp, const Inst &, uint32_t mask) {
  warp.exitLanes(mask);
}

static bool decodeExit(Decoder &decoder, Inst &inst) {
  decoder.take("uni");
  inst.handler = executeExit;
  return decoder.expectOperands(0);
}

static void executeTrap(Warp &warp, const Inst &inst, uint32_t mask) {
  warp.report(__builtin_ctz(mask), "trap",
              inst.mode ? "brkpt" : "the kernel stopped itself");
}

static void executeFence(Warp &warp, const Inst &inst, uint32_t mask) {
  Order &order = warp.block->cluster->order;
  forLanes(mask,
           [&](unsigned lane) { order.fence(warp.actorOf(lane), inst.scope); });
}

static void executeNothing(Warp &, const Inst &, uint32_t) {}

static void executeGridWait(Warp &warp, const Inst &, uint32_t mask) {
  forLanes(mask, [&](unsigned lane) {
    warp.block->cluster->waitForKernelsAhead(warp.actorOf(lane));
  });
}

static void executeSleep(Warp &warp, const Inst &, uint32_t) { warp.yield(); }

namespace {
enum FencedSpaces : uint16_t { kFencesShared = 1, kFencesGlobal = 2 };
} // namespace

/// fence.proxy.async; mode: FencedSpaces.
static void executeProxyFence(Warp &warp, const Inst &inst, uint32_t mask) {
  Order &order = warp.block->cluster->order;
  forLanes(mask, [&](unsigned lane) {
    if (inst.mode & kFencesShared)
      order.fenceProxy(warp.actorOf(lane), ProxySpace::Shared);
    if (inst.mode & kFencesGlobal)
      order.fenceProxy(warp.actorOf(lane), ProxySpace::Global);
  });
}

/// fence.mbarrier_init: orders the mbarrier.init of a thread before later
/// operations on the mbarriers, of other blocks and proxies as well.
static void executeInitFence(Warp &warp, const Inst &, uint32_t mask) {
  Order &order = warp.block->cluster->order;
  forLanes(mask, [&](unsigned lane) {
    uint32_t actor = warp.actorOf(lane);
    uint32_t time = order.leave(actor).clock;
    for (auto &[offset, barrier] : warp.block->mbarriers)
      if (barrier.initId == order.idOf(actor))
        barrier.initFenceTime = time;
  });
}

static bool decodeFence(Decoder &decoder, Inst &inst) {
  inst.handler = executeFence;
  if (decoder.take("proxy")) {
    // Others order accesses of different kinds by one thread.
    int kind = decoder.takeOneOf({"async", "async::generic", "alias"});
    inst.handler = kind == 0 || kind == 1 ? executeProxyFence : executeNothing;
    if (kind < 0 && !decoder.takePrefix("tensormap"))
      return decoder.unknown();
    int space = decoder.takeOneOf({"global", "shared::cta", "shared::cluster"});
    inst.mode =
        (space != 0 ? kFencesShared : 0) | (space <= 0 ? kFencesGlobal : 0);
    while (decoder.takeOneOf(
               {"acquire", "release", "cta", "cluster", "gpu", "sys"}) >= 0 ||
           decoder.takePrefix("sync_restrict")) {
    }
    return decoder.expectOperands(decoder.numOperands());
  }
  if (decoder.take("mbarrier_init"))
    inst.handler = executeInitFence;
  decoder.takeOneOf({"sc", "acq_rel", "acquire", "release"});
  decoder.takePrefix("sync_restrict");
  inst.scope = takeScope(decoder);
  return decoder.expectOperands(0);
}

void addControlInstructions(DecodeTable &table) {
  table["ret"] = decodeExit;
  table["exit"] = decodeExit;
  table["trap"] = [](Decoder &decoder, Inst &inst) {
    inst.handler = executeTrap;
    return decoder.expectOperands(0);
  };
  table["brkpt"] = [](Decoder &decoder, Inst &inst) {
    inst.mode = 1;
    inst.handler = executeTrap;
    return decoder.expectOperands(0);
  };
  table["fence"] = decodeFence;
  table["membar"] = decodeFence;
  table["nanosleep"] = [](Decoder &decoder, Inst &inst) {
    inst.handler = executeSleep;
    return decoder.take("u32") ? decoder.source(inst, 0, Type::U32)
                               : decoder.unknown();
  };
  // The previous grid is complete: launches run one after the other.
  table["griddepcontrol"] = [](Decoder &decoder, Inst &inst) {
    int kind = decoder.takeOneOf({"wait", "launch_dependents"});
    inst.handler = kind == 0 ? executeGridWait : executeNothing;
    return kind >= 0 ? decoder.expectOperands(0) : decoder.unknown();
  };
  table["pmevent"] = [](Decoder &decoder, Inst &inst) {
    inst.handler = executeNothing;
    decoder.take("mask");
    return decoder.expectOperands(1);
  };
  table["setmaxnreg"] = [](Decoder &decoder, Inst &inst) {
    inst.handler = executeNothing;
    decoder.takeOneOf({"inc", "dec"});
    decoder.take("sync");
    decoder.take("aligned");
    return decoder.take("u32") && decoder.expectOperands(1);
  };
}

} // namespace ptx
