//===- Driver.cpp - the CUDA driver, found at run time ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"
#include "Errors.h"

#include <cstdlib>
#include <dlfcn.h>
#include <string>

namespace bngrad::cuda {

namespace {
/// What came of loading the driver.
struct LoadedDriver {
  Driver functions;
  /// Why it cannot be used; empty if it can.
  std::string error;
  int32_t errorCode = kNoDriverCode;

  LoadedDriver();
};
} // namespace

LoadedDriver::LoadedDriver() {
  const char *name = std::getenv("BNGRAD_CUDA_DRIVER");
  if (!name || !*name)
    name = "libcuda.so.1";
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    error = std::string("cannot load ") + name + ": " + dlerror() +
            "; expected an NVIDIA driver";
    return;
  }

#define BNGRAD_LOOK_UP(name, symbol, ...)                                      \
  functions.name =                                                             \
      reinterpret_cast<CUresult (*)(__VA_ARGS__)>(dlsym(library, symbol));
#define BNGRAD_CHECK(function, symbol, ...)                                    \
  if (!functions.function && error.empty())                                    \
    error = std::string(name) + " has no " symbol                              \
                                "; expected a driver of CUDA 11.8 or newer";
  BNGRAD_CUDA_DRIVER_FUNCTIONS(BNGRAD_LOOK_UP)
  BNGRAD_CUDA_OPTIONAL_DRIVER_FUNCTIONS(BNGRAD_LOOK_UP)
  BNGRAD_CUDA_DRIVER_FUNCTIONS(BNGRAD_CHECK)
#undef BNGRAD_LOOK_UP
#undef BNGRAD_CHECK
  if (!error.empty())
    return;

  CUresult result = functions.cuInit(0);
  if (result != CUDA_SUCCESS) {
    error = "cuInit: " + describe(functions, result);
    errorCode = result;
  }
}

const Driver *getDriver() {
  // Never destroyed: destructors of the program may still need it.
  static const LoadedDriver &loaded = *new LoadedDriver;
  if (loaded.error.empty())
    return &loaded.functions;
  report(loaded.errorCode, loaded.error);
  return nullptr;
}

} // namespace bngrad::cuda
