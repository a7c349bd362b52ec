//===- Queries.cpp - kernels and their traffic ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Status.h"

using namespace ptx;

void ptxEmulatorGetKernel(void *function, ptxEmulatorKernel_t *kernel) {
  *kernel = {};
  withDevice([&](Device &device) {
    auto &handle = *static_cast<KernelHandle *>(function);
    std::string error = device.prepare(handle);
    if (error.empty()) {
      const Program &program = *handle.program;
      uint64_t maxThreads = program.function->maxThreads;
      kernel->static_shared_bytes = program.staticSharedBytes;
      kernel->max_threads = uint32_t(maxThreads ? maxThreads : 1024);
    }
    return error;
  });
}

void ptxEmulatorSetCarveout(void *function, uint32_t percent) {
  withDevice([&](Device &) {
    static_cast<KernelHandle *>(function)->carveout = percent;
    return std::string();
  });
}

void ptxEmulatorResetTraffic(void) {
  Device &device = Device::get();
  std::lock_guard<std::mutex> lock(device.mutex);
  device.records.clear();
}

size_t ptxEmulatorGetTraffic(ptxEmulatorTraffic_t *entries, size_t maxEntries) {
  Device &device = Device::get();
  std::lock_guard<std::mutex> lock(device.mutex);
  size_t count = 0;
  for (size_t i = 0; i < device.records.size(); ++i)
    for (const BufferTraffic &traffic : device.records[i].buffers) {
      if (count < maxEntries)
        entries[count] = {i,
                          device.records[i].kernel.c_str(),
                          traffic.name.c_str(),
                          traffic.bytes,
                          traffic.loadBytes,
                          traffic.loadSectors,
                          traffic.storeBytes,
                          traffic.storeSectors,
                          traffic.bulkLoadBytes,
                          traffic.bulkLoadSectors,
                          traffic.bulkStoreBytes,
                          traffic.bulkStoreSectors,
                          traffic.atomics,
                          traffic.requests,
                          traffic.requests128Bit};
      ++count;
    }
  return count;
}

void ptxEmulatorNameBuffer(const void *pointer, const char *name) {
  withDevice([&](Device &device) {
    auto &buffers = device.memory.all();
    auto found = buffers.find(reinterpret_cast<uint64_t>(pointer));
    if (found != buffers.end())
      found->second->name = name;
    return std::string();
  });
}
