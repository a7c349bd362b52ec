//===- Memory.cpp - loads and stores ----------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryModifiers.h"

namespace ptx {

bool takeMemorySpace(Decoder &decoder, Space &space) {
  static constexpr Space kSpaces[] = {
      Space::Global, Space::Constant, Space::Shared,       Space::Shared,
      Space::Local,  Space::Param,    Space::SharedCluster};
  int index = decoder.takeOneOf({"global", "const", "shared", "shared::cta",
                                 "local", "param", "shared::cluster"});
  if (index >= 0)
    space = kSpaces[index];
  return index >= 0;
}

Scope takeScope(Decoder &decoder) {
  switch (decoder.takeOneOf({"cta", "cluster", "gpu", "sys", "gl"})) {
  case 0:
    return Scope::Block;
  case 1:
    return Scope::Cluster;
  default:
    return Scope::Device;
  }
}

void takeOrdering(Decoder &decoder, Inst &inst) {
  int order = decoder.takeOneOf(
      {"weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"});
  inst.strong = order > 0;
  inst.acquire = order == 3 || order == 5;
  inst.release = order == 4 || order == 5;
  if (order == 6)
    decoder.take("relaxed");
  Scope scope = takeScope(decoder);
  // Accesses without an order are atomics, which are also strong.
  if (order != 0)
    inst.scope = scope;
}

bool takeCacheHints(Decoder &decoder) {
  bool hasPolicy = false;
  for (;;) {
    if (decoder.take("L2::cache_hint"))
      hasPolicy = true;
    else if (!decoder.takePrefix("L1::") && !decoder.takePrefix("L2::") &&
             decoder.takeOneOf({"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc",
                                "unified"}) < 0)
      return hasPolicy;
  }
}

void acquireAfter(Warp &warp, const Inst &inst, unsigned lane,
                  const Place &place) {
  if (!inst.strong || place.space == Space::Local)
    return;
  if (SyncLog *log = warp.launch->findLog(logAddress(place), false)) {
    Order &order = warp.block->cluster->order;
    if (inst.acquire)
      order.acquire(warp.actorOf(lane), *log, inst.scope);
    else
      order.acquireRelaxed(warp.actorOf(lane), *log, inst.scope);
  }
}

void releaseBefore(Warp &warp, const Inst &inst, unsigned lane,
                   const Place &place) {
  if (!inst.strong || place.space == Space::Local)
    return;
  Order &order = warp.block->cluster->order;
  SyncLog *log = warp.launch->findLog(logAddress(place), true);
  if (inst.release)
    order.release(warp.actorOf(lane), *log, inst.scope);
  else
    order.releaseRelaxed(warp.actorOf(lane), *log, inst.scope);
}

static uint64_t loadElement(const uint8_t *from, unsigned bytes, bool sign) {
  uint64_t value = 0;
  std::memcpy(&value, from, bytes);
  if (sign) {
    unsigned shift = 64 - bytes * 8;
    value = uint64_t(int64_t(value << shift) >> shift);
  }
  return value;
}

/// The bytes of a register that are undefined after a load of the element at
/// `offset`. The extension bytes are undefined if any byte of the element is.
static uint8_t undefinedBytes(const Region &region, uint64_t offset,
                              const Inst &inst) {
  uint8_t parts = 0;
  for (unsigned i = 0; i < inst.bytes; ++i)
    parts |= uint8_t(!region.defined.test(offset + i)) << i;
  return parts ? parts | uint8_t(~lowBytes(inst.bytes)) : 0;
}

static bool checkAddresses(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t bad = warp.undefinedOf(inst.source[0]) & mask;
  return !bad ||
         warp.reportUninitialised(__builtin_ctz(bad),
                                  "takes its address from a register " +
                                      warp.describeUndefined(inst.source[0]));
}

static void executeLoad(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *base = warp.in(inst.source[0]);
  uint32_t bytes = inst.bytes * inst.dest.count;
  uint64_t keep = inst.destBytes >= 8 ? ~uint64_t(0)
                                      : (uint64_t(1) << inst.destBytes * 8) - 1;
  if (!checkAddresses(warp, inst, mask))
    return;
  Place places[32];
  unsigned count = 0;
  uint32_t affected = 0;
  uint8_t undefined[8][32]; // of the lanes in `affected`
  uint64_t addresses[32];
  forLanes(mask,
           [&](unsigned lane) { addresses[lane] = base[lane] + inst.offset; });
  bool is32Bit = inst.space == Space::Shared ||
                 inst.space == Space::SharedCluster ||
                 inst.space == Space::Local || inst.space == Space::Param;
  bool fine = forLanesWhile(mask, [&](unsigned lane) {
    uint64_t address = addresses[lane];
    if (is32Bit)
      address &= 0xFFFFFFFF;
    Place &place = places[count++];
    if (!findPlace(warp, lane, inst.space, address, bytes, bytes, place) ||
        !checkAccess(warp, lane, place, bytes, AccessKind::Read, inst.scope))
      return false;
    const uint8_t *from = place.data();
    bool isDefined = place.region->defined.all(place.offset, bytes);
    for (unsigned i = 0; i < inst.dest.count; ++i) {
      uint64_t value = loadElement(from + size_t(i) * inst.bytes, inst.bytes,
                                   inst.signExtend);
      warp.out(inst.dest[i])[lane] = value & keep;
      if (!isDefined)
        undefined[i][lane] = undefinedBytes(
            *place.region, place.offset + uint64_t(i) * inst.bytes, inst);
    }
    affected |= uint32_t(!isDefined) << lane;
    acquireAfter(warp, inst, lane, place);
    return true;
  });
  if (!fine)
    return;
  for (unsigned i = 0; i < inst.dest.count; ++i)
    warp.define(inst.dest[i], mask, affected,
                [&](unsigned lane) { return undefined[i][lane]; });
  countRequest(warp, places, count, bytes, AccessKind::Read);
}

static void executeStore(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *base = warp.in(inst.source[0]);
  unsigned numElements = inst.mode;
  uint32_t bytes = inst.bytes * numElements;
  bool is32Bit = inst.space == Space::Shared ||
                 inst.space == Space::SharedCluster ||
                 inst.space == Space::Local || inst.space == Space::Param;
  uint32_t affected = 0;
  for (unsigned i = 0; i < numElements; ++i)
    affected |= warp.undefinedOf(inst.source[i + 1]);
  auto undefinedBytes = [&](unsigned i, unsigned lane) -> uint8_t {
    return warp.undefinedBytes(inst.source[i + 1], lane) & lowBytes(inst.bytes);
  };
  if (!checkAddresses(warp, inst, mask))
    return;
  Place places[32];
  unsigned count = 0;
  bool fine = forLanesWhile(mask, [&](unsigned lane) {
    uint64_t address = base[lane] + inst.offset;
    if (is32Bit)
      address &= 0xFFFFFFFF;
    uint8_t stored[32];
    for (unsigned i = 0; i < numElements; ++i)
      std::memcpy(stored + size_t(i) * inst.bytes,
                  &warp.in(inst.source[i + 1])[lane], inst.bytes);
    StoredValue value = {stored, inst.bytes};
    Place &place = places[count++];
    if (!findPlace(warp, lane, inst.space, address, bytes, bytes, place))
      return false;
    bool isAffected = affected >> lane & 1;
    // A strong store is for other threads, and they may not use the value.
    bool isResult = place.space == Space::Global && inst.scope == Scope::None;
    for (unsigned i = 0; isAffected && i < numElements; ++i)
      if (isResult && undefinedBytes(i, lane) &&
          !warp.reportUninitialised(
              lane, "stores to global address " + hex(place.address) +
                        " a register " +
                        warp.describeUndefined(inst.source[i + 1])))
        return false;
    if (!checkAccess(warp, lane, place, bytes, AccessKind::Write, inst.scope,
                     &value))
      return false;
    releaseBefore(warp, inst, lane, place);
    std::memcpy(place.data(), stored, bytes);
    ByteFlags &defined = place.region->defined;
    defined.set(place.offset, bytes, true);
    for (unsigned i = 0; isAffected && i < numElements; ++i)
      for (unsigned parts = undefinedBytes(i, lane); parts; parts &= parts - 1)
        defined.set(place.offset + uint64_t(i) * inst.bytes +
                        __builtin_ctz(parts),
                    1, false);
    return true;
  });
  if (!fine)
    return;
  ++warp.launch->progress;
  countRequest(warp, places, count, bytes, AccessKind::Write);
}

/// Replaces each 128-bit operand by its two columns.
static bool addElements(Decoder &decoder, Inst &inst, unsigned operand,
                        bool isLoad) {
  for (const SyntaxOperand &element : decoder.elements(operand)) {
    if (inst.type == Type::B128) {
      const Symbol *symbol = decoder.lookup(element.name);
      if (!symbol || symbol->type != Type::B128)
        return decoder.unsupported("expected a register of 128 bits");
      for (int i = 0; i < 2; ++i) {
        if (isLoad)
          inst.dest.add(symbol->index + i);
        else
          inst.source.add(symbol->index + i);
      }
    } else if (isLoad ? !decoder.dest(inst, element, inst.type)
                      : !decoder.source(inst, element, inst.type)) {
      return false;
    }
  }
  return true;
}

static bool decodeAccess(Decoder &decoder, Inst &inst, bool isLoad) {
  takeOrdering(decoder, inst);
  if (!inst.strong)
    inst.scope = Scope::None;
  inst.space = Space::Generic;
  takeMemorySpace(decoder, inst.space);
  bool hasPolicy = takeCacheHints(decoder);
  int vector = decoder.takeOneOf({"v2", "v4", "v8"});
  inst.type = decoder.takeType();
  if (inst.type == Type::None || inst.type == Type::Pred)
    return decoder.unknown();
  unsigned numElements = vector < 0 ? 1 : 2u << vector;
  unsigned addressOperand = isLoad ? 1 : 0, valueOperand = isLoad ? 0 : 1;
  if (decoder.elements(valueOperand).size() != numElements)
    return decoder.unsupported("expected " + std::to_string(numElements) +
                               " elements");
  inst.bytes = inst.type == Type::B128 ? 8 : byteWidth(inst.type);
  if (inst.type == Type::B128)
    numElements *= 2;
  inst.signExtend = isSigned(inst.type);
  inst.destBytes = inst.bytes;
  for (const SyntaxOperand &element : decoder.elements(valueOperand))
    if (inst.type != Type::B128)
      inst.destBytes = std::max<unsigned>(
          inst.destBytes, decoder.registerBytes(element, inst.bytes));

  Space symbolSpace = inst.space;
  if (!decoder.address(inst, addressOperand, &symbolSpace))
    return false;
  // The parameters of calls are in local memory.
  if (inst.space == Space::Param)
    inst.space = symbolSpace;
  if (!addElements(decoder, inst, valueOperand, isLoad))
    return false;
  inst.handler = isLoad ? executeLoad : executeStore;
  inst.mode = numElements;
  inst.undefinedRule = UndefinedRule::Handler;
  if (!hasPolicy)
    return decoder.expectOperands(2);
  Inst ignored;
  return decoder.source(ignored, 2, Type::B64) && decoder.expectOperands(3);
}

//===----------------------------------------------------------------------===//
// Hints
//===----------------------------------------------------------------------===//

static void executePrefetch(Warp &, const Inst &, uint32_t) {}

static bool decodePrefetch(Decoder &decoder, Inst &inst) {
  inst.space = Space::Generic;
  takeMemorySpace(decoder, inst.space);
  if (decoder.takeOneOf({"L1", "L2"}) < 0 && !decoder.takePrefix("L2::"))
    return decoder.unknown();
  inst.handler = executePrefetch;
  return decoder.address(inst, 0);
}

static void executePolicy(Warp &warp, const Inst &inst, uint32_t mask) {
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) { d[lane] = 0; });
}

static bool decodePolicy(Decoder &decoder, Inst &inst) {
  bool range = decoder.take("range");
  if (!range && !decoder.take("fractional"))
    return decoder.unknown();
  while (decoder.takeOneOf({"global"}) >= 0 || decoder.takePrefix("L2::")) {
  }
  inst.type = decoder.takeType();
  if (inst.type != Type::B64)
    return decoder.unknown();
  inst.handler = executePolicy;
  return decoder.dest(inst, 0, Type::B64) &&
         decoder.expectOperands(decoder.numOperands());
}

void addMemoryInstructions(DecodeTable &table) {
  table["ld"] = [](Decoder &d, Inst &i) { return decodeAccess(d, i, true); };
  table["ldu"] = [](Decoder &d, Inst &i) { return decodeAccess(d, i, true); };
  table["st"] = [](Decoder &d, Inst &i) {
    return d.has("async") ? decodeStoreAsync(d, i) : decodeAccess(d, i, false);
  };
  table["prefetch"] = decodePrefetch;
  table["prefetchu"] = decodePrefetch;
  table["createpolicy"] = decodePolicy;
  table["applypriority"] = decodePrefetch;
}

} // namespace ptx
