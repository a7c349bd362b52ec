//===- CudaLibrary.cpp - the library that runs kernels --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaLibrary.h"
#include "common/CommandLine.h"
#include "common/Diagnostics.h"

#include "BNGrad/Runtime/Cuda.h"
#include "BNGrad/Transforms/Schedule/CudaChip.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <dlfcn.h>

using namespace mlir;
using namespace mlir::bngrad;

/// Prints an error of the library, which already has a prefix.
static void reportLine(const char *message, void *) {
  llvm::errs() << message << "\n";
}

FailureOr<CudaLibrary> CudaLibrary::load(RunTarget target) {
  CudaLibrary library;
  library.target = target;
  library.path =
      getOwnLibrary(target == RunTarget::Cuda ? "libBNGradCudaRuntime.so"
                                              : "libBNGradCudaEmulator.so");
  void *handle = dlopen(library.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    std::string reason = dlerror();
    if (!llvm::sys::fs::exists(library.path))
      reason += " (scripts/build.sh builds it)";
    return reportError("cannot load a library: " + Twine(reason));
  }
  auto find = [&](const char *name, auto &function) -> LogicalResult {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(handle, name));
    if (!function)
      return reportError(library.path + ": expected a function " + name +
                         ", got none");
    return success();
  };
  decltype(&bngradCudaSetErrorHandler) setErrorHandler = nullptr;
  if (failed(find("bngradCudaSetErrorHandler", setErrorHandler)) ||
      failed(find("bngradCudaTakeStatus", library.takeStatusFunction)) ||
      failed(find("bngradCudaGetCapability", library.getCapabilityFunction)) ||
      failed(
          find("bngradCudaGetClusterSlots", library.getClusterSlotsFunction)))
    return failure();
  setErrorHandler(&reportLine, nullptr);
  return library;
}

FailureOr<std::string> CudaLibrary::chooseChip(StringRef given) const {
  if (!given.empty())
    return given.str();
  int32_t capability = getCapabilityFunction();
  if (failed(takeStatus()))
    return failure();
  std::string name = "sm_" + std::to_string(capability);
  if (CudaChip::find(name))
    return name;
  // Find the newest chip whose PTX the device can run.
  const CudaChip *newest = nullptr;
  for (const CudaChip &chip : CudaChip::getAll())
    if (chip.capability <= static_cast<unsigned>(capability) &&
        !chip.name.ends_with("a"))
      newest = &chip;
  if (!newest)
    return reportError("expected a GPU of chip " +
                       CudaChip::getAll().front().name + " or newer, got " +
                       name);
  return newest->name.str();
}

std::string CudaLibrary::findActiveClusters(StringRef chip) const {
  const CudaChip *known = CudaChip::find(chip);
  std::string text;
  for (int64_t blocks = 2; known && blocks <= known->clusterBlocks;
       blocks *= 2) {
    int32_t withOne = getClusterSlotsFunction(blocks, 1);
    int32_t withTwo = getClusterSlotsFunction(blocks, 2);
    if (failed(takeStatus()))
      return "";
    // Every device with clusters runs some clusters of two blocks.
    if (blocks == 2 && withOne == 0)
      return text;
    if (!text.empty())
      text += ',';
    text += llvm::formatv("{0}:{1}:{2}", blocks, withOne, withTwo);
  }
  return text;
}

LogicalResult CudaLibrary::takeStatus() const {
  return failure(takeStatusFunction() != 0);
}
