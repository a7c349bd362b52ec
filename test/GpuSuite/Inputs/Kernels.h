//===- Kernels.h - attributes of kernels ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What attributes of a kernel must allow before a launch, by the rules of the
// hardware. The emulator, which takes the place of the runtime, has no such
// attributes. A kernel that prefers no carve-out of shared memory has the
// smallest one, which a driver may choose.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TEST_GPUSUITE_KERNELS_H
#define BNGRAD_TEST_GPUSUITE_KERNELS_H

#include "../../../lib/Runtime/Cuda/Driver.h"

#include <array>

namespace kernels {

using namespace bngrad::cuda;

// A multiprocessor of 9.0, and what a block may have without an attribute.
inline constexpr int kThreads = 2048, kSharedBytes = 228 << 10;
inline constexpr int kReservedBytes = 1 << 10, kDefaultSharedBytes = 48 << 10;
inline constexpr unsigned kPortableCluster = 8;

/// A kernel, whose address is a CUfunction.
struct Function {
  void *handle; // of the emulator
  int staticShared, maxThreads;
  int maxDynamicShared = 0; // if more than kDefaultSharedBytes is needed
  bool allowsLargeClusters = false;
};

inline Function &getFunction(CUfunction function) {
  return *reinterpret_cast<Function *>(function);
}

/// The blocks of the cluster in `config`, in each direction.
inline std::array<unsigned, 3> getCluster(const CUlaunchConfig &config) {
  for (unsigned i = 0; i < config.numAttrs; ++i)
    if (config.attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const auto &extents = config.attrs[i].value.clusterDim;
      return {extents.x, extents.y, extents.z};
    }
  return {1, 1, 1};
}

/// Whether the attributes of `function` allow a launch by `config`.
inline CUresult checkAttributes(const Function &function,
                                const CUlaunchConfig &config) {
  auto [x, y, z] = getCluster(config);
  if (x * y * z > kPortableCluster && !function.allowsLargeClusters)
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  int bytes = int(config.sharedMemBytes);
  return function.staticShared + bytes > kDefaultSharedBytes &&
                 bytes > function.maxDynamicShared
             ? CUresult(1)
             : CUDA_SUCCESS;
}

} // namespace kernels

#endif // BNGRAD_TEST_GPUSUITE_KERNELS_H
