//===- driver.cpp - a CUDA driver over the emulator, with faults ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of libcuda.so.1 that the runtime and the GPU suite call.
// Kernels run on libBNGradCudaEmulator.so, the library in FAKE_EMULATOR. Work
// is done when a call returns, also while a stream is captured, so that replays
// of a graph do nothing. Each replay takes one millisecond.
//
// Faults.h describes FAKE_FAULTS.
//
// FAKE_NAME is the name of the device, which has the multiprocessors, clocks
// and cache of an H100 (SXM), and memory of FAKE_BUS_BITS (5120). A stream that
// is held stays so until it is waited for. FAKE_VERSION is that of
// cuDriverGetVersion (12040). Binaries are refused with FAKE_BINARY_ERROR
// (200). PTX that is newer than the version is refused, too. With -DOLD_DRIVER,
// the library has no cuLaunchKernelEx, as those before 11.8, and with
// -DNO_OCCUPANCY no cuOccupancyMaxActiveClusters.
//
// Kernels.h has the rules for attributes of kernels.
//
//===----------------------------------------------------------------------===//

#include "../../../ptx-emulator/include/PtxEmulator/PtxEmulator.h"
#include "BNGrad/Runtime/Cuda.h"
#include "Faults.h"
#include "Kernels.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

using namespace bngrad::cuda;
using namespace faults;
using namespace kernels;

namespace {
struct Error {
  int code;
  const char *name, *text;
};
} // namespace

constexpr Error kErrors[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cluster misconfiguration"},
};

// Attributes of a device that only the suite asks for
// (bench/gpu/cuda_driver.py).
enum {
  kClockRate = 13,
  kMultiprocessors = 16,
  kMemoryClockRate = 36,
  kBusWidth = 37,
  kCacheBytes = 38
};

/// Whether a host function runs in a stream.
static std::atomic<bool> isHeld{false};

static const Error *findError(CUresult code) {
  for (const Error &error : kErrors)
    if (error.code == code)
      return &error;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// The emulator
//===----------------------------------------------------------------------===//

namespace {
struct Emulator {
#define MEMBER(name) decltype (&::name)(name);
#define FOR_EACH(X)                                                            \
  X(mgpuModuleLoadJIT)                                                         \
  X(mgpuModuleUnload)                                                          \
  X(mgpuModuleGetFunction)                                                     \
  X(mgpuLaunchKernel)                                                          \
  X(mgpuLaunchClusterKernel)                                                   \
  X(mgpuMemAlloc)                                                              \
  X(mgpuMemFree)                                                               \
  X(mgpuMemcpy)                                                                \
  X(mgpuMemset16)                                                              \
  X(mgpuMemset32)                                                              \
  X(bngradCudaTakeStatus)                                                      \
  X(bngradCudaGetClusterSlots)                                                 \
  X(ptxEmulatorGetKernel)                                                      \
  X(ptxEmulatorSetCarveout)
  FOR_EACH(MEMBER)
#undef MEMBER

  Emulator() {
    const char *path = getOption("FAKE_EMULATOR", "libBNGradCudaEmulator.so");
    // The runtime of this process exports the same names.
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!library) {
      std::fprintf(stderr, "fake driver: %s\n", dlerror());
      std::abort();
    }
#define LOOK_UP(name)                                                          \
  name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name));
    FOR_EACH(LOOK_UP)
#undef LOOK_UP
  }
};
} // namespace

static const Emulator &emulator() {
  static Emulator loaded;
  return loaded;
}

/// An error that the emulator reports in a kernel stays, as on a device.
static CUresult finish(CUresult code = CUresult(1)) {
  if (emulator().bngradCudaTakeStatus() == 0)
    return CUDA_SUCCESS;
  if (code == 719)
    stickyError = code;
  return code;
}

/// Handles need only be other than null.
template <typename Handle> static CUresult makeHandle(Handle *handle) {
  *handle = reinterpret_cast<Handle>(new int(0));
  return CUDA_SUCCESS;
}

static CUcontext theContext() {
  static int context;
  return reinterpret_cast<CUcontext>(&context);
}

static bool isOnDevice(CUdeviceptr address) { return address >> 48 != 0; }

/// The stack of this thread. Never destroyed.
static std::vector<CUcontext> &contexts() {
  static thread_local auto &stack = *new std::vector<CUcontext>;
  return stack;
}

