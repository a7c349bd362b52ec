//===- ClusterSlots.cpp - clusters that run at once -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The blocks of a cluster run in one processing cluster. Processing clusters
// differ in their number of multiprocessors, and no device attribute reports
// it, so this file asks the driver for the occupancy of a kernel.
//
//===----------------------------------------------------------------------===//

#include "../Immortal.h"
#include "Abi.h"
#include "Module.h"

#include <map>
#include <mutex>
#include <optional>
#include <tuple>

namespace bngrad::cuda {

// An empty kernel. Its PTX version and chip are the first with clusters, so
// every newer driver and device runs it.
static constexpr char kKernelName[] = "bngrad_cluster_slots";
static constexpr char kKernelText[] = ".version 7.8\n"
                                      ".target sm_90\n"
                                      ".address_size 64\n"
                                      ".visible .entry bngrad_cluster_slots()\n"
                                      "{\n"
                                      "  ret;\n"
                                      "}\n";
/// CUDA C++ Programming Guide, "Technical Specifications".
static constexpr int kMostClusterBlocks = 16;
static constexpr int kMostResidentBlocks = 32;
/// Threads per block: few, so that only shared memory limits the blocks of a
/// multiprocessor.
static constexpr unsigned kThreads = 32;

namespace {
struct SlotTable {
  std::mutex mutex;
  /// By device, blocks per cluster and blocks per multiprocessor. 0 if the
  /// driver failed.
  std::map<std::tuple<CUdevice, int, int>, int> slots;
};
} // namespace

/// How many clusters run at once; none and a report if the driver fails.
static std::optional<int> countSlots(const Context &context, int clusterBlocks,
                                     int residentBlocks) {
  const Driver &driver = context.driver;
  constexpr int kFirstMajorWithClusters = 9;
  if (context.capability.major < kFirstMajorWithClusters ||
      !driver.cuOccupancyMaxActiveClusters)
    return 0;
  // The module is unloaded below. Another thread may capture a stream.
  RelaxedScope relaxed(driver);
  Module module({{kKernelText, /*isPtx=*/true, /*optLevel=*/0, /*chip=*/{}}});
  LoadedKernel *kernel = module.getKernel(kKernelName)->load(context);
  const Multiprocessor &multiprocessor = context.multiprocessor;
  int bytes = multiprocessor.sharedBytes / residentBlocks /
                  Multiprocessor::kSharedUnit * Multiprocessor::kSharedUnit -
              multiprocessor.reservedBytes;
  if (!kernel || !kernel->allowDynamicShared(bytes))
    return std::nullopt;
  CUfunction function = kernel->properties.function;
  // If a device refuses it, the next call reports that no such cluster fits.
  driver.cuFuncSetAttribute(
      function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);

  CUlaunchAttribute attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {unsigned(clusterBlocks), 1, 1};
  CUlaunchConfig config = {};
  config.gridDimX = clusterBlocks;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = kThreads;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int slots = 0;
  CUresult result =
      driver.cuOccupancyMaxActiveClusters(&slots, function, &config);
  if (result == CUDA_ERROR_INVALID_CLUSTER_SIZE)
    return 0;
  if (!context.check(result, "cuOccupancyMaxActiveClusters"))
    return std::nullopt;
  return slots;
}

/// Calls countSlots once per device, so that a failure is reported only once.
static int getSlots(const Context &context, int clusterBlocks,
                    int residentBlocks) {
  static Immortal<SlotTable> immortal;
  SlotTable &table = *immortal;
  std::tuple key(context.device, clusterBlocks, residentBlocks);
  std::lock_guard<std::mutex> lock(table.mutex);
  auto [slots, isNew] = table.slots.try_emplace(key, 0);
  if (isNew)
    slots->second =
        countSlots(context, clusterBlocks, residentBlocks).value_or(0);
  return slots->second;
}

/// Whether `value`, called `what`, is in [1, most]; reports it if not.
static bool checkNumber(const char *call, const char *what, int value,
                        int most) {
  if (value >= 1 && value <= most)
    return true;
  report(kNoDriverCode,
         Line(call, ": expected ", what, " in [1, ", most, "], got ", value));
  return false;
}

} // namespace bngrad::cuda

using namespace bngrad::cuda;

int32_t bngradCudaGetClusterSlots(int32_t clusterBlocks,
                                  int32_t residentBlocks) {
  return guard(__func__, [&, call = __func__] {
    if (!checkNumber(call, "cluster_blocks", clusterBlocks,
                     kMostClusterBlocks) ||
        !checkNumber(call, "resident_blocks", residentBlocks,
                     kMostResidentBlocks))
      return 0;
    DeviceScope device;
    return device ? getSlots(*device, clusterBlocks, residentBlocks) : 0;
  });
}
