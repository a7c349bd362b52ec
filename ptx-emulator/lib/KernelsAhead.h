//===- KernelsAhead.h - kernels that may still run --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_KERNELSAHEAD_H
#define PTX_EMULATOR_LIB_KERNELSAHEAD_H

#include "Memory.h"

#include <map>
#include <string>

namespace ptx {

/// The bytes of global memory accessed by those kernels of a stream that may
/// still run when the next kernel starts (programmatic dependent launch). In
/// the emulator they are complete by then.
class KernelsAhead {
public:
  /// Adds the accesses of launch number `launch`, the last to its buffers.
  void add(const DeviceMemory &memory, uint64_t launch,
           const std::string &kernel);
  bool empty() const { return kernels.empty(); }
  void clear() { kernels.clear(); }

  struct Access {
    const std::string *kernel = nullptr; // null: none
    bool wrote = false;
  };
  /// An access to one of the bytes that a read or a write must follow.
  Access find(const Region &region, uint64_t offset, uint64_t bytes,
              bool isWrite) const;

private:
  struct Bytes {
    uint64_t size = 0;
    ByteFlags read, written;
  };
  /// By name, and by the address of a buffer.
  std::map<std::string, std::map<uint64_t, Bytes>> kernels;
};

} // namespace ptx

#endif // PTX_EMULATOR_LIB_KERNELSAHEAD_H
