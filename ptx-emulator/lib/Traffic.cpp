//===- Traffic.cpp - counts of memory requests ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Traffic.h"

#include <algorithm>

namespace ptx {

/// Unit of fetches from global memory.
static constexpr uint64_t kSectorBytes = 32;

BufferTraffic &Traffic::entry(const Buffer &buffer) {
  if (last != &buffer) {
    last = &buffer;
    lastEntry = &table[buffer.base];
    lastEntry->name = buffer.name;
    lastEntry->bytes = buffer.bytes;
  }
  return *lastEntry;
}

static uint64_t sectorsOf(uint64_t address, uint64_t bytes) {
  return (address + bytes - 1) / kSectorBytes - address / kSectorBytes + 1;
}

void Traffic::request(const Buffer &buffer, uint64_t *addresses, unsigned count,
                      uint32_t bytes, bool isStore) {
  if (!std::is_sorted(addresses, addresses + count))
    std::sort(addresses, addresses + count);
  uint64_t unique = 0, sectors = 0, end = 0, nextSector = 0;
  for (unsigned i = 0; i < count; ++i) {
    uint64_t first = addresses[i], last = first + bytes;
    if (last > end)
      unique += last - std::max(first, end);
    end = std::max(end, last);
    uint64_t sector = std::max(first / kSectorBytes, nextSector);
    uint64_t lastSector = (last - 1) / kSectorBytes;
    if (lastSector >= sector) {
      sectors += lastSector - sector + 1;
      nextSector = lastSector + 1;
    }
  }
  BufferTraffic &traffic = entry(buffer);
  (isStore ? traffic.storeBytes : traffic.loadBytes) += unique;
  (isStore ? traffic.storeSectors : traffic.loadSectors) += sectors;
  ++traffic.requests;
  traffic.requests128Bit += bytes >= 16;
}

void Traffic::bulk(const Buffer &buffer, uint64_t address, uint64_t bytes,
                   bool isStore) {
  if (bytes == 0)
    return;
  BufferTraffic &traffic = entry(buffer);
  (isStore ? traffic.bulkStoreBytes : traffic.bulkLoadBytes) += bytes;
  (isStore ? traffic.bulkStoreSectors : traffic.bulkLoadSectors) +=
      sectorsOf(address, bytes);
}

unsigned bankConflicts(const uint64_t *addresses, unsigned count,
                       uint32_t bytes) {
  // A request is served in parts of at most 32 words of 4 bytes: for 16 bytes
  // per thread, a quarter of the warp at a time.
  unsigned words = std::max<uint32_t>(bytes / 4, 1);
  unsigned threads = std::max(32 / words, 1u);
  unsigned conflicts = 0;
  for (unsigned begin = 0; begin < count; begin += threads) {
    unsigned end = std::min(begin + threads, count);
    uint64_t seen[32][32];
    uint8_t perBank[32] = {};
    unsigned most = 0;
    for (unsigned i = begin; i < end; ++i)
      for (unsigned w = 0; w < words; ++w) {
        uint64_t word = addresses[i] / 4 + w;
        unsigned bank = word % 32;
        uint64_t *known = seen[bank];
        if (perBank[bank] < 32 && std::find(known, known + perBank[bank],
                                            word) == known + perBank[bank])
          known[perBank[bank]++] = word;
        most = std::max<unsigned>(most, perBank[bank]);
      }
    conflicts += most - 1;
  }
  return conflicts;
}

} // namespace ptx
