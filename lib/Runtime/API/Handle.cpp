//===- Handle.cpp - handles -----------------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Handle.h"

#include "Error.h"

#include <atomic>
#include <memory>
#include <new>
#include <string>

#include <pthread.h>

using namespace bngrad;

/// Whether OpenMP's threads may have run, and whether a parent ran them.
static std::atomic<bool> hasUsedOpenMP{false}, isForked{false};

/// Registered once; unloading the library removes it.
[[gnu::constructor]] static void watchForks() {
  pthread_atfork(nullptr, nullptr, [] {
    if (hasUsedOpenMP)
      isForked = true;
  });
}

const bngrad_threads_t *bngrad::getDefaultThreads() {
  static constexpr bngrad_threads_t kSerial = {
      sizeof(bngrad_threads_t), nullptr, [](void *) { return 1; },
      [](void *, int n, void (*body)(void *, int, int), void *data) {
        for (int i = 0; i < n; ++i)
          body(data, i, n);
      }};
  if (isForked.load(std::memory_order_relaxed))
    return &kSerial;
  if (!hasUsedOpenMP.load(std::memory_order_relaxed))
    hasUsedOpenMP = true;
  return nullptr;
}

/// Sets up a handle for a CPU.
static bngradStatus_t setCpu(bngradHandle &handle) {
  if (handle.device != 0)
    return fail(BNGRAD_BAD_PARAM, "device: expected 0 for a CPU, got %d",
                handle.device);
  char error[256] = "";
  handle.kernels = bngradGetKernels(error, sizeof(error));
  if (*error)
    return fail(BNGRAD_BAD_PARAM, "%s", error);
  return BNGRAD_SUCCESS;
}

/// Sets up a handle for a device of CUDA or of its emulator.
static bngradStatus_t setCuda(bngradHandle &handle) {
  if (handle.device < 0)
    return fail(BNGRAD_BAD_PARAM, "device: expected at least 0, got %d",
                handle.device);
  std::string error;
  handle.cuda = loadCudaLibrary(handle.kind, error);
  if (!handle.cuda)
    return fail(BNGRAD_DEVICE_NOT_SUPPORTED,
                "kind: expected a device that can be used, got %s",
                error.c_str());
  CudaScope scope(*handle.cuda, handle.device, nullptr);
  int32_t capability = handle.cuda->getCapability();
  const char *text = scope.takeError();
  if (scope.isOutOfMemory())
    return fail(BNGRAD_INTERNAL_ERROR, "%s", text);
  if (*text || capability == 0)
    return fail(BNGRAD_DEVICE_NOT_SUPPORTED,
                "device: expected a device that can be used, got '%s'", text);
  handle.capability = capability;
  handle.chip = "sm_" + std::to_string(capability);
  return BNGRAD_SUCCESS;
}

bngradStatus_t bngradCreateHandle(bngradHandle_t *handle, bngradDevice_t kind,
                                  int device) {
  if (!handle)
    return fail(BNGRAD_NULL_POINTER, "handle: expected a place for one, got "
                                     "null");
  if (kind < BNGRAD_DEVICE_CPU || kind > BNGRAD_DEVICE_CUDA_EMULATOR)
    return fail(BNGRAD_DEVICE_NOT_SUPPORTED,
                "kind: expected a bngradDevice_t, 0 to %d, got %d",
                static_cast<int>(BNGRAD_DEVICE_CUDA_EMULATOR),
                static_cast<int>(kind));
  try {
    auto created = std::make_unique<bngradHandle>();
    created->kind = kind;
    created->device = device;
    bngradStatus_t status =
        kind == BNGRAD_DEVICE_CPU ? setCpu(*created) : setCuda(*created);
    if (status != BNGRAD_SUCCESS)
      return status;
    *handle = created.release();
    return succeed();
  } catch (const std::bad_alloc &) {
    return fail(BNGRAD_INTERNAL_ERROR, "out of memory");
  }
}

bngradStatus_t bngradDestroyHandle(bngradHandle_t handle) {
  delete handle;
  return BNGRAD_SUCCESS;
}

bngradStatus_t bngradSetThreads(bngradHandle_t handle,
                                const bngrad_threads_t *threads) {
  if (!handle)
    return fail(BNGRAD_NULL_POINTER, "handle: expected a handle, got null");
  if (!threads) {
    handle->hasThreads = false;
    return succeed();
  }
  if (threads->struct_size < sizeof(bngrad_threads_t))
    return fail(BNGRAD_BAD_PARAM,
                "threads: expected struct_size to be at least %zu, got %zu",
                sizeof(bngrad_threads_t), threads->struct_size);
  if (!threads->count || !threads->run)
    return fail(BNGRAD_NULL_POINTER,
                "threads: expected a function %s, got null",
                threads->count ? "run" : "count");
  handle->threads = *threads;
  handle->hasThreads = true;
  return succeed();
}