/// Whether the PTX `text` is of a version that a driver of `version` knows.
/// Source: PTX ISA, "Release Notes".
static bool knowsPtx(const char *text, int version) {
  const char *found = std::strstr(text, ".version");
  if (!found)
    return false;
  char *dot = nullptr;
  int major = int(std::strtol(found + std::strlen(".version"), &dot, 10));
  int minor = toInt(dot + 1);
  // Those of CUDA 12.0 to 12.9.
  constexpr int kNewest[] = {80, 81, 82, 83, 84, 85, 85, 86, 87, 88};
  int newest = 78;
  if (version >= 13000)
    newest = 90;
  else if (version >= 12000)
    newest = kNewest[std::min(version % 1000 / 10, 9)];
  return major * 10 + minor <= newest;
}

extern "C" {
CUresult cuInit(unsigned) { return fault("cuInit"); }

CUresult cuDriverGetVersion(int *version) {
  *version = toInt(getOption("FAKE_VERSION", "12040"));
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult code, const char **name) {
  const Error *error = findError(code);
  *name = error ? error->name : nullptr;
  return error ? CUDA_SUCCESS : CUresult(1);
}

CUresult cuGetErrorString(CUresult code, const char **text) {
  const Error *error = findError(code);
  *text = error ? error->text : nullptr;
  return error ? CUDA_SUCCESS : CUresult(1);
}

CUresult cuDeviceGet(CUdevice *device, int) {
  RETURN_IF_FAULTY("cuDeviceGet");
  *device = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice) {
  std::snprintf(name, size, "%s", getOption("FAKE_NAME", "emulated device"));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice) {
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = 9;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = 0;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
    *value = kThreads;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
    *value = kSharedBytes;
    break;
  case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
    *value = kReservedBytes;
    break;
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    *value = 1;
    break;
  case kClockRate:
    *value = 1980000;
    break;
  case kMultiprocessors:
    *value = 132;
    break;
  case kMemoryClockRate:
    *value = 2619000;
    break;
  case kBusWidth:
    *value = toInt(getOption("FAKE_BUS_BITS", "5120"));
    break;
  case kCacheBytes:
    *value = 1 << 10; // so small that few copies of the data exceed it
    break;
  default:
    *value = 4096;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice) {
  *bytes = size_t(80) << 30;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  RETURN_IF_FAULTY("cuDevicePrimaryCtxRetain");
  *context = theContext();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = contexts().empty() ? nullptr : contexts().back();
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  contexts().push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  *context = contexts().back();
  contexts().pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
  *device = 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext, unsigned long long *id) {
  *id = 1;
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned,
                            CUjit_option *, void **) {
  RETURN_IF_FAULTY("cuModuleLoadDataEx");
  const char *text = static_cast<const char *>(image);
  if (!std::memcmp(text, "\177ELF", 4))
    return CUresult(toInt(getOption("FAKE_BINARY_ERROR", "200")));
  int version = 0;
  cuDriverGetVersion(&version);
  if (!knowsPtx(text, version))
    return CUresult(222);
  *module = static_cast<CUmodule>(
      emulator().mgpuModuleLoadJIT(const_cast<void *>(image), 3));
  return finish();
}

CUresult cuModuleUnload(CUmodule module) {
  RETURN_IF_FAULTY("cuModuleUnload");
  emulator().mgpuModuleUnload(module);
  return finish();
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                             const char *name) {
  RETURN_IF_FAULTY("cuModuleGetFunction");
  void *handle = emulator().mgpuModuleGetFunction(module, name);
  ptxEmulatorKernel_t kernel = {};
  emulator().ptxEmulatorGetKernel(handle, &kernel);
  emulator().ptxEmulatorSetCarveout(handle, 0);
  *function = reinterpret_cast<CUfunction>(new Function{
      handle, int(kernel.static_shared_bytes), int(kernel.max_threads)});
  return finish(CUresult(500));
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, CUmodule, const char *) {
  return fault("cuModuleGetGlobal");
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                            CUfunction function) {
  const Function &kernel = getFunction(function);
  if (attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
    *value = kernel.staticShared;
  else if (attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
    *value = kernel.maxThreads;
  else if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    *value = std::max(kernel.maxDynamicShared,
                      kDefaultSharedBytes - kernel.staticShared);
  else
    return CUresult(1);
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                            int value) {
  RETURN_IF_FAULTY("cuFuncSetAttribute");
  Function &kernel = getFunction(function);
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
    emulator().ptxEmulatorSetCarveout(kernel.handle, unsigned(value));
  else if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
    kernel.allowsLargeClusters = value != 0;
  else if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
           kernel.staticShared + value <= kSharedBytes - kReservedBytes)
    kernel.maxDynamicShared = value;
  else
    return CUresult(1);
  return CUDA_SUCCESS;
}

#ifndef OLD_DRIVER
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                          void **params, void **extra) {
  bool corrupts = false;
  CUresult faulty = fault("cuLaunchKernelEx", &corrupts);
  if (faulty != CUDA_SUCCESS || corrupts)
    return faulty;
  const Function &kernel = getFunction(function);
  if (CUresult refused = checkAttributes(kernel, *config);
      refused != CUDA_SUCCESS)
    return refused;
  // By default a cluster of one block, for which the number of parameters is
  // unknown. Kernels run one after the other, so that none overlaps.
  auto [x, y, z] = getCluster(*config);
  emulator().mgpuLaunchClusterKernel(
      kernel.handle, x, y, z, config->gridDimX, config->gridDimY,
      config->gridDimZ, config->blockDimX, config->blockDimY, config->blockDimZ,
      int(config->sharedMemBytes), nullptr, params, extra);
  return finish(CUresult(719));
}
#endif

#ifndef NO_OCCUPANCY
CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function,
                                      const CUlaunchConfig *config) {
  RETURN_IF_FAULTY("cuOccupancyMaxActiveClusters");
  const Function &kernel = getFunction(function);
  if (CUresult refused = checkAttributes(kernel, *config);
      refused != CUDA_SUCCESS)
    return refused;
  auto [x, y, z] = getCluster(*config);
  int bytes = kernel.staticShared + int(config->sharedMemBytes);
  *clusters = emulator().bngradCudaGetClusterSlots(
      int(x * y * z), std::min(kSharedBytes / (bytes + kReservedBytes),
                               kThreads / int(config->blockDimX)));
  return finish();
}
#endif

