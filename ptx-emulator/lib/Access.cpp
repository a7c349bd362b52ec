//===- Access.cpp - checks of one access to memory --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Access.h"

#include <cstring>

namespace ptx {

static const char *spaceName(Space space) {
  switch (space) {
  case Space::Global:
    return "global";
  case Space::Constant:
    return "constant";
  case Space::Shared:
  case Space::SharedCluster:
    return "shared";
  case Space::Local:
    return "local";
  case Space::Param:
    return "parameter";
  default:
    return "generic";
  }
}

static bool outOfBounds(Warp &warp, unsigned lane, Space space,
                        uint64_t address, uint64_t bytes,
                        const std::string &why) {
  warp.report(lane, "out-of-bounds",
              std::to_string(bytes) + " bytes at " + spaceName(space) +
                  " address " + hex(address) + ", " + why);
  return false;
}

static bool findShared(Warp &warp, unsigned lane, Space space, uint64_t address,
                       uint64_t bytes, Place &place) {
  uint32_t rank = (address & 0xFFFFFFFF) >> kRankShift;
  uint64_t offset = address & ((1u << kRankShift) - 1);
  Cluster &cluster = *warp.block->cluster;
  Block *block = warp.block;
  if (rank != 0) {
    if (rank > cluster.blocks.size())
      return outOfBounds(warp, lane, space, address, bytes,
                         "of a block that the cluster does not have");
    block = &cluster.blocks[rank - 1];
    if (space == Space::Shared && block != warp.block)
      return outOfBounds(warp, lane, space, address, bytes,
                         "which is in another block; expected "
                         ".shared::cluster for it");
    if (block->isDone())
      return outOfBounds(warp, lane, space, address, bytes,
                         "of a block of the cluster that has exited");
  }
  uint64_t base = block->shared.base;
  if (address >> 32 != 0 || offset < base ||
      offset - base + bytes > block->shared.bytes)
    return outOfBounds(warp, lane, space, address, bytes,
                       "expected offsets " + hex(base) + " to " +
                           hex(base + block->shared.bytes));
  place.region = &block->shared;
  place.offset = offset - base;
  place.space = Space::Shared;
  place.block = block;
  return true;
}

bool findPlace(Warp &warp, unsigned lane, Space space, uint64_t address,
               uint64_t bytes, uint64_t align, Place &place) {
  if (address & (align - 1)) {
    warp.report(lane, "misaligned",
                std::to_string(bytes) + " bytes at " + spaceName(space) +
                    " address " + hex(address) + ", expected a multiple of " +
                    std::to_string(align));
    return false;
  }
  place.address = address;
  if (space == Space::Generic) {
    switch (address & kWindowMask) {
    case kSharedWindow:
      return findShared(warp, lane, Space::SharedCluster,
                        address & ~kWindowMask, bytes, place);
    case kLocalWindow:
      space = Space::Local;
      address &= ~kWindowMask;
      break;
    case kParamWindow:
      space = Space::Param;
      address &= ~kWindowMask;
      break;
    default:
      space = Space::Global;
    }
  }
  Launch &launch = *warp.launch;
  switch (space) {
  case Space::Shared:
  case Space::SharedCluster:
    return findShared(warp, lane, space, address, bytes, place);
  case Space::Local: {
    uint64_t perThread = launch.program.localBytes;
    if (address > perThread || bytes > perThread - address)
      return outOfBounds(warp, lane, space, address, bytes,
                         "expected offsets to " + hex(perThread));
    place.region = &warp.block->local;
    place.offset = uint64_t(warp.threadOf(lane)) * perThread + address;
    place.space = Space::Local;
    return true;
  }
  case Space::Param:
    if (address > launch.params.bytes || bytes > launch.params.bytes - address)
      return outOfBounds(warp, lane, space, address, bytes,
                         "expected offsets to " + hex(launch.params.bytes));
    place.region = &launch.params;
    place.offset = address;
    place.space = Space::Param;
    return true;
  default:
    break;
  }
  Buffer *buffer = launch.memory.find(address);
  if (!buffer)
    return outOfBounds(warp, lane, space, address, bytes,
                       launch.memory.describe(address));
  if (bytes > buffer->bytes - (address - buffer->base))
    return outOfBounds(warp, lane, space, address, bytes,
                       launch.memory.describe(buffer->base + buffer->bytes));
  if (buffer->lastLaunch != launch.number) {
    buffer->lastLaunch = launch.number;
    buffer->shadow.forget();
  }
  place.region = buffer;
  place.offset = address - buffer->base;
  place.space = Space::Global;
  return true;
}

static const char *verbOf(AccessKind kind) {
  switch (kind) {
  case AccessKind::Read:
    return "reads ";
  case AccessKind::Write:
    return "writes ";
  case AccessKind::Atomic:
    return "atomically changes ";
  }
  return "";
}

/// Such as `reads 4 bytes at shared address 0x400, which `.
static std::string describeAccess(const Place &place, uint32_t bytes,
                                  AccessKind kind) {
  return verbOf(kind) + std::to_string(bytes) + " bytes at " +
         spaceName(place.space) + " address " + hex(place.address) + ", which ";
}

/// Reports an access to bytes of a pending copy or of an mbarrier.
static bool checkBusy(Warp &warp, unsigned lane, const Place &place,
                      uint32_t bytes, AccessKind kind) {
  bool isReduced = false;
  for (Cluster *cluster : warp.launch->active) {
    if (const AsyncCopy *copy = cluster->copies.findDest(
            place.region, place.offset, bytes,
            /*reductions=*/kind != AccessKind::Atomic)) {
      warp.report(lane, "missing-wait",
                  describeAccess(place, bytes, kind) + "the copy at PTX line " +
                      std::to_string(copy->line) +
                      " is writing; expected a wait for it before");
      return false;
    }
    isReduced |= cluster->copies.findDest(place.region, place.offset, bytes,
                                          /*reductions=*/true) != nullptr;
  }
  if (kind == AccessKind::Read || isReduced)
    return true;
  warp.report(lane, "race",
              describeAccess(place, bytes, kind) + "holds an mbarrier in use");
  return false;
}

/// Reports a write of bytes that a pending copy reads.
static bool checkSource(Warp &warp, unsigned lane, const Place &place,
                        uint32_t bytes, AccessKind kind) {
  for (Cluster *cluster : warp.launch->active)
    if (const AsyncCopy *copy =
            cluster->copies.findSource(place.region, place.offset, bytes)) {
      warp.report(lane, "missing-wait",
                  describeAccess(place, bytes, kind) + "the copy at PTX line " +
                      std::to_string(copy->line) +
                      " still reads; expected a wait for it before");
      return false;
    }
  return true;
}

/// Whether `value` is already at `place`.
static bool isEqualStore(const Place &place, uint32_t bytes,
                         const StoredValue &value) {
  return place.region->defined.all(place.offset, bytes) &&
         std::memcmp(place.data(), value.bytes, bytes) == 0;
}

/// Accepts a store of the value that another thread has stored, unless the
/// launch does not allow it.
static bool allowEqualStore(Warp &warp, unsigned lane, const Place &place,
                            uint32_t bytes, const Actor &actor,
                            const StoredValue &value, Conflict &conflict) {
  Launch &launch = *warp.launch;
  if (launch.equalStores == Effect::Error || !conflict.wrote ||
      !isEqualStore(place, bytes, value))
    return false;
  Conflict first = conflict;
  if (!place.region->shadow.write(place.offset, bytes, actor, value.width,
                                  /*isEqual=*/true, conflict))
    return false;
  if (launch.equalStores == Effect::Warn)
    warp.warn(lane, "equal-stores",
              describeAccess(place, bytes, AccessKind::Write) +
                  launch.describeActor(first.id) +
                  " wrote, with the same value and no order between; expected "
                  "one thread to store it");
  return true;
}

/// Reports an access that must follow one by a kernel ahead, which may still
/// run.
static bool checkKernelsAhead(Warp &warp, unsigned lane, const Place &place,
                              uint32_t bytes, AccessKind kind) {
  const KernelsAhead *ahead = warp.launch->ahead;
  if (!ahead || place.space != Space::Global ||
      warp.block->cluster->isAfterKernelsAhead(warp.actorOf(lane)))
    return true;
  KernelsAhead::Access access =
      ahead->find(*place.region, place.offset, bytes, kind != AccessKind::Read);
  if (!access.kernel)
    return true;
  warp.report(lane, "missing-grid-wait",
              describeAccess(place, bytes, kind) + "kernel '" + *access.kernel +
                  (access.wrote ? "' writes" : "' reads") +
                  " and may still run; expected griddepcontrol.wait before");
  return false;
}

bool checkAccess(Warp &warp, unsigned lane, const Place &place, uint32_t bytes,
                 AccessKind kind, Scope scope, const StoredValue *value) {
  if (place.space == Space::Local || place.space == Space::Param) {
    if (place.space == Space::Param && kind != AccessKind::Read) {
      warp.report(lane, "out-of-bounds", "writes a parameter of the kernel");
      return false;
    }
    return true;
  }
  if (!checkKernelsAhead(warp, lane, place, bytes, kind))
    return false;
  Region &region = *place.region;
  if (region.numBusy && region.busy.any(place.offset, bytes) &&
      !checkBusy(warp, lane, place, bytes, kind))
    return false;
  if (kind != AccessKind::Read && region.numSources &&
      !checkSource(warp, lane, place, bytes, kind))
    return false;

  Actor actor = {&warp.block->cluster->order, warp.actorOf(lane), scope};
  Conflict conflict;
  // An atomic access is a read as well, but the write check covers it.
  bool fine =
      kind == AccessKind::Read
          ? region.shadow.read(place.offset, bytes, actor, conflict)
          : region.shadow.write(place.offset, bytes, actor,
                                value ? value->width : 0, false, conflict);
  if (fine || (value && allowEqualStore(warp, lane, place, bytes, actor, *value,
                                        conflict)))
    return true;
  bool areStrong = scope != Scope::None && conflict.isStrong;
  warp.report(lane, "race",
              describeAccess(place, bytes, kind) +
                  warp.launch->describeActor(conflict.id) +
                  (conflict.wrote ? " wrote" : " read") + "; expected a " +
                  (areStrong ? "scope that includes both" : "barrier between"));
  return false;
}

bool checkProxyFence(Warp &warp, unsigned lane, const Place &place,
                     uint32_t bytes, AccessKind kind) {
  Actor actor = {&warp.block->cluster->order, warp.actorOf(lane), Scope::None};
  Conflict conflict;
  ProxySpace space =
      place.space == Space::Shared ? ProxySpace::Shared : ProxySpace::Global;
  if (place.region->shadow.isFenced(place.offset, bytes, actor, space,
                                    conflict))
    return true;
  warp.report(lane, "missing-proxy-fence",
              std::string("a bulk copy ") + describeAccess(place, bytes, kind) +
                  warp.launch->describeActor(conflict.id) +
                  " wrote; expected fence.proxy.async between");
  return false;
}

bool checkDefinedBytes(Warp &warp, unsigned lane, const Place &place,
                       uint32_t bytes) {
  uint64_t first = place.region->defined.find(place.offset, bytes, false);
  if (first == bytes)
    return true;
  return warp.reportUninitialised(
      lane, "reads " + std::string(spaceName(place.space)) + " address " +
                hex(place.address + first) + ", which was never written");
}

uint64_t logAddress(const Place &place) {
  if (place.space != Space::Shared)
    return place.address;
  return kSharedWindow |
         uint64_t(reinterpret_cast<uintptr_t>(place.region) & 0xFFFFFFFF)
             << 24 |
         place.offset;
}

void countRequest(Warp &warp, const Place *places, unsigned count,
                  uint32_t bytes, AccessKind kind) {
  Launch &launch = *warp.launch;
  uint64_t shared[32], global[32];
  unsigned numShared = 0;
  for (unsigned i = 0; i < count; ++i)
    if (places[i].space == Space::Shared)
      shared[numShared++] = places[i].offset;
  if (numShared)
    launch.conflicts += bankConflicts(shared, numShared, bytes);
  if (numShared == count)
    return;
  uint32_t left = 0;
  for (unsigned i = 0; i < count; ++i)
    left |= uint32_t(places[i].space == Space::Global) << i;
  // Usually all lanes access the same buffer.
  while (left) {
    Region *region = places[__builtin_ctz(left)].region;
    unsigned number = 0;
    for (unsigned i = 0; i < count; ++i)
      if ((left >> i & 1) && places[i].region == region) {
        global[number++] = places[i].address;
        left &= ~(1u << i);
      }
    const Buffer &buffer = *static_cast<Buffer *>(region);
    if (kind == AccessKind::Atomic)
      launch.traffic.atomics(buffer, number);
    else
      launch.traffic.request(buffer, global, number, bytes,
                             kind == AccessKind::Write);
  }
}

} // namespace ptx
