//===- Cuda.cpp - the functions that host code calls ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Environment.h"
#include "Machine.h"
#include "Status.h"

#include <cstring>

using namespace ptx;

namespace {

/// A pending copy to host memory.
struct HostCopy {
  char *to;
  std::vector<char> data;
};

/// A stream or an event. A stream delays its copies to the host until a wait
/// for the stream.
struct Handle {
  bool isStream;
  std::vector<HostCopy> copies;

  void finish() {
    for (const HostCopy &copy : copies)
      std::memcpy(copy.to, copy.data.data(), copy.data.size());
    copies.clear();
  }
};

/// The caller's stream; null is a valid stream.
struct CallersStream {
  bool isSet = false;
  void *stream = nullptr;
};

} // namespace

static thread_local CallersStream callersStream;

/// All existing handles, protected by the mutex of the device. Never destroyed,
/// as destructors of the program may still use it.
static std::set<Handle *> &handles() {
  static auto *set = new std::set<Handle *>;
  return *set;
}

static bool isCallersStream(void *stream) {
  return callersStream.isSet && callersStream.stream == stream;
}

/// Returns an empty string if `handle` exists, or is the default stream or the
/// caller's stream.
static std::string checkHandle(const char *function, void *handle,
                               bool isStream) {
  if (isStream && (!handle || isCallersStream(handle)))
    return "";
  auto found = handles().find(static_cast<Handle *>(handle));
  if (found != handles().end() && (*found)->isStream == isStream)
    return "";
  return std::string("unsupported: ") + function + ": expected an existing " +
         (isStream ? "stream" : "event");
}

/// Like checkHandle(), for an operation of `stream` that is not a launch: the
/// kernels before it do not overlap the kernels after it.
static std::string checkStream(const char *function, void *stream,
                               Device &device) {
  std::string error = checkHandle(function, stream, true);
  if (error.empty())
    device.completeKernels(stream);
  return error;
}