CUresult cuStreamCreate(CUstream *stream, unsigned) {
  RETURN_IF_FAULTY("cuStreamCreate");
  return makeHandle(stream);
}

namespace {
/// An object whose destructor is called with the graph's.
struct UserObject {
  void *object;
  void (*destroy)(void *);
};
/// A graph, or an executable of one, which then has its objects.
struct Graph {
  uint64_t id;
  std::vector<UserObject> objects;
};
} // namespace

/// The graphs of captured streams.
static std::map<CUstream, Graph *> &captures() {
  static auto &captures = *new std::map<CUstream, Graph *>;
  return captures;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  std::lock_guard<std::mutex> lock(mutex);
  *status = captures().count(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                     : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream,
                                   CUstreamCaptureStatus *status, uint64_t *id,
                                   CUgraph *graph, const void **, size_t *) {
  std::lock_guard<std::mutex> lock(mutex);
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (auto found = captures().find(stream); found != captures().end()) {
    *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    *id = found->second->id;
    *graph = reinterpret_cast<CUgraph>(found->second);
  }
  return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *) {
  return CUDA_SUCCESS;
}

CUresult cuUserObjectCreate(CUuserObject *object, void *pointer,
                            void (*destroy)(void *), unsigned, unsigned) {
  *object = reinterpret_cast<CUuserObject>(new UserObject{pointer, destroy});
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned) {
  auto *released = reinterpret_cast<UserObject *>(object);
  released->destroy(released->object);
  delete released;
  return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned,
                                 unsigned) {
  auto *moved = reinterpret_cast<UserObject *>(object);
  reinterpret_cast<Graph *>(graph)->objects.push_back(*moved);
  delete moved;
  return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream, void (*function)(void *), void *data) {
  RETURN_IF_FAULTY("cuLaunchHostFunc");
  function(data);
  isHeld = true;
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream) {
  isHeld = false;
  return fault("cuStreamSynchronize");
}

CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) {
  return fault("cuStreamWaitEvent");
}

CUresult cuEventCreate(CUevent *event, unsigned) {
  RETURN_IF_FAULTY("cuEventCreate");
  return makeHandle(event);
}

