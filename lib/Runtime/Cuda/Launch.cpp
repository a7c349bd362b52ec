//===- Launch.cpp - launches of kernels -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Abi.h"
#include "Module.h"
#include "Nvtx.h"

#include <climits>

namespace bngrad::cuda {

// CUDA C++ Programming Guide, "Thread Block Clusters": the largest size that
// every chip with clusters can run.
static constexpr uint64_t kMaxPortableCluster = 8;

namespace {
/// The extents of a grid, a block or a cluster.
struct Extents {
  const char *what;
  intptr_t x, y, z;

  /// Whether they fit the driver's types; reports if not. None is below `min`.
  bool check(const char *kernel, intptr_t min) const {
    for (intptr_t value : {x, y, z}) {
      if (value >= min && uint64_t(value) <= UINT_MAX)
        continue;
      report(kNoDriverCode,
             Line("launch of '", kernel, "': expected sizes of the ", what,
                  " in [", min, ", ", UINT_MAX, "], got ", value));
      return false;
    }
    return true;
  }
};
} // namespace

/// Whether a kernel that waits first may be launched in `stream` while the one
/// ahead of it runs. In a graph, such launches have edges with data, which some
/// code that inspects graphs does not expect.
static bool canOverlap(const Driver &driver, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_NONE;
}

/// Launches `function`, a Kernel, in clusters if `cluster` is not null.
static void launch(void *function, const Extents *cluster, const Extents &grid,
                   const Extents &block, int32_t dynamicShared, void *stream,
                   void **params, void **extra) {
  if (hasError())
    return;
  if (!function) {
    report(kNoDriverCode, Line("launch: expected a kernel, got null"));
    return;
  }
  Kernel &kernel = *static_cast<Kernel *>(function);
  const char *name = kernel.getName();
  if (!grid.check(name, 0) || !block.check(name, 1) ||
      (cluster && !cluster->check(name, 1)))
    return;
  if (dynamicShared < 0) {
    report(kNoDriverCode,
           Line("launch of '", name,
                "': expected dynamic_shared_bytes of at least 0, got ",
                dynamicShared));
    return;
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0)
    return;

  Range range(name);
  DeviceScope device;
  if (!device)
    return;
  LoadedKernel *loaded = kernel.load(*device);
  if (!loaded || !loaded->allowDynamicShared(dynamicShared))
    return;

  CUlaunchConfig config = {};
  config.gridDimX = grid.x;
  config.gridDimY = grid.y;
  config.gridDimZ = grid.z;
  config.blockDimX = block.x;
  config.blockDimY = block.y;
  config.blockDimZ = block.z;
  config.sharedMemBytes = dynamicShared;
  config.hStream = static_cast<CUstream>(stream);

  CUlaunchAttribute attributes[2] = {};
  config.attrs = attributes;
  if (cluster) {
    uint64_t size = 1;
    for (intptr_t extent : {cluster->x, cluster->y, cluster->z})
      if (size <= kMaxPortableCluster)
        size *= extent;
    if (size > kMaxPortableCluster && !loaded->allowLargeClusters())
      return;
    CUlaunchAttribute &attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = cluster->x;
    attribute.value.clusterDim.y = cluster->y;
    attribute.value.clusterDim.z = cluster->z;
  }
  if (loaded->properties.waitsFirst &&
      canOverlap(device->driver, config.hStream)) {
    CUlaunchAttribute &attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
  }
  device->check(device->driver.cuLaunchKernelEx(
                    &config, loaded->properties.function, params, extra),
                "cuLaunchKernelEx", name);
}

} // namespace bngrad::cuda

using namespace bngrad::cuda;

void mgpuLaunchKernel(void *function, intptr_t gridX, intptr_t gridY,
                      intptr_t gridZ, intptr_t blockX, intptr_t blockY,
                      intptr_t blockZ, int32_t dynamicShared, void *stream,
                      void **params, void **extra, uint64_t) {
  guard(__func__, [&] {
    launch(function, nullptr, {"grid", gridX, gridY, gridZ},
           {"block", blockX, blockY, blockZ}, dynamicShared, stream, params,
           extra);
  });
}

void mgpuLaunchClusterKernel(void *function, intptr_t clusterX,
                             intptr_t clusterY, intptr_t clusterZ,
                             intptr_t gridX, intptr_t gridY, intptr_t gridZ,
                             intptr_t blockX, intptr_t blockY, intptr_t blockZ,
                             int32_t dynamicShared, void *stream, void **params,
                             void **extra) {
  Extents cluster = {"cluster", clusterX, clusterY, clusterZ};
  guard(__func__, [&] {
    launch(function, &cluster, {"grid", gridX, gridY, gridZ},
           {"block", blockX, blockY, blockZ}, dynamicShared, stream, params,
           extra);
  });
}
