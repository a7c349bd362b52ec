//===- ProcessHandle.h - the handle of a library's calls --------*- C++ -*-===//
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

namespace bngrad::python {

/// Returns the handle for this CPU, whose calls run on the `threads` of the
/// first caller. It lives as long as the process. After a failure, described by
/// bngradGetLastError(), the next call tries again.
///
/// There is no lock, as a fork could leave it taken in the child. If several
/// threads come first at the same time, each creates a handle, and one is kept.
/// Each library has its own.
static inline bngradStatus_t getProcessHandle(const bngrad_threads_t &threads,
                                              bngradHandle_t &handle) {
  static std::atomic<bngradHandle_t> kept;
  handle = kept;
  if (handle)
    return BNGRAD_SUCCESS;
  if (bngradStatus_t status = bngradCreateHandle(&handle, BNGRAD_DEVICE_CPU, 0))
    return status;
  if (bngradStatus_t status = bngradSetThreads(handle, &threads)) {
    bngradDestroyHandle(handle);
    return status;
  }
  bngradHandle_t earlier = nullptr;
  if (!kept.compare_exchange_strong(earlier, handle)) {
    bngradDestroyHandle(handle);
    handle = earlier;
  }
  return BNGRAD_SUCCESS;
}

} // namespace bngrad::python

#endif // BNGRAD_PYTHON_SRC_PROCESSHANDLE_H
