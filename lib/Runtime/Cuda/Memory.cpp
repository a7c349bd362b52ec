//===- Memory.cpp - memory of devices ---------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory.h"
#include "../Immortal.h"
#include "Abi.h"
#include "GraphMemory.h"
#include "Nvtx.h"
#include "Streams.h"

#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace bngrad::cuda {

namespace {
struct MemoryTable {
  std::mutex mutex;
  /// The pools for stream-ordered allocations.
  std::unordered_map<const Context *, CUmemoryPool> pools;
  /// Addresses in use that came from a pool; cuMemFree frees all others.
  std::set<CUdeviceptr> pooled;
};
} // namespace

static MemoryTable &memoryTable() {
  static Immortal<MemoryTable> table;
  return *table;
}

static CUdeviceptr deviceAddress(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

/// The library's own pool. The device's default pool belongs to the whole
/// process and returns all its memory at each synchronization, so that every
/// call would map it again. Null and a report if it cannot be created.
static CUmemoryPool getMemoryPool(const Context &context) {
  MemoryTable &table = memoryTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  CUmemoryPool &pool = table.pools[&context];
  if (pool)
    return pool;
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = context.device;
  CUmemoryPool created = nullptr;
  uint64_t keepAll = UINT64_MAX;
  if (!context.check(context.driver.cuMemPoolCreate(&created, &properties),
                     "cuMemPoolCreate"))
    return nullptr;
  if (!context.check(context.driver.cuMemPoolSetAttribute(
                         created, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keepAll),
                     "cuMemPoolSetAttribute")) {
    context.driver.cuMemPoolDestroy(created);
    return nullptr;
  }
  return pool = created;
}

static CUdeviceptr allocatePooled(const Context &context, uint64_t bytes,
                                  CUstream stream) {
  CUmemoryPool pool = getMemoryPool(context);
  if (!pool)
    return 0;
  // Insert the entry first: pool memory without one could not be freed.
  std::set<CUdeviceptr> made = {0};
  auto entry = made.extract(made.begin());
  CUdeviceptr result = 0;
  if (!context.check(
          context.driver.cuMemAllocFromPoolAsync(&result, bytes, pool, stream),
          "cuMemAllocFromPoolAsync"))
    return 0;
  entry.value() = result;
  MemoryTable &table = memoryTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  table.pooled.insert(std::move(entry));
  return result;
}

/// Removes `pointer` from the addresses in use; false if no pool had it.
static bool takePooled(CUdeviceptr pointer) {
  MemoryTable &table = memoryTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  return table.pooled.erase(pointer) != 0;
}

CUdeviceptr allocateInOrder(const Context &context, uint64_t bytes,
                            CUstream stream) {
  if (context.hasMemoryPools)
    return allocatePooled(context, bytes, stream);
  CUdeviceptr result = 0;
  context.check(context.driver.cuMemAlloc(&result, bytes), "cuMemAlloc");
  return result;
}

bool freeInOrder(const Context &context, CUdeviceptr address, CUstream stream) {
  const Driver &driver = context.driver;
  if (takePooled(address))
    return context.check(driver.cuMemFreeAsync(address, stream),
                         "cuMemFreeAsync");
  // cuMemFree is not ordered with the work in the stream.
  return context.check(driver.cuStreamSynchronize(stream),
                       "cuStreamSynchronize") &&
         context.check(driver.cuMemFree(address), "cuMemFree");
}

/// The bytes that a memref covers.
struct ByteRange {
  void *begin = nullptr;
  uint64_t size = 0;
};

/// Sets `range` to the memory of the memref of `descriptor`. False and a report
/// if the memref skips bytes between its first and its last one. Allocates
/// nothing, as memory is also released by this path.
static bool getDenseRange(const char *call, int64_t rank,
                          const void *descriptor, int64_t elementBytes,
                          ByteRange &range) {
  struct Header {
    char *allocated;
    char *aligned;
    int64_t offset;
  };
  const auto *header = static_cast<const Header *>(descriptor);
  const auto *sizes = reinterpret_cast<const int64_t *>(header + 1);
  const int64_t *strides = sizes + rank;

  int64_t numElements = 1, numDims = 0;
  for (int64_t i = 0; i < rank; ++i) {
    numElements *= sizes[i];
    numDims += sizes[i] != 1;
  }
  range.begin = header->aligned + header->offset * elementBytes;
  range.size = uint64_t(numElements) * elementBytes;
  if (numElements == 0)
    return true;

  // Dims by stride; those of size 1 do not count.
  using Dim = std::tuple<int64_t, int64_t, int64_t>;
  auto next = [&](const Dim &previous) {
    Dim least(INT64_MAX, INT64_MAX, INT64_MAX);
    for (int64_t i = 0; i < rank; ++i) {
      Dim dim(strides[i], sizes[i], i);
      if (sizes[i] != 1 && dim > previous && dim < least)
        least = dim;
    }
    return least;
  };
  int64_t expected = 1;
  Dim dim(INT64_MIN, INT64_MIN, INT64_MIN);
  for (int64_t i = 0; i < numDims; ++i) {
    dim = next(dim);
    auto [stride, size, index] = dim;
    if (stride != expected) {
      report(kNoDriverCode,
             Line(call, ": expected a memref without gaps, got stride ", stride,
                  " in place of ", expected));
      return false;
    }
    expected *= size;
  }
  return true;
}

/// mgpuMemAlloc of more than 0 bytes.
static void *allocate(uint64_t bytes, void *stream, bool isHostShared) {
  DeviceScope device;
  if (!device)
    return nullptr;
  auto handle = static_cast<CUstream>(stream);
  CUdeviceptr result = 0;
  if (isHostShared) {
    device->check(
        device->driver.cuMemAllocManaged(&result, bytes, CU_MEM_ATTACH_GLOBAL),
        "cuMemAllocManaged");
  } else if (freeMemoryOfDestroyedGraphs(*device)) {
    Capture capture = getCapture(*device, handle);
    result = capture ? allocateForGraph(*device, bytes, capture)
                     : allocateInOrder(*device, bytes, handle);
  }
  return reinterpret_cast<void *>(static_cast<uintptr_t>(result));
}

/// mgpuMemFree of a pointer that is not null.
static void release(void *pointer, void *stream) {
  DeviceScope device(/*releases=*/true);
  CUdeviceptr address = deviceAddress(pointer);
  auto handle = static_cast<CUstream>(stream);
  if (device && !releaseForGraph(*device, address, handle))
    freeInOrder(*device, address, handle);
}

/// mgpuMemset for `call`, by the driver's function `fill`, called `name`.
template <typename Element, typename Fill>
static void fillAsync(const char *call, Fill Driver::*fill, const char *name,
                      void *to, Element value, uint64_t count, void *stream) {
  if (count == 0)
    return;
  guard(call, [&] {
    if (DeviceScope device; device)
      device->check((device->driver.*fill)(deviceAddress(to), value, count,
                                           static_cast<CUstream>(stream)),
                    name);
  });
}

/// True if `pointer` is memory of the host, whether registered or not.
static bool isOfHost(const Context &context, void *pointer) {
  unsigned type = CU_MEMORYTYPE_HOST;
  // The driver knows nothing of memory that is not registered.
  CUresult found = context.driver.cuPointerGetAttribute(
      &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, deviceAddress(pointer));
  return found != CUDA_SUCCESS || type == CU_MEMORYTYPE_HOST;
}

} // namespace bngrad::cuda

