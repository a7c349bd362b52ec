//===- AsyncCopy.cpp - cp.async and bulk copies -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MbarrierAccess.h"
#include "MemoryModifiers.h"

namespace bngrad::ptx {

/// Begins a copy of one thread, and checks source and destination as accesses
/// of that thread.
static AsyncCopy *issue(Warp &warp, unsigned lane, const Place &source,
                        uint32_t sourceBytes, const Place &dest, uint32_t bytes,
                        bool bulk) {
  Cluster &cluster = *warp.block->cluster;
  if (sourceBytes &&
      !checkAccess(warp, lane, source, sourceBytes, AccessKind::Read, false))
    return nullptr;
  if (!checkAccess(warp, lane, dest, bytes, AccessKind::Write, false))
    return nullptr;
  AsyncCopy copy;
  copy.source = source.region;
  copy.sourceOffset = source.offset;
  copy.sourceBytes = sourceBytes;
  copy.dest = dest.region;
  copy.destOffset = dest.offset;
  copy.bytes = bytes;
  copy.line = warp.launch->program.code[warp.pc()].line;
  copy.issuer = copy.writer = warp.actorOf(lane);
  if (bulk && dest.space == Space::Shared) {
    // A reader must have waited, or be ordered after a thread that has.
    copy.writer = warp.launch->threadsPerBlock() * cluster.blocks.size() +
                  dest.block->rank;
    dest.region->shadow.overwrite(dest.offset, bytes,
                                  {&cluster.order, copy.writer, false});
    copy.writeTime = cluster.order.leave(copy.writer).clock;
  }
  ++warp.launch->progress;
  return cluster.copies.add(copy);
}

//===----------------------------------------------------------------------===//
// cp.async
//===----------------------------------------------------------------------===//

/// bytes: of the destination; mode: whether there is a source size.
static void executeCopy(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *to = warp.in(inst.source[0]);
  const uint64_t *from = warp.in(inst.source[1]);
  Place sources[32];
  unsigned count = 0;
  bool fine = forLanesWhile(mask, [&](unsigned lane) {
    uint32_t sourceBytes = inst.bytes;
    if (inst.mode)
      sourceBytes = uint32_t(warp.in(inst.source[2])[lane]);
    if (inst.predSource.count && (warp.predicate(inst, 0) >> lane & 1))
      sourceBytes = 0;
    if (sourceBytes > inst.bytes) {
      warp.report(lane, "out-of-bounds",
                  "expected at most " + std::to_string(inst.bytes) +
                      " bytes to copy, got " + std::to_string(sourceBytes));
      return false;
    }
    Place source, dest;
    uint64_t toAddress = (to[lane] + inst.offset) & 0xFFFFFFFF;
    if (!findPlace(warp, lane, Space::Shared, toAddress, inst.bytes, inst.bytes,
                   dest))
      return false;
    source = dest;
    // No bytes are read if the source size is 0.
    uint64_t fromAddress = from[lane] + int64_t(inst.target);
    if (sourceBytes && !findPlace(warp, lane, Space::Global, fromAddress,
                                  sourceBytes, inst.bytes, source))
      return false;
    if (sourceBytes)
      sources[count++] = source;
    AsyncCopy *copy =
        issue(warp, lane, source, sourceBytes, dest, inst.bytes, false);
    if (!copy)
      return false;
    warp.block->cluster->copies.threadQueue(copy->issuer).open.push_back(copy);
    return true;
  });
  if (fine && count)
    countRequest(warp, sources, count, inst.bytes, AccessKind::Read);
}

/// mode: groups that may remain pending; mode2: 0 commit, 1 wait; `strong`:
/// bulk; `aligned`: wait for all; `acquire`: wait only until the sources are
/// read.
static void executeGroup(Warp &warp, const Inst &inst, uint32_t mask) {
  AsyncCopies &copies = warp.block->cluster->copies;
  Order &order = warp.block->cluster->order;
  forLanes(mask, [&](unsigned lane) {
    uint32_t actor = warp.actorOf(lane);
    CopyQueue &queue =
        inst.strong ? copies.bulkQueue(actor) : copies.threadQueue(actor);
    if (inst.mode2 == 0) {
      queue.groups.push_back(std::move(queue.open));
      queue.open.clear();
      return;
    }
    if (inst.aligned) { // wait_all
      queue.groups.push_back(std::move(queue.open));
      queue.open.clear();
    }
    // The writes of the copies happen now.
    order.leave(actor);
    copies.wait(queue, inst.mode, inst.acquire);
  });
}

static bool decodeGroup(Decoder &decoder, Inst &inst, bool bulk) {
  inst.strong = bulk;
  inst.handler = executeGroup;
  if (decoder.take("commit_group")) {
    inst.mode2 = 0;
    return decoder.expectOperands(0);
  }
  inst.mode2 = 1;
  if (decoder.take("wait_all")) {
    inst.aligned = true;
    return decoder.expectOperands(0);
  }
  if (!decoder.take("wait_group"))
    return decoder.unknown();
  inst.acquire = decoder.take("read");
  inst.mode = decoder.operand(0).integer;
  return decoder.expectOperands(1);
}

/// cp.async.mbarrier.arrive; mode: noinc.
static void executeCopyArrive(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *base = warp.in(inst.source[0]);
  AsyncCopies &copies = warp.block->cluster->copies;
  forLanesWhile(mask, [&](unsigned lane) {
    MbarrierPlace found;
    if (!findMbarrier(warp, lane, inst.space, base[lane] + inst.offset, found))
      return false;
    Mbarrier &barrier = *found.barrier;
    uint32_t actor = warp.actorOf(lane);
    Mbarrier::Deferred arrival;
    arrival.actor = actor;
    CopyQueue &queue = copies.threadQueue(actor);
    for (const auto &group : queue.groups)
      arrival.copies.insert(arrival.copies.end(), group.begin(), group.end());
    arrival.copies.insert(arrival.copies.end(), queue.open.begin(),
                          queue.open.end());
    if (!inst.mode)
      ++barrier.pending;
    barrier.deferred.push_back(std::move(arrival));
    ++warp.launch->progress;
    return true;
  });
}

static bool decodeAsync(Decoder &decoder, Inst &inst) {
  if (decoder.take("mbarrier")) {
    if (!decoder.take("arrive"))
      return decoder.unknown();
    inst.mode = decoder.take("noinc");
    inst.space = Space::Generic;
    if (decoder.takeOneOf({"shared", "shared::cta"}) >= 0)
      inst.space = Space::Shared;
    inst.handler = executeCopyArrive;
    return decoder.takeType() == Type::B64 && decoder.address(inst, 0);
  }
  int cache = decoder.takeOneOf({"ca", "cg"});
  if (cache < 0)
    return decodeGroup(decoder, inst, false);
  if (decoder.takeOneOf({"shared", "shared::cta"}) < 0 ||
      !decoder.take("global"))
    return decoder.unknown();
  bool hasPolicy = takeCacheHints(decoder);
  inst.handler = executeCopy;
  inst.bytes = decoder.operand(2).integer;
  if (inst.bytes != 16 && (cache == 1 || (inst.bytes != 4 && inst.bytes != 8)))
    return decoder.unsupported("a size of " + std::to_string(inst.bytes));
  // `target` holds the offset of the source address.
  if (!decoder.address(inst, 1))
    return false;
  Inst sourceOnly = inst;
  inst.source = {};
  inst.offset = 0;
  if (!decoder.address(inst, 0))
    return false;
  inst.source.add(sourceOnly.source[0]);
  inst.target = uint32_t(sourceOnly.offset);
  unsigned next = 3;
  if (decoder.numOperands() > next + hasPolicy) {
    if (decoder.isPredicate(next)) {
      if (!decoder.predSource(inst, next++))
        return false;
    } else {
      inst.mode = 1;
      if (!decoder.source(inst, next++, Type::U32))
        return false;
    }
  }
  return decoder.expectOperands(next + hasPolicy);
}

//===----------------------------------------------------------------------===//
// cp.async.bulk
//===----------------------------------------------------------------------===//

/// Sources: destination, source, bytes, and, for completion by an mbarrier,
/// its address and, if mode is 1, the mask of the blocks to write to. The
/// offsets of the addresses are in `targets`.
static void executeBulk(Warp &warp, const Inst &inst, uint32_t mask) {
  Cluster &cluster = *warp.block->cluster;
  bool toGlobal = inst.space == Space::Global;
  auto value = [&](unsigned i, unsigned lane) {
    return warp.in(inst.source[i])[lane];
  };
  auto shared = [](uint64_t address) { return address & 0xFFFFFFFF; };
  forLanesWhile(mask, [&](unsigned lane) {
    uint64_t to = value(0, lane) + int32_t(inst.targets[0]);
    uint64_t from = value(1, lane) + int32_t(inst.targets[1]);
    uint32_t bytes = uint32_t(value(2, lane));
    if (bytes % 16 != 0) {
      warp.report(lane, "misaligned",
                  "expected a multiple of 16 bytes to copy, got " +
                      std::to_string(bytes));
      return false;
    }
    if (inst.space != Space::Global)
      to = shared(to);
    if (inst.otherSpace != Space::Global)
      from = shared(from);
    Place source, dest;
    if (!findPlace(warp, lane, inst.otherSpace, from, bytes, 16, source))
      return false;
    if (source.space == Space::Global)
      warp.launch->traffic.bulk(*static_cast<Buffer *>(source.region),
                                source.address, bytes, false);
    if (toGlobal) {
      if (!findPlace(warp, lane, Space::Global, to, bytes, 16, dest))
        return false;
      warp.launch->traffic.bulk(*static_cast<Buffer *>(dest.region),
                                dest.address, bytes, true);
      AsyncCopy *copy = issue(warp, lane, source, bytes, dest, bytes, true);
      if (copy)
        cluster.copies.bulkQueue(copy->issuer).open.push_back(copy);
      return copy != nullptr;
    }
    uint64_t barrierAddress = shared(value(3, lane) + int32_t(inst.targets[2]));
    uint32_t blocks = 1;
    bool multicast = inst.mode == 1;
    if (multicast)
      blocks = uint32_t(value(4, lane)) & 0xFFFF;
    for (uint32_t rank = 0; rank < 16; ++rank) {
      if (!(blocks >> rank & 1))
        continue;
      uint64_t window = 0;
      if (multicast) {
        window = uint64_t(rank + 1) << kRankShift;
        to &= (1u << kRankShift) - 1;
        barrierAddress &= (1u << kRankShift) - 1;
      }
      MbarrierPlace found;
      if (!findPlace(warp, lane, Space::SharedCluster, to | window, bytes, 16,
                     dest) ||
          !findMbarrier(warp, lane, Space::SharedCluster,
                        barrierAddress | window, found))
        return false;
      if (found.place.block != dest.block) {
        warp.report(lane, "out-of-bounds",
                    "expected the mbarrier in the block that is written to");
        return false;
      }
      AsyncCopy *copy = issue(warp, lane, source, bytes, dest, bytes, true);
      if (!copy)
        return false;
      found.barrier->copies.push_back(copy);
      found.barrier->copyBytes += bytes;
    }
    return true;
  });
}

static void executeNothing(Warp &, const Inst &, uint32_t) {}

/// Adds the address operand `i` and its offset.
static bool addAddress(Decoder &decoder, Inst &inst, unsigned i) {
  inst.offset = 0;
  if (!decoder.address(inst, i))
    return false;
  inst.targets.push_back(uint32_t(inst.offset));
  inst.offset = 0;
  return true;
}

static bool decodeBulk(Decoder &decoder, Inst &inst) {
  if (decoder.take("prefetch")) {
    inst.handler = executeNothing;
    if (!decoder.take("L2") || !decoder.take("global"))
      return decoder.unknown();
    takeCacheHints(decoder);
    return decoder.expectOperands(decoder.numOperands());
  }
  static constexpr Space kDest[] = {Space::SharedCluster, Space::Shared,
                                    Space::Global};
  static constexpr Space kSource[] = {Space::Global, Space::Shared};
  int dest = decoder.takeOneOf({"shared::cluster", "shared::cta", "global"});
  if (dest < 0)
    return decodeGroup(decoder, inst, true);
  int source = decoder.takeOneOf({"global", "shared::cta"});
  if (source < 0)
    return decoder.unknown();
  inst.space = kDest[dest];
  inst.otherSpace = kSource[source];
  bool toGlobal = inst.space == Space::Global;
  if (!decoder.take(toGlobal ? "bulk_group" : "mbarrier::complete_tx::bytes"))
    return decoder.unknown();
  bool multicast = decoder.take("multicast::cluster");
  bool hasPolicy = takeCacheHints(decoder);
  inst.mode = multicast;
  inst.handler = executeBulk;
  if (!addAddress(decoder, inst, 0) || !addAddress(decoder, inst, 1) ||
      !decoder.source(inst, 2, Type::U32))
    return false;
  unsigned next = 3;
  if (!toGlobal && !addAddress(decoder, inst, next++))
    return false;
  if (multicast && !decoder.source(inst, next++, Type::U16))
    return false;
  return decoder.expectOperands(next + hasPolicy);
}

void addAsyncCopyInstructions(DecodeTable &table) {
  table["cp"] = [](Decoder &decoder, Inst &inst) {
    if (!decoder.take("async"))
      return decoder.unknown();
    return decoder.take("bulk") ? decodeBulk(decoder, inst)
                                : decodeAsync(decoder, inst);
  };
}

} // namespace bngrad::ptx
