//===- Driver.cpp - the CUDA driver, found at run time ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"
#include "../Immortal.h"
#include "Errors.h"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

namespace bngrad::cuda {

namespace {
/// Loads the driver. After a failure the next call tries again: memory may have
/// been short.
class Loader {
public:
  const Driver *get() {
    if (isReady.load(std::memory_order_acquire))
      return &functions;
    std::lock_guard<std::mutex> lock(mutex);
    if (!isReady.load(std::memory_order_relaxed)) {
      if ((!library && !openLibrary()) || !initialize())
        return nullptr;
      isReady.store(true, std::memory_order_release);
    }
    return &functions;
  }

private:
  bool openLibrary();
  bool initialize();

  std::mutex mutex;
  std::atomic<bool> isReady{false};
  /// The library is loaded but must not be used.
  bool isBroken = false;
  /// Never closed once its functions are known.
  void *library = nullptr;
  Driver functions;
};
} // namespace

bool Loader::openLibrary() {
  const char *name = std::getenv("BNGRAD_CUDA_DRIVER");
  if (!name || !*name)
    name = "libcuda.so.1";
  void *opened = isBroken ? nullptr : dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!opened) {
    const char *reason = isBroken ? nullptr : dlerror();
    report(kNoDriverCode, Line("cannot load ", name, ": ",
                               reason ? reason : "out of host memory",
                               "; expected an NVIDIA driver"));
    // If memory runs out late, glibc (2.36) keeps the library, and the next
    // dlopen returns it uninitialized.
    isBroken |= dlopen(name, RTLD_NOW | RTLD_NOLOAD) != nullptr;
    return false;
  }

  const char *missing = nullptr;
#define BNGRAD_LOOK_UP(name, symbol, ...)                                      \
  functions.name =                                                             \
      reinterpret_cast<CUresult (*)(__VA_ARGS__)>(dlsym(opened, symbol));
#define BNGRAD_CHECK(function, symbol, ...)                                    \
  if (!functions.function && !missing)                                         \
    missing = symbol;
  BNGRAD_CUDA_DRIVER_FUNCTIONS(BNGRAD_LOOK_UP)
  BNGRAD_CUDA_OPTIONAL_DRIVER_FUNCTIONS(BNGRAD_LOOK_UP)
  BNGRAD_CUDA_DRIVER_FUNCTIONS(BNGRAD_CHECK)
#undef BNGRAD_LOOK_UP
#undef BNGRAD_CHECK
  if (missing) {
    report(kNoDriverCode, Line(name, " has no ", missing,
                               "; expected a driver of CUDA 11.8 or newer"));
    dlclose(opened);
    return false;
  }
  library = opened;
  return true;
}

bool Loader::initialize() {
  CUresult result = functions.cuInit(0);
  if (result == CUDA_SUCCESS)
    return true;
  report(result, Line("cuInit: ", describe(functions, result)));
  return false;
}

const Driver *getDriver() {
  static Immortal<Loader> loader;
  return (*loader).get();
}

} // namespace bngrad::cuda
