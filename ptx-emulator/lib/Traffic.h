//===- Traffic.h - counts of memory requests --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_TRAFFIC_H
#define PTX_EMULATOR_LIB_TRAFFIC_H

#include "Memory.h"

#include <unordered_map>

namespace ptx {

/// Traffic of a launch to one buffer.
struct BufferTraffic {
  std::string name;
  uint64_t bytes = 0; // size of the buffer
  uint64_t loadBytes = 0, loadSectors = 0;
  uint64_t storeBytes = 0, storeSectors = 0;
  uint64_t bulkLoadBytes = 0, bulkLoadSectors = 0;
  uint64_t bulkStoreBytes = 0, bulkStoreSectors = 0;
  uint64_t atomics = 0;        // one for each thread
  uint64_t requests = 0;       // loads and stores of a warp
  uint64_t requests128Bit = 0; // those of at least 16 bytes a thread
};

class Traffic {
public:
  /// A request of a warp: `count` threads access `bytes` each at `addresses`,
  /// all in `buffer`.
  void request(const Buffer &buffer, uint64_t *addresses, unsigned count,
               uint32_t bytes, bool isStore);
  void atomics(const Buffer &buffer, unsigned count) {
    entry(buffer).atomics += count;
  }
  void bulk(const Buffer &buffer, uint64_t address, uint64_t bytes,
            bool isStore);
  /// By address of the buffer.
  const std::map<uint64_t, BufferTraffic> &entries() const { return table; }

private:
  BufferTraffic &entry(const Buffer &buffer);

  std::map<uint64_t, BufferTraffic> table;
  const Buffer *last = nullptr;
  BufferTraffic *lastEntry = nullptr;
};

/// Additional accesses to the banks of shared memory for one request of a warp.
unsigned bankConflicts(const uint64_t *addresses, unsigned count,
                       uint32_t bytes);

} // namespace ptx

#endif // PTX_EMULATOR_LIB_TRAFFIC_H