/// The stream, or null for the default stream and the caller's, which do not
/// delay copies.
static Handle *findStream(void *stream) {
  if (!stream || isCallersStream(stream))
    return nullptr;
  return static_cast<Handle *>(stream);
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// A module of `numImages` images, which `fill` fills in.
template <typename Fill> static void *addModule(int64_t numImages, Fill fill) {
  void *result = nullptr;
  withDevice([&](Device &device) {
    auto module = std::make_unique<LoadedModule>();
    module->images.resize(numImages);
    for (int64_t i = 0; i < numImages; ++i)
      fill(i, module->images[i]);
    LoadedModule *added = module.get();
    device.modules.insert(std::move(module));
    result = added;
    return std::string();
  });
  return result;
}

void *mgpuModuleLoad(void *, uint64_t) {
  return addModule(1, [](int64_t, Image &image) { image.isBinary = true; });
}

void *mgpuModuleLoadJIT(void *data, int32_t) {
  return addModule(1, [&](int64_t, Image &image) {
    image.text = static_cast<const char *>(data);
  });
}

void *bngradCudaModuleLoad(const bngradCudaImage_t *images, int64_t numImages) {
  return addModule(numImages, [&](int64_t i, Image &image) {
    image.chip = images[i].chip;
    image.isBinary = images[i].format != BNGRAD_CUDA_IMAGE_PTX;
    if (!image.isBinary)
      image.text.assign(static_cast<const char *>(images[i].data),
                        images[i].size);
  });
}

void mgpuModuleUnload(void *module) {
  withDevice(
      [&](Device &device) {
        device.unload(static_cast<LoadedModule *>(module));
        return std::string();
      },
      /*releases=*/true);
}

void *mgpuModuleGetFunction(void *module, const char *name) {
  void *result = nullptr;
  withDevice([&](Device &) {
    if (!module)
      return std::string("unsupported: mgpuModuleGetFunction: no module");
    auto *loaded = static_cast<LoadedModule *>(module);
    KernelHandle &kernel = loaded->kernels[name];
    kernel.module = loaded;
    kernel.name = name;
    result = &kernel;
    return std::string();
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Returns false if an extent does not fit in 32 bits.
static bool toDim3(intptr_t x, intptr_t y, intptr_t z, Dim3 &result) {
  for (intptr_t extent : {x, y, z})
    if (extent < 0 || extent > INT32_MAX)
      return false;
  result = {uint32_t(x), uint32_t(y), uint32_t(z)};
  return true;
}

static std::string launch(void *function, LaunchConfig config, void *stream,
                          void **params, uint64_t numParams,
                          bool knowsNumParams, Device &device) {
  if (!function)
    return "unsupported: launch of a null kernel";
  std::string error = checkHandle("launch", stream, true);
  if (!error.empty())
    return error;
  config.stream = stream;
  return device.launch(*static_cast<KernelHandle *>(function),
                       std::move(config), params, numParams, knowsNumParams);
}

void mgpuLaunchKernel(void *function, intptr_t gridX, intptr_t gridY,
                      intptr_t gridZ, intptr_t blockX, intptr_t blockY,
                      intptr_t blockZ, int32_t dynamicSharedBytes, void *stream,
                      void **params, void **, uint64_t numParams) {
  if (gridX == 0 || gridY == 0 || gridZ == 0)
    return;
  withDevice([&](Device &device) {
    LaunchConfig config;
    config.dynamicShared = uint32_t(dynamicSharedBytes);
    if (!toDim3(gridX, gridY, gridZ, config.grid) ||
        !toDim3(blockX, blockY, blockZ, config.block))
      return std::string("launch-bounds: extents that are negative or above "
                         "2147483647");
    return launch(function, std::move(config), stream, params, numParams, true,
                  device);
  });
}

void mgpuLaunchClusterKernel(void *function, intptr_t clusterX,
                             intptr_t clusterY, intptr_t clusterZ,
                             intptr_t gridX, intptr_t gridY, intptr_t gridZ,
                             intptr_t blockX, intptr_t blockY, intptr_t blockZ,
                             int32_t dynamicSharedBytes, void *stream,
                             void **params, void **) {
  if (gridX == 0 || gridY == 0 || gridZ == 0)
    return;
  withDevice([&](Device &device) {
    LaunchConfig config;
    config.hasCluster = true;
    config.dynamicShared = uint32_t(dynamicSharedBytes);
    if (!toDim3(gridX, gridY, gridZ, config.grid) ||
        !toDim3(blockX, blockY, blockZ, config.block) ||
        !toDim3(clusterX, clusterY, clusterZ, config.cluster))
      return std::string("launch-bounds: extents that are negative or above "
                         "2147483647");
    return launch(function, std::move(config), stream, params, 0, false,
                  device);
  });
}

//===----------------------------------------------------------------------===//
// Streams and events. All work but copies to the host is done on return.
//===----------------------------------------------------------------------===//

static void *createHandle(bool isStream) {
  void *result = nullptr;
  withDevice([&](Device &) {
    std::unique_ptr<Handle> handle(new Handle{isStream, {}});
    handles().insert(handle.get());
    result = handle.release();
    return std::string();
  });
  return result;
}

static void destroyHandle(const char *function, void *handle, bool isStream) {
  withDevice(
      [&](Device &device) {
        std::string error = checkHandle(function, handle, isStream);
        if (error.empty() && handle) {
          device.completeKernels(handle);
          size_t bytes = 0;
          for (const HostCopy &copy : static_cast<Handle *>(handle)->copies)
            bytes += copy.data.size();
          if (bytes > 0)
            error = std::string("missing-wait: ") + function + ": " +
                    std::to_string(bytes) +
                    " bytes are still being copied to the host; expected "
                    "mgpuStreamSynchronize before";
          handles().erase(static_cast<Handle *>(handle));
          delete static_cast<Handle *>(handle);
        }
        return error;
      },
      /*releases=*/true);
}

void bngradCudaSetStream(void *stream) { callersStream = {true, stream}; }

void bngradCudaResetStream(void) { callersStream = {}; }

void *mgpuStreamCreate(void) {
  return callersStream.isSet ? callersStream.stream : createHandle(true);
}

void mgpuStreamDestroy(void *stream) {
  if (isCallersStream(stream))
    return;
  destroyHandle("mgpuStreamDestroy", stream, true);
}

void mgpuStreamSynchronize(void *stream) {
  if (isCallersStream(stream))
    return;
  withDevice([&](Device &device) {
    std::string error = checkStream("mgpuStreamSynchronize", stream, device);
    if (Handle *handle = error.empty() ? findStream(stream) : nullptr)
      handle->finish();
    return error;
  });
}

void mgpuStreamWaitEvent(void *stream, void *event) {
  withDevice([&](Device &device) {
    std::string error = checkStream("mgpuStreamWaitEvent", stream, device);
    return error.empty() ? checkHandle("mgpuStreamWaitEvent", event, false)
                         : error;
  });
}

void *mgpuEventCreate(void) { return createHandle(false); }

void mgpuEventDestroy(void *event) {
  destroyHandle("mgpuEventDestroy", event, false);
}

void mgpuEventSynchronize(void *event) {
  withDevice([&](Device &device) {
    // The stream that recorded the event is unknown.
    device.completeAllKernels();
    for (Handle *handle : handles())
      handle->finish();
    return checkHandle("mgpuEventSynchronize", event, false);
  });
}

void mgpuEventRecord(void *event, void *stream) {
  withDevice([&](Device &device) {
    std::string error = checkStream("mgpuEventRecord", stream, device);
    return error.empty() ? checkHandle("mgpuEventRecord", event, false) : error;
  });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void *mgpuMemAlloc(uint64_t bytes, void *stream, uint8_t isHostShared) {
  void *result = nullptr;
  withDevice([&](Device &device) {
    std::string error = checkStream("mgpuMemAlloc", stream, device);
    if (!error.empty())
      return error;
    Buffer *buffer = device.memory.allocate(bytes, isHostShared);
    if (!buffer)
      return "out-of-bounds: mgpuMemAlloc: no memory for " +
             std::to_string(bytes) + " bytes";
    result = reinterpret_cast<void *>(buffer->base);
    return error;
  });
  return result;
}

void mgpuMemFree(void *pointer, void *stream) {
  if (!pointer)
    return;
  withDevice(
      [&](Device &device) {
        std::string error = checkStream("mgpuMemFree", stream, device);
        auto address = reinterpret_cast<uint64_t>(pointer);
        if (error.empty() && !device.memory.release(address))
          return "out-of-bounds: mgpuMemFree: " + hex(address) +
                 " is not the start of a buffer, " +
                 device.memory.describe(address);
        return error;
      },
      /*releases=*/true);
}

void mgpuMemcpy(void *to, void *from, uint64_t bytes, void *stream) {
  withDevice([&](Device &device) {
    std::string error = checkStream("mgpuMemcpy", stream, device);
    Handle *handle = error.empty() ? findStream(stream) : nullptr;
    if (!handle)
      return error.empty() ? device.copy(to, from, bytes) : error;
    const char *begin = static_cast<const char *>(from);
    for (const HostCopy &copy : handle->copies)
      if (begin < copy.to + copy.data.size() && copy.to < begin + bytes) {
        handle->finish();
        break;
      }
    HostCopy copy = {static_cast<char *>(to), {}};
    error = device.copy(to, from, bytes, &copy.data);
    if (!copy.data.empty())
      handle->copies.push_back(std::move(copy));
    return error;
  });
}

void mgpuMemset16(void *to, uint16_t value, uint64_t count, void *stream) {
  withDevice([&](Device &device) {
    std::string error = checkStream("mgpuMemset16", stream, device);
    return error.empty() ? device.fill(to, value, 2, count) : error;
  });
}

void mgpuMemset32(void *to, uint32_t value, uint64_t count, void *stream) {
  withDevice([&](Device &device) {
    std::string error = checkStream("mgpuMemset32", stream, device);
    return error.empty() ? device.fill(to, value, 4, count) : error;
  });
}

namespace {

/// The memory that an unranked memref covers.
struct HostRange {
  char *begin = nullptr;
  uint64_t bytes = 0;
};

} // namespace

static HostRange rangeOf(int64_t rank, void *descriptor, int64_t elementBytes) {
  // allocated, aligned, offset, sizes, strides
  char *aligned = static_cast<char **>(descriptor)[1];
  const int64_t *numbers = static_cast<int64_t *>(descriptor) + 2;
  int64_t last = 0;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t size = numbers[1 + i], stride = numbers[1 + rank + i];
    if (size == 0)
      return {};
    last += (size - 1) * stride;
  }
  return {aligned + numbers[0] * elementBytes,
          uint64_t(last + 1) * elementBytes};
}

void mgpuMemHostRegisterMemRef(int64_t rank, void *descriptor,
                               int64_t elementBytes) {
  withDevice([&](Device &device) {
    HostRange range = rangeOf(rank, descriptor, elementBytes);
    if (range.bytes)
      device.memory.registerHost(range.begin, range.bytes);
    return std::string();
  });
}

void mgpuMemHostUnregisterMemRef(int64_t rank, void *descriptor,
                                 int64_t elementBytes) {
  withDevice(
      [&](Device &device) {
        HostRange range = rangeOf(rank, descriptor, elementBytes);
        if (range.bytes)
          device.memory.unregisterHost(range.begin);
        return std::string();
      },
      /*releases=*/true);
}

//===----------------------------------------------------------------------===//
// Properties of the device and of kernels
//===----------------------------------------------------------------------===//

// All devices are one.
void mgpuSetDefaultDevice(int32_t) {}

void bngradCudaSetDevice(int32_t) {}

void bngradCudaResetDevice(void) {}

/// Finds the chip where no module chooses one.
static std::string findChipOfDevice(Chip &chip) {
  std::string name;
  std::string error = readChip(name);
  return error.empty()
             ? Device::findEmulatedChip(name.empty() ? "sm_90" : name, chip)
             : error;
}

int32_t bngradCudaGetCapability(void) {
  int32_t result = 0;
  withDevice([&](Device &) {
    Chip chip;
    std::string error = findChipOfDevice(chip);
    if (error.empty())
      result = static_cast<int32_t>(chipNumber(chip.name));
    return error;
  });
  return result;
}

int32_t bngradCudaGetClusterSlots(int32_t clusterBlocks,
                                  int32_t residentBlocks) {
  int32_t result = 0;
  withDevice([&](Device &) {
    if (clusterBlocks < 1 || clusterBlocks > 16 || residentBlocks < 1 ||
        residentBlocks > 32)
      return "unsupported: bngradCudaGetClusterSlots: expected cluster_blocks "
             "in [1, 16] and resident_blocks in [1, 32], got " +
             std::to_string(clusterBlocks) + " and " +
             std::to_string(residentBlocks);
    Chip chip;
    std::string error = findChipOfDevice(chip);
    if (error.empty() && chip.clusters)
      result = int32_t(chip.countClusterSlots(clusterBlocks, residentBlocks));
    return error;
  });
  return result;
}