using namespace bngrad::cuda;

void *mgpuMemAlloc(uint64_t bytes, void *stream, uint8_t isHostShared) {
  if (bytes == 0)
    return nullptr;
  return guard(__func__, [&] { return allocate(bytes, stream, isHostShared); });
}

void mgpuMemFree(void *pointer, void *stream) {
  if (!pointer)
    return;
  guard(__func__, [&] { release(pointer, stream); });
}

void mgpuMemcpy(void *to, void *from, uint64_t bytes, void *stream) {
  if (bytes == 0)
    return;
  guard(__func__, [&] {
    Range range("bngrad: copy");
    DeviceScope device;
    if (!device)
      return;
    if (isCallersStream(stream) &&
        (isOfHost(*device, to) || isOfHost(*device, from)))
      noteHostCopy(stream);
    device->check(device->driver.cuMemcpyAsync(deviceAddress(to),
                                               deviceAddress(from), bytes,
                                               static_cast<CUstream>(stream)),
                  "cuMemcpyAsync");
  });
}

void mgpuMemset16(void *to, uint16_t value, uint64_t count, void *stream) {
  fillAsync(__func__, &Driver::cuMemsetD16Async, "cuMemsetD16Async", to, value,
            count, stream);
}

void mgpuMemset32(void *to, uint32_t value, uint64_t count, void *stream) {
  fillAsync(__func__, &Driver::cuMemsetD32Async, "cuMemsetD32Async", to, value,
            count, stream);
}

void mgpuMemHostRegisterMemRef(int64_t rank, void *descriptor,
                               int64_t elementBytes) {
  ByteRange range;
  if (hasError() ||
      !getDenseRange(__func__, rank, descriptor, elementBytes, range) ||
      range.size == 0)
    return;
  guard(__func__, [&] {
    if (DeviceScope device; device)
      device->check(device->driver.cuMemHostRegister(
                        range.begin, range.size, CU_MEMHOSTREGISTER_PORTABLE),
                    "cuMemHostRegister");
  });
}

void mgpuMemHostUnregisterMemRef(int64_t rank, void *descriptor,
                                 int64_t elementBytes) {
  ByteRange range;
  if (!getDenseRange(__func__, rank, descriptor, elementBytes, range) ||
      range.size == 0)
    return;
  guard(__func__, [&] {
    if (DeviceScope device(/*releases=*/true); device)
      device->check(device->driver.cuMemHostUnregister(range.begin),
                    "cuMemHostUnregister");
  });
}
