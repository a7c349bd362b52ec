//===- AsyncCopy.cpp - cp.async and bulk copies -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MbarrierAccess.h"
#include "MemoryModifiers.h"

namespace ptx {

namespace {
/// A copy that a thread begins.
struct NewCopy {
  Place source; // without a region if `bytes` are given
  uint32_t sourceBytes = 0;
  Place dest;
  uint32_t bytes = 0;
  /// By the asynchronous proxy.
  bool isBulk = false;
  std::optional<Reduction> reduction;
};
} // namespace

/// Begins a copy of one thread, and checks source and destination as accesses
/// of that thread.
static AsyncCopy *issue(Warp &warp, unsigned lane, const NewCopy &request) {
  Cluster &cluster = *warp.block->cluster;
  const auto &[source, sourceBytes, dest, bytes, isBulk, reduction] = request;
  AccessKind kind = reduction ? AccessKind::Atomic : AccessKind::Write;
  if (isBulk &&
      (!checkProxyFence(warp, lane, source, sourceBytes, AccessKind::Read) ||
       !checkProxyFence(warp, lane, dest, bytes, kind)))
    return nullptr;
  if (sourceBytes && !checkAccess(warp, lane, source, sourceBytes,
                                  AccessKind::Read, Scope::None))
    return nullptr;
  if (!checkAccess(warp, lane, dest, bytes, kind,
                   reduction ? Scope::Device : Scope::None))
    return nullptr;
  AsyncCopy copy;
  copy.source = source.region;
  copy.sourceOffset = source.offset;
  copy.sourceBytes = sourceBytes;
  copy.dest = dest.region;
  copy.destOffset = dest.offset;
  copy.bytes = bytes;
  copy.reduction = reduction;
  copy.isBulk = isBulk;
  copy.line = warp.launch->program.code[warp.pc()].line;
  copy.issuer = copy.writer = warp.actorOf(lane);
  if (dest.space == Space::Shared && (isBulk || !source.region)) {
    // A reader must have waited, or be ordered after a thread that has.
    copy.writer = warp.launch->threadsPerBlock() * cluster.blocks.size() +
                  dest.block->rank;
    dest.region->shadow.overwrite(
        dest.offset, bytes,
        {&cluster.order, copy.writer, reduction ? Scope::Device : Scope::None},
        isBulk);
    copy.writeTime = cluster.order.leave(copy.writer).clock;
  }
  ++warp.launch->progress;
  return cluster.copies.add(copy);
}

/// Lets `copy` complete at an mbarrier, in the block that is written to.
static bool completeAt(Warp &warp, unsigned lane, MbarrierPlace &found,
                       const Place &dest, AsyncCopy *copy) {
  Mbarrier &barrier = *found.barrier;
  if (found.place.block != dest.block) {
    warp.report(lane, "out-of-bounds",
                "expected the mbarrier in the block that is written to");
    return false;
  }
  barrier.copies.push_back(copy);
  barrier.copyBytes += copy->bytes;
  if (barrier.copyBytes - barrier.bytes <= int64_t(kMostMbarrierCount))
    return true;
  warp.report(lane, "out-of-bounds",
              "expected copies of at most " +
                  std::to_string(kMostMbarrierCount) +
                  " bytes more than an mbarrier expects, got " +
                  std::to_string(barrier.copyBytes - barrier.bytes));
  return false;
}

/// Reports an mbarrier that the asynchronous proxy may not know yet.
static bool checkInitFence(Warp &warp, unsigned lane,
                           const MbarrierPlace &found) {
  const Mbarrier &barrier = *found.barrier;
  const Order &order = warp.block->cluster->order;
  uint32_t actor = warp.actorOf(lane);
  if (order.isFenced(barrier.initId, barrier.initTime, actor,
                     ProxySpace::Shared) ||
      (barrier.initFenceTime != 0 &&
       order.happenedBefore(barrier.initId, barrier.initFenceTime, actor)))
    return true;
  warp.report(lane, "missing-proxy-fence",
              "a bulk copy arrives at the mbarrier at shared address " +
                  hex(found.place.address) + ", which " +
                  warp.launch->describeActor(barrier.initId) +
                  " initialised; expected fence.proxy.async or "
                  "fence.mbarrier_init between");
  return false;
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
        issue(warp, lane, {source, sourceBytes, dest, inst.bytes, false, {}});
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

/// The operands of a bulk copy: destination, source, bytes, and, for completion
/// by an mbarrier, its address and, if mode is 1, the mask of the blocks to
/// write to. The offsets of the addresses are in `targets`. mode2: 0, or the
/// operation of a reduction and 1.
namespace {
struct BulkOperands {
  uint64_t to, from;
  uint32_t bytes;
  uint64_t barrier;
  uint32_t blocks;
};
} // namespace

static std::optional<Reduction> reductionOf(const Inst &inst) {
  if (inst.mode2 == 0)
    return std::nullopt;
  return Reduction{AtomicOp(inst.mode2 - 1), inst.type,
                   inst.space == Space::Global};
}

/// To global memory: completes with its bulk group.
static bool copyToGlobal(Warp &warp, unsigned lane, const Inst &inst,
                         const BulkOperands &operands, const Place &source) {
  Place dest;
  if (!findPlace(warp, lane, Space::Global, operands.to, operands.bytes, 16,
                 dest))
    return false;
  const Buffer &buffer = *static_cast<Buffer *>(dest.region);
  warp.launch->traffic.bulk(buffer, dest.address, operands.bytes, true);
  AsyncCopy *copy = issue(
      warp, lane,
      {source, operands.bytes, dest, operands.bytes, true, reductionOf(inst)});
  if (copy)
    warp.block->cluster->copies.bulkQueue(copy->issuer).open.push_back(copy);
  return copy != nullptr;
}

/// To the shared memory of blocks: completes at an mbarrier of each.
static bool copyToShared(Warp &warp, unsigned lane, const Inst &inst,
                         BulkOperands operands, const Place &source) {
  bool isMulticast = inst.mode == 1;
  for (uint32_t rank = 0; rank < 16; ++rank) {
    if (!(operands.blocks >> rank & 1))
      continue;
    uint64_t window = 0;
    if (isMulticast) {
      window = uint64_t(rank + 1) << kRankShift;
      operands.to &= (1u << kRankShift) - 1;
      operands.barrier &= (1u << kRankShift) - 1;
    }
    Place dest;
    MbarrierPlace found;
    if (!findPlace(warp, lane, Space::SharedCluster, operands.to | window,
                   operands.bytes, 16, dest) ||
        !findMbarrier(warp, lane, Space::SharedCluster,
                      operands.barrier | window, found) ||
        !checkInitFence(warp, lane, found))
      return false;
    AsyncCopy *copy = issue(warp, lane,
                            {source, operands.bytes, dest, operands.bytes, true,
                             reductionOf(inst)});
    if (!copy || !completeAt(warp, lane, found, dest, copy))
      return false;
  }
  return true;
}

static void executeBulk(Warp &warp, const Inst &inst, uint32_t mask) {
  auto value = [&](unsigned i, unsigned lane) {
    return warp.in(inst.source[i])[lane];
  };
  auto shared = [](uint64_t address) { return address & 0xFFFFFFFF; };
  forLanesWhile(mask, [&](unsigned lane) {
    BulkOperands operands = {};
    operands.to = value(0, lane) + int32_t(inst.targets[0]);
    operands.from = value(1, lane) + int32_t(inst.targets[1]);
    operands.bytes = uint32_t(value(2, lane));
    operands.blocks = 1;
    if (operands.bytes % 16 != 0) {
      warp.report(lane, "misaligned",
                  "expected a multiple of 16 bytes to copy, got " +
                      std::to_string(operands.bytes));
      return false;
    }
    if (inst.otherSpace != Space::Global)
      operands.from = shared(operands.from);
    Place source;
    if (!findPlace(warp, lane, inst.otherSpace, operands.from, operands.bytes,
                   16, source))
      return false;
    if (source.space == Space::Global)
      warp.launch->traffic.bulk(*static_cast<Buffer *>(source.region),
                                source.address, operands.bytes, false);
    if (inst.space == Space::Global)
      return copyToGlobal(warp, lane, inst, operands, source);
    operands.to = shared(operands.to);
    operands.barrier = shared(value(3, lane) + int32_t(inst.targets[2]));
    if (inst.mode == 1)
      operands.blocks = uint32_t(value(4, lane)) & 0xFFFF;
    return copyToShared(warp, lane, inst, operands, source);
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

/// Whether `cp.reduce.async.bulk` has `reduction`.
static bool canReduce(const Reduction &reduction, bool toGlobal) {
  auto [op, type, isGlobal] = reduction;
  bool isHalf = type == Type::F16 || type == Type::BF16;
  switch (op) {
  case AtomicOp::Add:
    return type == Type::U32 || type == Type::S32 || type == Type::U64 ||
           (toGlobal && (isHalf || type == Type::F32 || type == Type::F64));
  case AtomicOp::Min:
  case AtomicOp::Max:
    return type == Type::U32 || type == Type::S32 ||
           (toGlobal && (isHalf || type == Type::U64 || type == Type::S64));
  case AtomicOp::Inc:
  case AtomicOp::Dec:
    return type == Type::U32;
  default:
    return type == Type::B32 || (toGlobal && type == Type::B64);
  }
}

/// The operation and the type of cp.reduce.
static bool decodeReduction(Decoder &decoder, Inst &inst) {
  int op = decoder.takeOneOf(
      {"add", "min", "max", "and", "or", "xor", "inc", "dec"});
  decoder.take("noftz");
  inst.type = decoder.takeType();
  bool toGlobal = inst.space == Space::Global;
  if (op < 0 || !canReduce({AtomicOp(op), inst.type, toGlobal}, toGlobal))
    return decoder.unknown();
  bool isHalf = inst.type == Type::F16 || inst.type == Type::BF16;
  if (isHalf && AtomicOp(op) != AtomicOp::Add)
    return decoder.unsupported("the minimum and maximum of 16-bit types");
  inst.mode2 = op + 1;
  return true;
}

static bool decodeBulk(Decoder &decoder, Inst &inst, bool reduces) {
  if (!reduces && decoder.take("prefetch")) {
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
    return reduces ? decoder.unknown() : decodeGroup(decoder, inst, true);
  int source = decoder.takeOneOf({"global", "shared::cta"});
  if (source < 0)
    return decoder.unknown();
  inst.space = kDest[dest];
  inst.otherSpace = kSource[source];
  bool toGlobal = inst.space == Space::Global;
  if (!decoder.take(toGlobal ? "bulk_group" : "mbarrier::complete_tx::bytes"))
    return decoder.unknown();
  if (reduces &&
      (inst.otherSpace != Space::Shared || !decodeReduction(decoder, inst)))
    return decoder.unknown();
  bool multicast = !reduces && decoder.take("multicast::cluster");
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

//===----------------------------------------------------------------------===//
// st.async
//===----------------------------------------------------------------------===//

/// Sources: address, address of the mbarrier, elements. The offset of the
/// second address is in `targets`.
static void executeStoreAsync(Warp &warp, const Inst &inst, uint32_t mask) {
  unsigned count = inst.source.count - 2;
  if (!warp.checkSources(inst, mask, 0, 2))
    return;
  forLanesWhile(mask, [&](unsigned lane) {
    auto address = [&](unsigned i) {
      return (warp.in(inst.source[i])[lane] + int32_t(inst.targets[i])) &
             0xFFFFFFFF;
    };
    NewCopy request;
    request.bytes = inst.bytes * count;
    MbarrierPlace found;
    if (!findPlace(warp, lane, Space::SharedCluster, address(0), request.bytes,
                   request.bytes, request.dest) ||
        !findMbarrier(warp, lane, Space::SharedCluster, address(1), found))
      return false;
    AsyncCopy *copy = issue(warp, lane, request);
    if (!copy)
      return false;
    copy->sourceRead = true;
    copy->data.resize(request.bytes);
    copy->dataDefined.resize(request.bytes, true);
    for (unsigned i = 0; i < count; ++i) {
      Column element = inst.source[2 + i];
      std::memcpy(copy->data.data() + size_t(i) * inst.bytes,
                  &warp.in(element)[lane], inst.bytes);
      uint8_t undefined = warp.undefinedBytes(element, lane);
      for (unsigned byte = 0; byte < inst.bytes; ++byte)
        if (undefined >> byte & 1)
          copy->dataDefined.set(i * inst.bytes + byte, 1, false);
    }
    return completeAt(warp, lane, found, request.dest, copy);
  });
}

bool decodeStoreAsync(Decoder &decoder, Inst &inst) {
  decoder.take("async");
  decoder.take("weak");
  if (!decoder.take("mbarrier::complete_tx::bytes"))
    return decoder.unknown();
  decoder.take("shared::cluster");
  int vector = decoder.takeOneOf({"v2", "v4"});
  inst.type = decoder.takeType();
  inst.bytes = byteWidth(inst.type);
  std::vector<SyntaxOperand> elements = decoder.elements(1);
  if (inst.bytes < 4 || elements.size() != (vector < 0 ? 1 : 2u << vector))
    return decoder.unknown();
  inst.handler = executeStoreAsync;
  inst.undefinedRule = UndefinedRule::Handler;
  if (!addAddress(decoder, inst, 0) || !addAddress(decoder, inst, 2))
    return false;
  for (const SyntaxOperand &element : elements)
    if (!decoder.source(inst, element, inst.type))
      return false;
  return decoder.expectOperands(3);
}

void addAsyncCopyInstructions(DecodeTable &table) {
  table["cp"] = [](Decoder &decoder, Inst &inst) {
    bool reduces = decoder.take("reduce");
    if (!decoder.take("async"))
      return decoder.unknown();
    if (decoder.take("bulk"))
      return decodeBulk(decoder, inst, reduces);
    return reduces ? decoder.unknown() : decodeAsync(decoder, inst);
  };
}

} // namespace ptx
