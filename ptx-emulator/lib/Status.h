//===- Status.h - the status of a thread ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_STATUS_H
#define PTX_EMULATOR_LIB_STATUS_H

#include "Device.h"

// Nothing else is exported.
#pragma GCC visibility push(default)
#include "BNGrad/Runtime/Cuda.h"
#include "PtxEmulator/PtxEmulator.h"
#pragma GCC visibility pop

#include <new>

namespace ptx {

/// Whether the calling thread has an error that was not taken yet.
bool hasError();

/// Reports `line` as an error of the calling thread, unless it has one.
void fail(int32_t code, const char *line);

/// Calls `fn(device)`, which returns an error message, unless the calling
/// thread already has an error and the call does not release anything. Running
/// out of memory is an error.
template <typename Fn> void withDevice(Fn fn, bool releases = false) {
  if (hasError() && !releases)
    return;
  try {
    Device &device = Device::get();
    std::string error;
    {
      std::lock_guard<std::mutex> lock(device.mutex);
      error = fn(device);
    }
    if (!error.empty())
      fail(-1, ("ptx-emulator: error: " + error).c_str());
  } catch (const std::bad_alloc &) {
    fail(-2, "ptx-emulator: error: out of host memory");
  }
}

} // namespace ptx

#endif // PTX_EMULATOR_LIB_STATUS_H
