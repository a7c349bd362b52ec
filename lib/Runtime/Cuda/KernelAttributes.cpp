//===- KernelAttributes.cpp - attributes of loaded kernels ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module.h"

#include <algorithm>

namespace bngrad::cuda {

// CUDA C++ Programming Guide, "Technical Specifications": the static and
// dynamic shared memory that a block may have by default, in total.
static constexpr int kDefaultShared = 48 << 10;
/// The carve-out of all shared memory, in percent.
static constexpr int kWholeCarveout = 100;

bool LoadedKernel::setAttribute(CUfunction_attribute attribute, int value) {
  return context.check(
      context.driver.cuFuncSetAttribute(properties.function, attribute, value),
      "cuFuncSetAttribute", name.c_str());
}

void LoadedKernel::setCarveout(int percent) {
  // The carve-out is only a hint: a device may ignore it.
  context.driver.cuFuncSetAttribute(
      properties.function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
      percent);
}

bool LoadedKernel::allowDynamicShared(int bytes) {
  if (bytes <= allowedDynamicShared.load(std::memory_order_acquire))
    return true;
  std::lock_guard<std::mutex> lock(mutex);
  int allowed = allowedDynamicShared.load(std::memory_order_relaxed);
  if (bytes <= allowed)
    return true;
  if (allowed == 0)
    setCarveout(kWholeCarveout);
  // The most that a launch can have without the attribute, whose initial value
  // may be larger.
  allowed = std::max(allowed, kDefaultShared - properties.staticShared);
  if (bytes > allowed &&
      !setAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes))
    return false;
  allowedDynamicShared.store(std::max(bytes, allowed),
                             std::memory_order_release);
  return true;
}

bool LoadedKernel::allowLargeClusters() {
  if (allowsLargeClusters.load(std::memory_order_acquire))
    return true;
  std::lock_guard<std::mutex> lock(mutex);
  if (allowsLargeClusters.load(std::memory_order_relaxed))
    return true;
  if (!setAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1))
    return false;
  allowsLargeClusters.store(true, std::memory_order_release);
  return true;
}

/// `value` rounded up to a multiple of `unit`.
static int64_t alignTo(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

int LoadedKernel::getLeastCarveout() const {
  const Multiprocessor &multiprocessor = context.multiprocessor;
  constexpr int kWarpSize = 32;
  int64_t threads = alignTo(std::max(properties.maxThreads, 1), kWarpSize);
  int64_t blocks = std::max<int64_t>(multiprocessor.threads / threads, 1);
  int64_t bytes =
      blocks * alignTo(properties.staticShared + multiprocessor.reservedBytes,
                       Multiprocessor::kSharedUnit);
  int64_t all = multiprocessor.sharedBytes;
  return int(bytes < all ? (kWholeCarveout * bytes + all - 1) / all
                         : kWholeCarveout);
}

void LoadedKernel::preferCarveout(int percent) {
  std::lock_guard<std::mutex> lock(mutex);
  if (allowedDynamicShared.load(std::memory_order_relaxed) == 0)
    setCarveout(percent);
}

} // namespace bngrad::cuda
