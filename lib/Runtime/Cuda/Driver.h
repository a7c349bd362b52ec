//===- Driver.h - the CUDA driver, found at run time ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the part of the CUDA driver API that this library calls, with the
// driver's own names, so that the build needs no CUDA header or library.
// Source: CUDA Driver API Reference, version 13.0.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNTIME_CUDA_DRIVER_H
#define BNGRAD_RUNTIME_CUDA_DRIVER_H

#include <cstddef>
#include <cstdint>

namespace bngrad::cuda {

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUmemoryPool = struct CUmemPoolHandle_st *;
using CUgraph = struct CUgraph_st *;
using CUuserObject = struct CUuserObject_st *;

/// CU_STREAM_PER_THREAD: the default stream of the calling thread.
inline CUstream getStreamPerThread() { return reinterpret_cast<CUstream>(2); }

enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_CLUSTER_SIZE = 912,
};

enum CUdevice_attribute : int {
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK = 111,
  CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
};

enum CUfunction_attribute : int {
  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
  CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
};

/// Each option's value is passed as a `void *`.
enum CUjit_option : int {
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  CU_JIT_OPTIMIZATION_LEVEL = 7,
};

enum CUpointer_attribute : int {
  CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2, // unsigned
};

enum : unsigned {
  CU_MEMORYTYPE_HOST = 1,
  CU_MEMORYTYPE_DEVICE = 2,
};

enum CUmemPool_attribute : int {
  CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4, // uint64_t
};

enum CUstreamCaptureStatus : int {
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
};

enum CUstreamCaptureMode : int {
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
};

enum CUlaunchAttributeID : int {
  CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
};

enum : unsigned {
  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_MEM_ATTACH_GLOBAL = 1,
  CU_MEMHOSTREGISTER_PORTABLE = 1,
  CU_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1,
  CU_GRAPH_USER_OBJECT_MOVE = 1,
};

enum : int {
  CU_MEM_ALLOCATION_TYPE_PINNED = 1,
  CU_MEM_LOCATION_TYPE_DEVICE = 1,
};

// The id says which member is valid; ours are a subset.
// NOLINTNEXTLINE(bugprone-tagged-union-member-count)
struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[4];
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } clusterDim;
    int programmaticStreamSerializationAllowed;
  } value;
};
static_assert(sizeof(CUlaunchAttribute) == 72 &&
              offsetof(CUlaunchAttribute, value) == 8);

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
};
static_assert(sizeof(CUlaunchConfig) == 56 &&
              offsetof(CUlaunchConfig, hStream) == 32);

struct CUmemPoolProps {
  int allocType;
  int handleTypes;
  struct {
    int type;
    int id;
  } location;
  void *win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};
static_assert(sizeof(CUmemPoolProps) == 88 &&
              offsetof(CUmemPoolProps, usage) == 32);

