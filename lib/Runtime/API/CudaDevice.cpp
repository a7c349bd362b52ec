//===- CudaDevice.cpp - devices of CUDA and of its emulator ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaDevice.h"

#include "Loader.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <type_traits>

using namespace bngrad;

/// Loads the library `name` and all functions; false and `error` on failure.
static bool loadLibrary(const char *name, CudaLibrary &library,
                        std::string &error) {
  void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    error = dlerror();
    return false;
  }
  auto find = [&](auto &function, const char *symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(handle, symbol));
    if (!function)
      error = std::string(name) + ": expected " + symbol + ", got none";
  };
  find(library.setStream, "bngradCudaSetStream");
  find(library.resetStream, "bngradCudaResetStream");
  find(library.takeStatus, "bngradCudaTakeStatus");
  find(library.setThreadErrorHandler, "bngradCudaSetThreadErrorHandler");
  find(library.getCapability, "bngradCudaGetCapability");
  find(library.setDevice, "bngradCudaSetDevice");
  find(library.resetDevice, "bngradCudaResetDevice");
  find(library.recordEvent, "mgpuEventRecord");
  find(library.copy, "mgpuMemcpy");
  find(library.synchronize, "mgpuStreamSynchronize");
  Dl_info info;
  if (error.empty() &&
      dladdr(reinterpret_cast<void *>(library.setStream), &info) != 0)
    library.path = info.dli_fname;
  return error.empty();
}

namespace {
/// What is loaded for a kind of device.
struct CudaSlot {
  CudaLibrary library;
  bool isLoaded = false;
  const bngradCudaKernels_t *kernels = nullptr;
};
} // namespace

/// The slot of a kind, which is never destroyed. The loader is locked.
static CudaSlot &getCudaSlot(bngradDevice_t kind) {
  static CudaSlot *slots[2];
  CudaSlot *&slot = slots[kind == BNGRAD_DEVICE_CUDA_EMULATOR];
  if (!slot)
    slot = new CudaSlot;
  return *slot;
}

const CudaLibrary *bngrad::loadCudaLibrary(bngradDevice_t kind,
                                           std::string &error) {
  LoaderLock lock;
  CudaSlot &slot = getCudaSlot(kind);
  if (!slot.isLoaded)
    slot.isLoaded = loadLibrary(kind == BNGRAD_DEVICE_CUDA_EMULATOR
                                    ? BNGRAD_CUDA_EMULATOR_LIBRARY
                                    : BNGRAD_CUDA_RUNTIME_LIBRARY,
                                slot.library, error);
  return slot.isLoaded ? &slot.library : nullptr;
}

const bngradCudaKernels_t *
bngrad::loadCudaKernels(bngradDevice_t kind, int device, std::string &error) {
  const char *name = kind == BNGRAD_DEVICE_CUDA_EMULATOR
                         ? BNGRAD_CUDA_EMULATOR_KERNELS_LIBRARY
                         : BNGRAD_CUDA_KERNELS_LIBRARY;
  LoaderLock lock;
  CudaSlot &slot = getCudaSlot(kind);
  if (slot.kernels)
    return slot.kernels;
  // The library's constructors load its modules. They would not if the thread
  // had an error.
  CudaScope scope(slot.library, device, nullptr);
  void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    error = dlerror();
    return nullptr;
  }
  auto get = reinterpret_cast<bngradGetCudaKernelsFunction_t>(
      dlsym(handle, "bngradGetCudaKernels"));
  const bngradCudaKernels_t *kernels = get ? get() : nullptr;
  const char *text = scope.takeError();
  if (kernels && !*text)
    return slot.kernels = kernels;
  // Another attempt runs the constructors again.
  dlclose(handle);
  if (scope.isOutOfMemory())
    throw std::bad_alloc();
  error = *text
              ? text
              : std::string(name) + ": expected bngradGetCudaKernels, got none";
  return nullptr;
}

CudaScope::CudaScope(const CudaLibrary &library, int device, void *stream)
    : library(library) {
  text[0] = '\0';
  library.setThreadErrorHandler(
      [](const char *message, void *user) {
        auto *text = static_cast<char *>(user);
        // Drop the name of the library.
        const char *start = std::strstr(message, ": error: ");
        std::snprintf(text, sizeof(CudaScope::text), "%s",
                      start ? start + std::strlen(": error: ") : message);
      },
      text);
  // A pending error would make these calls fail.
  library.takeStatus();
  library.setDevice(device);
  library.setStream(stream);
}

CudaScope::~CudaScope() {
  library.resetStream();
  library.resetDevice();
  library.setThreadErrorHandler(nullptr, nullptr);
}

const char *CudaScope::takeError() {
  status = library.takeStatus();
  if (status != 0 && text[0] == '\0')
    return "an error of CUDA";
  return text;
}
