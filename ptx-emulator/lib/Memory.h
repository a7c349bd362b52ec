//===- Memory.h - device memory and its state -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_MEMORY_H
#define PTX_EMULATOR_LIB_MEMORY_H

#include "Shadow.h"

#include <map>
#include <string>

namespace ptx {

// Addresses. Device addresses are not valid host pointers, so the host faults
// if it dereferences one. A shared address has 32 bits: the offset in the
// block, and above it the rank in the cluster plus 1, or 0 for the own block.
inline constexpr uint64_t kDeviceBase = uint64_t(0x0100) << 48;
inline constexpr uint64_t kSharedWindow = uint64_t(0x0200) << 48;
inline constexpr uint64_t kLocalWindow = uint64_t(0x0300) << 48;
inline constexpr uint64_t kParamWindow = uint64_t(0x0400) << 48;
inline constexpr uint64_t kWindowMask = uint64_t(0xFF00) << 48;
inline constexpr unsigned kRankShift = 24;
/// The start of the shared memory of a block. It is not 0, so that a null
/// pointer is out of bounds.
inline constexpr uint32_t kSharedBase = 1024;
/// The size of the memory before it that the system reserves. Kernels may ask
/// for its address.
inline constexpr uint32_t kReservedBytes = 512;

/// One bit for each byte.
class ByteFlags {
public:
  void resize(uint64_t bytes, bool value) {
    words.assign(bytes / 64 + 2, value ? ~uint64_t(0) : 0);
  }
  void set(uint64_t offset, uint64_t bytes, bool value);
  bool any(uint64_t offset, uint64_t bytes) const {
    return find(offset, bytes, true) != bytes;
  }
  bool all(uint64_t offset, uint64_t bytes) const {
    return find(offset, bytes, false) == bytes;
  }
  /// The first of `bytes` flags that is `value`, or `bytes`.
  uint64_t find(uint64_t offset, uint64_t bytes, bool value) const;
  void copy(uint64_t offset, const ByteFlags &from, uint64_t fromOffset,
            uint64_t bytes);
  bool test(uint64_t offset) const {
    return words[offset / 64] >> (offset % 64) & 1;
  }

private:
  std::vector<uint64_t> words;
};

/// A piece of memory with the state of its bytes.
struct Region {
  uint8_t *data = nullptr;
  uint64_t base = 0; // address of the first byte in its space
  uint64_t bytes = 0;
  ByteFlags defined;
  Shadow shadow;
  /// Bytes that a plain access must not touch: those of a pending asynchronous
  /// copy or of an mbarrier.
  ByteFlags busy;
  uint32_t numBusy = 0;
  /// Pending asynchronous copies that read from this region.
  uint32_t numSources = 0;
  uint64_t lastLaunch = 0;

  void create(uint64_t address, uint64_t size, bool isDefined);
};

/// Global memory.
struct Buffer : Region {
  std::string name;
  bool isHost = false;
  bool isRegistered = false; // owned by the host
  bool readOnly = false;
  /// Records its address and size once it is freed. Allocated in advance, as
  /// freeing must not need memory.
  std::map<uint64_t, uint64_t>::node_type grave;
};

class DeviceMemory {
public:
  ~DeviceMemory();
  /// Allocates device memory; with `host`, at an address that the host can also
  /// use.
  Buffer *allocate(uint64_t bytes, bool host);
  /// Registers host memory; the same address may be registered again.
  void registerHost(void *pointer, uint64_t bytes);
  void unregisterHost(void *pointer);
  /// Frees the buffer that begins at `address`.
  bool release(uint64_t address);
  /// The buffer that holds `address`, or null.
  Buffer *find(uint64_t address);
  /// The position of `address` relative to the buffers, for a message.
  std::string describe(uint64_t address) const;
  const std::map<uint64_t, Buffer *> &all() const { return buffers; }

private:
  std::map<uint64_t, Buffer *> buffers; // by address
  std::map<uint64_t, uint64_t> freed;   // address and size
  uint64_t nextAddress = kDeviceBase + 0x10000;
  uint64_t numBuffers = 0;
  Buffer *last = nullptr; // found
};

std::string hex(uint64_t value);

} // namespace ptx

#endif // PTX_EMULATOR_LIB_MEMORY_H
