//===- KernelsAhead.cpp - kernels that may still run ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelsAhead.h"

namespace ptx {

void KernelsAhead::add(const DeviceMemory &memory, uint64_t launch,
                       const std::string &kernel) {
  std::map<uint64_t, Bytes> &accessed = kernels[kernel];
  for (const auto &[base, buffer] : memory.all()) {
    if (buffer->lastLaunch != launch)
      continue;
    Bytes &bytes = accessed[base];
    // Host memory may have been registered again with another size.
    if (bytes.size != buffer->bytes) {
      bytes.size = buffer->bytes;
      bytes.read.resize(bytes.size, false);
      bytes.written.resize(bytes.size, false);
    }
    for (const Shadow::Accessed &part : buffer->shadow.getAccessed()) {
      if (part.isRead)
        bytes.read.set(part.offset, part.bytes, true);
      if (part.isWritten)
        bytes.written.set(part.offset, part.bytes, true);
    }
  }
}

KernelsAhead::Access KernelsAhead::find(const Region &region, uint64_t offset,
                                        uint64_t bytes, bool isWrite) const {
  for (const auto &[kernel, buffers] : kernels) {
    auto found = buffers.find(region.base);
    if (found == buffers.end() || found->second.size != region.bytes)
      continue;
    if (found->second.written.any(offset, bytes))
      return {&kernel, true};
    if (isWrite && found->second.read.any(offset, bytes))
      return {&kernel, false};
  }
  return {};
}

} // namespace ptx