CUresult cuEventRecord(CUevent, CUstream) { return fault("cuEventRecord"); }

CUresult cuEventQuery(CUevent) {
  bool corrupts = false;
  CUresult faulty = fault("cuEventQuery", &corrupts);
  if (faulty != CUDA_SUCCESS || corrupts)
    return faulty;
  return isHeld ? CUresult(600) : CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent) { return fault("cuEventSynchronize"); }

CUresult cuEventElapsedTime(float *milliseconds, CUevent, CUevent) {
  RETURN_IF_FAULTY("cuEventElapsedTime");
  *milliseconds = 1;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *) {
  RETURN_IF_FAULTY("cuMemPoolCreate");
  return makeHandle(pool);
}

CUresult cuMemPoolDestroy(CUmemoryPool) { return CUDA_SUCCESS; }

CUresult cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute, void *) {
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t size) {
  RETURN_IF_FAULTY("cuMemAlloc");
  *pointer =
      reinterpret_cast<CUdeviceptr>(emulator().mgpuMemAlloc(size, nullptr, 0));
  return finish(CUresult(2));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size,
                                 CUmemoryPool, CUstream) {
  return cuMemAlloc_v2(pointer, size);
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t size, unsigned) {
  *pointer =
      reinterpret_cast<CUdeviceptr>(emulator().mgpuMemAlloc(size, nullptr, 1));
  return finish(CUresult(2));
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  RETURN_IF_FAULTY("cuMemFree");
  emulator().mgpuMemFree(reinterpret_cast<void *>(pointer), nullptr);
  return finish();
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream) {
  return cuMemFree_v2(pointer);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size,
                       CUstream) {
  bool corrupts = false;
  CUresult faulty = fault("cuMemcpyAsync", &corrupts);
  if (faulty != CUDA_SUCCESS)
    return faulty;
  emulator().mgpuMemcpy(reinterpret_cast<void *>(to),
                        reinterpret_cast<void *>(from), size, nullptr);
  if (corrupts && !isOnDevice(to) && size > 0)
    reinterpret_cast<unsigned char *>(to)[size / 2] ^= 0x40;
  return finish();
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute,
                               CUdeviceptr address) {
  if (!isOnDevice(address))
    return CUresult(1);
  *static_cast<unsigned *>(value) = CU_MEMORYTYPE_DEVICE;
  return CUDA_SUCCESS;
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count,
                          CUstream) {
  emulator().mgpuMemset16(reinterpret_cast<void *>(to), value, count, nullptr);
  return finish();
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count,
                          CUstream) {
  emulator().mgpuMemset32(reinterpret_cast<void *>(to), value, count, nullptr);
  return finish();
}

CUresult cuMemHostRegister_v2(void *, size_t, unsigned) { return CUDA_SUCCESS; }

CUresult cuMemHostUnregister(void *) { return CUDA_SUCCESS; }

CUresult cuStreamBeginCapture_v2(CUstream stream, int) {
  RETURN_IF_FAULTY("cuStreamBeginCapture");
  std::lock_guard<std::mutex> lock(mutex);
  static uint64_t id = 0;
  captures()[stream] = new Graph{++id, {}};
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, void **graph) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    *graph = captures()[stream];
    captures().erase(stream);
  }
  return fault("cuStreamEndCapture");
}

/// Graphs have no nodes.
CUresult cuGraphGetNodes(void *, void **nodes, size_t *count) {
  bool corrupts = false;
  if (CUresult faulty = fault("cuGraphGetNodes", &corrupts);
      faulty != CUDA_SUCCESS)
    return faulty;
  *count = corrupts;
  return nodes && corrupts ? makeHandle(nodes) : CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(void *, int *type) {
  *type = 10;
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(void **exec, void *graph,
                                     unsigned long long) {
  RETURN_IF_FAULTY("cuGraphInstantiate");
  *exec = new Graph(std::move(*static_cast<Graph *>(graph)));
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(void *, CUstream) { return fault("cuGraphLaunch"); }

CUresult cuGraphDestroy(void *graph) {
  auto *destroyed = static_cast<Graph *>(graph);
  for (UserObject object : destroyed->objects)
    object.destroy(object.object);
  delete destroyed;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(void *exec) { return cuGraphDestroy(exec); }
} // extern "C"
