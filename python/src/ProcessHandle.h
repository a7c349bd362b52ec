//===- ProcessHandle.h - the handles of a library's calls -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_PROCESSHANDLE_H
#define BNGRAD_PYTHON_SRC_PROCESSHANDLE_H

#include "BNGrad/Runtime/Runtime.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace bngrad::python {

/// More devices than a process has; PyTorch numbers them by 8 bits.
inline constexpr int kMostDevices = 128;

/// Returns the handle in `kept`, or a new one that `create` makes. It lives as
/// long as the process. After a failure, described by bngradGetLastError(), the
/// next call tries again.
///
/// There is no lock, as a fork could leave it taken in the child. If several
/// threads come first at the same time, each creates a handle, and one is kept.
template <typename Create>
bngradStatus_t getKeptHandle(std::atomic<bngradHandle_t> &kept,
                             bngradHandle_t &handle, Create create) {
  handle = kept;
  if (handle)
    return BNGRAD_SUCCESS;
  if (bngradStatus_t status = create(handle))
    return status;
  bngradHandle_t earlier = nullptr;
  if (!kept.compare_exchange_strong(earlier, handle)) {
    bngradDestroyHandle(handle);
    handle = earlier;
  }
  return BNGRAD_SUCCESS;
}

/// Returns the handle for this CPU, whose calls run on the `threads` of the
/// first caller. Each library has its own.
static inline bngradStatus_t getProcessHandle(const bngrad_threads_t &threads,
                                              bngradHandle_t &handle) {
  static std::atomic<bngradHandle_t> kept;
  return getKeptHandle(kept, handle, [&](bngradHandle_t &created) {
    bngradStatus_t status = bngradCreateHandle(&created, BNGRAD_DEVICE_CPU, 0);
    if (status)
      return status;
    status = bngradSetThreads(created, &threads);
    if (status)
      bngradDestroyHandle(created);
    return status;
  });
}

/// Returns the handle for CUDA device number `device`, which is one of the
/// emulator if BNGRAD_CUDA_EMULATOR is set to 1, as in tests without a GPU.
static inline bngradStatus_t getCudaHandle(int device, bngradHandle_t &handle) {
  static std::atomic<bngradHandle_t> kept[kMostDevices];
  const char *emulator = std::getenv("BNGRAD_CUDA_EMULATOR");
  bngradDevice_t kind = emulator && std::strcmp(emulator, "1") == 0
                            ? BNGRAD_DEVICE_CUDA_EMULATOR
                            : BNGRAD_DEVICE_CUDA;
  auto create = [&](bngradHandle_t &created) {
    return bngradCreateHandle(&created, kind, device);
  };
  // The C library rejects the number.
  if (device < 0 || device >= kMostDevices)
    return create(handle);
  return getKeptHandle(kept[device], handle, create);
}

} // namespace bngrad::python

#endif // BNGRAD_PYTHON_SRC_PROCESSHANDLE_H
