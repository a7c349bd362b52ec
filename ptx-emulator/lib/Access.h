//===- Access.h - checks of one access to memory ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_ACCESS_H
#define PTX_EMULATOR_LIB_ACCESS_H

#include "Machine.h"

namespace ptx {

/// The memory that an address refers to.
struct Place {
  Region *region = nullptr;
  uint64_t offset = 0;
  Space space = Space::Generic; // Global, Shared, Local or Param
  Block *block = nullptr;       // of Shared
  uint64_t address = 0;

  uint8_t *data() const { return region->data + offset; }
};

enum class AccessKind : uint8_t { Read, Write, Atomic };

/// Finds the memory of `bytes` bytes at `address`. Reports addresses that are
/// out of bounds or not a multiple of `align`.
bool findPlace(Warp &warp, unsigned lane, Space space, uint64_t address,
               uint64_t bytes, uint64_t align, Place &place);

/// The bytes that an access stores.
struct StoredValue {
  const uint8_t *bytes;
  uint8_t width; // of an element
};

/// Reports races, and bytes of a pending asynchronous copy. `scope` is the
/// scope of an atomic or volatile access. Unordered stores of the same elements
/// are not a race if the `value` is the same (PTX_EMULATOR_EQUAL_STORES).
bool checkAccess(Warp &warp, unsigned lane, const Place &place, uint32_t bytes,
                 AccessKind kind, Scope scope,
                 const StoredValue *value = nullptr);

/// Reports bytes that threads have written without a proxy fence before a copy
/// by the asynchronous proxy.
bool checkProxyFence(Warp &warp, unsigned lane, const Place &place,
                     uint32_t bytes, AccessKind kind);

/// Reports uninitialised bytes.
bool checkDefinedBytes(Warp &warp, unsigned lane, const Place &place,
                       uint32_t bytes);

/// The key of `place` in the log of releases, the same for all blocks.
uint64_t logAddress(const Place &place);

/// Counts the traffic of a request of a warp to global memory, or its bank
/// conflicts in shared memory. `places` has `count` entries.
void countRequest(Warp &warp, const Place *places, unsigned count,
                  uint32_t bytes, AccessKind kind);

/// Calls `fn(lane)` for each lane of `mask` until it returns false.
template <typename Fn> inline bool forLanesWhile(uint32_t mask, Fn fn) {
  for (; mask; mask &= mask - 1)
    if (!fn(unsigned(__builtin_ctz(mask))))
      return false;
  return true;
}

template <typename Fn> inline void forLanes(uint32_t mask, Fn fn) {
  if (mask == ~0u) {
    for (unsigned lane = 0; lane < 32; ++lane)
      fn(lane);
    return;
  }
  for (; mask; mask &= mask - 1)
    fn(unsigned(__builtin_ctz(mask)));
}

} // namespace ptx

#endif // PTX_EMULATOR_LIB_ACCESS_H
