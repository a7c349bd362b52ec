//===- Context.cpp - the device a call works on -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Context.h"
#include "../Immortal.h"
#include "Abi.h"

#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace bngrad::cuda {

static thread_local int32_t defaultDevice = 0;
/// The device of all calls of the thread; kAnyDevice for that of the current
/// context.
static constexpr int32_t kAnyDevice = -1;
static thread_local int32_t chosenDevice = kAnyDevice;

namespace {
struct ContextTable {
  std::mutex mutex;
  /// By `Context::id`.
  std::unordered_map<unsigned long long, std::unique_ptr<Context>> contexts;
  /// The primary contexts this library retains, by device; null while one is
  /// being retained.
  std::map<int32_t, CUcontext> primary;
};
} // namespace

static ContextTable &contextTable() {
  static Immortal<ContextTable> table;
  return *table;
}

//===----------------------------------------------------------------------===//
// Context
//===----------------------------------------------------------------------===//

/// Like Context::check, without a context. The line begins with `call`.
template <typename... Parts>
static bool check(const Driver &driver, CUresult result, const Parts &...call) {
  if (result == CUDA_SUCCESS)
    return true;
  report(result, Line(call..., ": ", describe(driver, result)));
  return false;
}

Line Context::describeDevice() const {
  return Line("device ", device, " (", deviceName, ")");
}

bool Context::check(CUresult result, const char *call,
                    const char *kernel) const {
  if (result == CUDA_SUCCESS)
    return true;
  Line what(call);
  if (kernel)
    what.append(" of '", kernel, "'");
  return cuda::check(driver, result, what, " on ", describeDevice());
}

/// `Context::id` of `handle`. If the driver has no ids, uses the address.
static CUresult getId(const Driver &driver, CUcontext handle,
                      unsigned long long &id) {
  id = reinterpret_cast<uintptr_t>(handle);
  return driver.cuCtxGetId ? driver.cuCtxGetId(handle, &id) : CUDA_SUCCESS;
}

/// Describes `handle`, which is current; null and a report if that fails.
static std::unique_ptr<Context>
makeContext(const Driver &driver, CUcontext handle, unsigned long long id) {
  auto context = std::make_unique<Context>(driver, handle, id);
  if (!check(driver, driver.cuCtxGetDevice(&context->device), "cuCtxGetDevice"))
    return nullptr;
  if (!check(driver,
             driver.cuDeviceGetName(context->deviceName,
                                    sizeof(context->deviceName),
                                    context->device),
             "cuDeviceGetName"))
    return nullptr;

  auto getAttribute = [&](int &value, CUdevice_attribute attribute) {
    return context->check(
        driver.cuDeviceGetAttribute(&value, attribute, context->device),
        "cuDeviceGetAttribute");
  };
  int hasMemoryPools = 0;
  if (!getAttribute(context->capability.major,
                    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) ||
      !getAttribute(context->capability.minor,
                    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) ||
      !getAttribute(context->multiprocessor.threads,
                    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) ||
      !getAttribute(context->multiprocessor.sharedBytes,
                    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) ||
      !getAttribute(context->multiprocessor.reservedBytes,
                    CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK) ||
      !getAttribute(hasMemoryPools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED))
    return nullptr;
  context->hasMemoryPools = hasMemoryPools != 0;
  return context;
}

/// The context of `handle`, which is current.
static const Context *getContext(const Driver &driver, CUcontext handle) {
  unsigned long long id = 0;
  if (!check(driver, getId(driver, handle, id), "cuCtxGetId"))
    return nullptr;

  // Most calls of a thread are in the same context.
  static thread_local unsigned long long lastId = 0;
  static thread_local const Context *last = nullptr;
  if (last && lastId == id)
    return last;

  ContextTable &table = contextTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  std::unique_ptr<Context> &context = table.contexts[id];
  if (!context)
    context = makeContext(driver, handle, id);
  if (context) {
    lastId = id;
    last = context.get();
  }
  return context.get();
}

/// Sets `device` to the device number `number`; false and a report if there is
/// none.
static bool getDevice(const Driver &driver, int32_t number, CUdevice &device) {
  return check(driver, driver.cuDeviceGet(&device, number),
               "cuDeviceGet of device ", number);
}

/// The primary context of the device number `number`; null and a report if
/// there is none.
static CUcontext retainPrimaryContext(const Driver &driver, int32_t number) {
  ContextTable &table = contextTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  // Insert the entry first: a context retained without one would leak.
  CUcontext &handle = table.primary[number];
  if (handle)
    return handle;
  CUdevice device = 0;
  CUcontext retained = nullptr;
  if (!getDevice(driver, number, device) ||
      !check(driver, driver.cuDevicePrimaryCtxRetain(&retained, device),
             "cuDevicePrimaryCtxRetain of device ", number))
    return nullptr;
  return handle = retained;
}

bool isAlive(const Context &context) {
  const Driver &driver = context.driver;
  CUcontext current = nullptr;
  bool exists = driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS &&
                current == context.handle;
  if (!exists) {
    ContextTable &table = contextTable();
    std::lock_guard<std::mutex> lock(table.mutex);
    for (const auto &[device, handle] : table.primary)
      exists |= handle == context.handle;
  }
  unsigned long long id = 0;
  return exists && getId(driver, context.handle, id) == CUDA_SUCCESS &&
         id == context.id;
}

//===----------------------------------------------------------------------===//
// DeviceScope
//===----------------------------------------------------------------------===//

DeviceScope::DeviceScope(bool releases) {
  if (hasError() && !releases)
    return;
  const Driver *driver = getDriver();
  if (!driver)
    return;
  CUcontext handle = nullptr;
  if (!check(*driver, driver->cuCtxGetCurrent(&handle), "cuCtxGetCurrent"))
    return;
  if (handle) {
    const Context *current = getContext(*driver, handle);
    CUdevice device = 0;
    if (!current || (chosenDevice != kAnyDevice &&
                     !getDevice(*driver, chosenDevice, device)))
      return;
    if (chosenDevice == kAnyDevice || current->device == device) {
      context = current;
      return;
    }
  }
  handle = retainPrimaryContext(
      *driver, chosenDevice == kAnyDevice ? defaultDevice : chosenDevice);
  if (handle && pushed.push(*driver, handle))
    context = getContext(*driver, handle);
}

bool DeviceScope::Pushed::push(const Driver &from, CUcontext handle) {
  if (!check(from, from.cuCtxPushCurrent(handle), "cuCtxPushCurrent"))
    return false;
  driver = &from;
  return true;
}

DeviceScope::Pushed::~Pushed() {
  // If it fails, the thread's next call reports the reason: a destructor may
  // run during an exception and must not call a handler.
  CUcontext handle = nullptr;
  if (driver)
    driver->cuCtxPopCurrent(&handle);
}

} // namespace bngrad::cuda

using namespace bngrad::cuda;

void mgpuSetDefaultDevice(int32_t device) {
  if (!hasError())
    defaultDevice = device;
}

void bngradCudaSetDevice(int32_t device) { chosenDevice = device; }

void bngradCudaResetDevice(void) { chosenDevice = kAnyDevice; }

int32_t bngradCudaGetCapability(void) {
  return guard(__func__, [&] {
    DeviceScope device;
    if (!device)
      return 0;
    return device->capability.major * 10 + device->capability.minor;
  });
}