/// Calls `X(name, symbol, parameter types...)` for each function; the suffix of
/// a symbol is the version whose signature this is. All are in CUDA 11.8.
#define BNGRAD_CUDA_DRIVER_FUNCTIONS(X)                                        \
  X(cuInit, "cuInit", unsigned)                                                \
  X(cuGetErrorName, "cuGetErrorName", CUresult, const char **)                 \
  X(cuGetErrorString, "cuGetErrorString", CUresult, const char **)             \
  X(cuDeviceGet, "cuDeviceGet", CUdevice *, int)                               \
  X(cuDeviceGetName, "cuDeviceGetName", char *, int, CUdevice)                 \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", int *, CUdevice_attribute,   \
    CUdevice)                                                                  \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", CUcontext *,         \
    CUdevice)                                                                  \
  X(cuCtxGetCurrent, "cuCtxGetCurrent", CUcontext *)                           \
  X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", CUcontext)                        \
  X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", CUcontext *)                        \
  X(cuCtxGetDevice, "cuCtxGetDevice", CUdevice *)                              \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx", CUmodule *, const void *,        \
    unsigned, CUjit_option *, void **)                                         \
  X(cuModuleUnload, "cuModuleUnload", CUmodule)                                \
  X(cuModuleGetFunction, "cuModuleGetFunction", CUfunction *, CUmodule,        \
    const char *)                                                              \
  X(cuModuleGetGlobal, "cuModuleGetGlobal_v2", CUdeviceptr *, size_t *,        \
    CUmodule, const char *)                                                    \
  X(cuFuncGetAttribute, "cuFuncGetAttribute", int *, CUfunction_attribute,     \
    CUfunction)                                                                \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", CUfunction,                      \
    CUfunction_attribute, int)                                                 \
  X(cuLaunchKernelEx, "cuLaunchKernelEx", const CUlaunchConfig *, CUfunction,  \
    void **, void **)                                                          \
  X(cuStreamCreate, "cuStreamCreate", CUstream *, unsigned)                    \
  X(cuStreamIsCapturing, "cuStreamIsCapturing", CUstream,                      \
    CUstreamCaptureStatus *)                                                   \
  X(cuStreamGetCaptureInfo, "cuStreamGetCaptureInfo_v2", CUstream,             \
    CUstreamCaptureStatus *, uint64_t *, CUgraph *, const void **, size_t *)   \
  X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode",    \
    CUstreamCaptureMode *)                                                     \
  X(cuStreamSynchronize, "cuStreamSynchronize", CUstream)                      \
  X(cuStreamWaitEvent, "cuStreamWaitEvent", CUstream, CUevent, unsigned)       \
  X(cuEventCreate, "cuEventCreate", CUevent *, unsigned)                       \
  X(cuEventRecord, "cuEventRecord", CUevent, CUstream)                         \
  X(cuEventSynchronize, "cuEventSynchronize", CUevent)                         \
  X(cuUserObjectCreate, "cuUserObjectCreate", CUuserObject *, void *,          \
    void (*)(void *), unsigned, unsigned)                                      \
  X(cuUserObjectRelease, "cuUserObjectRelease", CUuserObject, unsigned)        \
  X(cuGraphRetainUserObject, "cuGraphRetainUserObject", CUgraph, CUuserObject, \
    unsigned, unsigned)                                                        \
  X(cuMemPoolCreate, "cuMemPoolCreate", CUmemoryPool *,                        \
    const CUmemPoolProps *)                                                    \
  X(cuMemPoolDestroy, "cuMemPoolDestroy", CUmemoryPool)                        \
  X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", CUmemoryPool,              \
    CUmemPool_attribute, void *)                                               \
  X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", CUdeviceptr *, size_t, \
    CUmemoryPool, CUstream)                                                    \
  X(cuMemFreeAsync, "cuMemFreeAsync", CUdeviceptr, CUstream)                   \
  X(cuMemAlloc, "cuMemAlloc_v2", CUdeviceptr *, size_t)                        \
  X(cuMemAllocManaged, "cuMemAllocManaged", CUdeviceptr *, size_t, unsigned)   \
  X(cuMemFree, "cuMemFree_v2", CUdeviceptr)                                    \
  X(cuMemcpyAsync, "cuMemcpyAsync", CUdeviceptr, CUdeviceptr, size_t,          \
    CUstream)                                                                  \
  X(cuPointerGetAttribute, "cuPointerGetAttribute", void *,                    \
    CUpointer_attribute, CUdeviceptr)                                          \
  X(cuMemsetD16Async, "cuMemsetD16Async", CUdeviceptr, unsigned short, size_t, \
    CUstream)                                                                  \
  X(cuMemsetD32Async, "cuMemsetD32Async", CUdeviceptr, unsigned, size_t,       \
    CUstream)                                                                  \
  X(cuMemHostRegister, "cuMemHostRegister_v2", void *, size_t, unsigned)       \
  X(cuMemHostUnregister, "cuMemHostUnregister", void *)

/// Optional functions; null if the driver lacks them. cuCtxGetId came with CUDA
/// 12.0.
#define BNGRAD_CUDA_OPTIONAL_DRIVER_FUNCTIONS(X)                               \
  X(cuCtxGetId, "cuCtxGetId", CUcontext, unsigned long long *)                 \
  X(cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters", int *,       \
    CUfunction, const CUlaunchConfig *)

/// The functions of a driver.
struct Driver {
#define BNGRAD_MEMBER(name, symbol, ...)                                       \
  CUresult (*name)(__VA_ARGS__) = nullptr;
  BNGRAD_CUDA_DRIVER_FUNCTIONS(BNGRAD_MEMBER)
  BNGRAD_CUDA_OPTIONAL_DRIVER_FUNCTIONS(BNGRAD_MEMBER)
#undef BNGRAD_MEMBER
};

/// The driver of this process: libcuda.so.1, or the library that the variable
/// BNGRAD_CUDA_DRIVER of the environment names. It is loaded and initialized by
/// the first call for which that succeeds.
///
/// Errors: null, and the reason is reported.
const Driver *getDriver();

} // namespace bngrad::cuda

#endif // BNGRAD_RUNTIME_CUDA_DRIVER_H
