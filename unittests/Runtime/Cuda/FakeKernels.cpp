//===- FakeKernels.cpp - modules and kernels of the fake driver -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeDriverState.h"

#include "BNGrad/Runtime/Cuda.h"

#include <cstring>
#include <string_view>

using namespace fake;

extern "C" {
/// Records the first word of `image`. PTX that starts with `bad` is rejected.
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
                            unsigned numOptions, CUjit_option *options,
                            void **values) {
  SparedScope spared;
  std::string_view text = static_cast<const char *>(image);
  text = text.substr(0, text.find(' '));
  RETURN_IF_FAILED(recordUnsafe("cuModuleLoadDataEx", std::string(text)));
  char *log = nullptr;
  size_t logSize = 0;
  Lock lock(state().mutex);
  state().optLevel = -1;
  for (unsigned i = 0; i < numOptions; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
      log = static_cast<char *>(values[i]);
    else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      logSize = reinterpret_cast<uintptr_t>(values[i]);
    else if (options[i] == CU_JIT_OPTIMIZATION_LEVEL)
      state().optLevel = int(reinterpret_cast<intptr_t>(values[i]));
  }
  if (text == "bad") {
    std::strncpy(log, "ptxas line 1; error : wrong\nptxas fatal\n\n", logSize);
    return kInvalidPtx;
  }
  *module = state().keep(new CUmod_st{current()->id, std::string(text)});
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  SparedScope spared;
  RETURN_IF_FAILED(recordInContext("cuModuleUnload"));
  return module->contextId == current()->id ? CUDA_SUCCESS : kInvalidHandle;
}

/// A kernel called `missing` does not exist.
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                             const char *name) {
  SparedScope spared;
  RETURN_IF_FAILED(recordUnsafe("cuModuleGetFunction", name));
  if (module->contextId != current()->id)
    return kInvalidHandle;
  if (!std::strcmp(name, "missing"))
    return kNotFound;
  Lock lock(state().mutex);
  *function =
      state().keep(new CUfunc_st{current(), name, state().kernels[name]});
  return CUDA_SUCCESS;
}

/// Only modules that start with `waits` have a symbol.
CUresult cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, CUmodule module,
                              const char *name) {
  SparedScope spared;
  RETURN_IF_FAILED(ask("cuModuleGetGlobal"));
  if (module->contextId != current()->id)
    return kInvalidHandle;
  return module->text == "waits" &&
                 !std::strcmp(name, BNGRAD_CUDA_KERNELS_WAIT_SYMBOL)
             ? CUDA_SUCCESS
             : kNotFound;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                            CUfunction function) {
  SparedScope spared;
  RETURN_IF_FAILED(ask("cuFuncGetAttribute"));
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = function->info.maxThreads;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = function->info.staticShared;
    return CUDA_SUCCESS;
  default:
    return kInvalidValue;
  }
}

/// A carve-out is not recorded: launches have it.
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                            int value) {
  SparedScope spared;
  std::string detail = std::to_string(attribute) + " " + std::to_string(value);
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    RETURN_IF_FAILED(ask("cuFuncSetAttribute 9"));
    Lock lock(state().mutex);
    function->carveout = value;
    return value >= 0 && value <= 100 ? CUDA_SUCCESS : kInvalidValue;
  }
  RETURN_IF_FAILED(record("cuFuncSetAttribute", detail));
  Lock lock(state().mutex);
  if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
    function->allowsLargeClusters = value != 0;
    return CUDA_SUCCESS;
  }
  if (function->info.staticShared + value >
      kSharedOfMultiprocessor - kReservedShared)
    return kInvalidValue;
  function->maxDynamicShared = value;
  return CUDA_SUCCESS;
}

/// Whether the attributes of `function` allow a launch by `config`, and the
/// cluster of it, zeros without one.
static CUresult checkAttributes(CUfunction function,
                                const CUlaunchConfig &config,
                                const std::array<unsigned, 3> &cluster) {
  if (function->context != current())
    return kInvalidHandle;
  int bytes = int(config.sharedMemBytes);
  if (function->info.staticShared + bytes > kDefaultShared &&
      bytes > function->maxDynamicShared)
    return kInvalidValue;
  return cluster[0] * cluster[1] * cluster[2] > 8 &&
                 !function->allowsLargeClusters
             ? CUDA_ERROR_INVALID_CLUSTER_SIZE
             : CUDA_SUCCESS;
}

/// As if all multiprocessors were in one processing cluster.
CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function,
                                      const CUlaunchConfig *config) {
  SparedScope spared;
  const auto &extents = config->attrs[0].value.clusterDim;
  int bytes = int(config->sharedMemBytes);
  RETURN_IF_FAILED(
      recordInContext("cuOccupancyMaxActiveClusters",
                      std::to_string(extents.x) + " " + std::to_string(bytes)));
  if (config->numAttrs != 1 ||
      config->attrs[0].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
    return kInvalidValue;
  RETURN_IF_FAILED(
      checkAttributes(function, *config, {extents.x, extents.y, extents.z}));
  int resident = kSharedOfMultiprocessor / (bytes + kReservedShared);
  *clusters = 132 * resident / int(extents.x * extents.y * extents.z);
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                          void **params, void **extra) {
  SparedScope spared;
  RETURN_IF_FAILED(
      recordInStream("cuLaunchKernelEx", config->hStream, function->name));
  Lock lock(state().mutex);
  std::array<unsigned, 3> cluster = {};
  bool overlaps = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute &attribute = config->attrs[i];
    switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
      const auto &extents = attribute.value.clusterDim;
      cluster = {extents.x, extents.y, extents.z};
      break;
    }
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      overlaps = attribute.value.programmaticStreamSerializationAllowed;
      break;
    default:
      return kInvalidValue;
    }
  }
  RETURN_IF_FAILED(checkAttributes(function, *config, cluster));
  state().launches.push_back(
      {function->name,
       current(),
       {config->gridDimX, config->gridDimY, config->gridDimZ},
       {config->blockDimX, config->blockDimY, config->blockDimZ},
       cluster,
       overlaps,
       config->sharedMemBytes,
       function->carveout,
       config->hStream,
       params,
       extra});
  return CUDA_SUCCESS;
}
} // extern "C"
