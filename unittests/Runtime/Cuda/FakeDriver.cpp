//===- FakeDriver.cpp - a CUDA driver that records calls ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeDriverState.h"

#include <cstring>
#include <thread>
#include <utility>

using namespace fake;

/// As the driver does from any thread.
static void destroy(CUuserObject object) {
  isInDestructor = true;
  object->destroy(object->object);
  isInDestructor = false;
}

//===----------------------------------------------------------------------===//
// For tests
//===----------------------------------------------------------------------===//

void fake::setDevice(int device, DeviceInfo info) {
  Lock lock(state().mutex);
  state().devices[device] = info;
}

void fake::setKernel(const std::string &name, KernelInfo info) {
  Lock lock(state().mutex);
  state().kernels[name] = info;
}

void fake::resetKernels() {
  Lock lock(state().mutex);
  state().kernels.clear();
}

CUcontext fake::createContext(int device) {
  Lock lock(state().mutex);
  CUcontext context = nullptr;
  if (state().destroyed.empty()) {
    context = state().keep(new CUctx_st);
  } else {
    context = state().destroyed.back();
    state().destroyed.pop_back();
  }
  *context = {device, ++state().lastId, true};
  return context;
}

void fake::destroyContext(CUcontext context) {
  Lock lock(state().mutex);
  context->alive = false;
  state().destroyed.push_back(context);
}

void fake::setCurrent(CUcontext context) {
  contextStack.clear();
  if (context)
    contextStack.push_back(context);
}

CUcontext fake::getCurrent() { return current(); }

CUcontext fake::getPrimary(int device) {
  Lock lock(state().mutex);
  return state().primary[device];
}

std::vector<std::string> fake::takeCalls() {
  Lock lock(state().mutex);
  return std::exchange(state().calls, {});
}

int fake::countAllCalls() {
  Lock lock(state().mutex);
  return state().numCalls;
}

std::vector<fake::Launch> fake::takeLaunches() {
  Lock lock(state().mutex);
  return std::exchange(state().launches, {});
}

std::vector<fake::EventRecord> fake::takeEventRecords() {
  Lock lock(state().mutex);
  return std::exchange(state().eventRecords, {});
}

CUgraph fake::beginCapture(CUstream stream) {
  SparedScope spared;
  Lock lock(state().mutex);
  CUgraph graph = state().keep(new CUgraph_st{++state().lastId});
  return state().captures[stream] = graph;
}

void fake::joinCapture(CUgraph graph, CUstream stream) {
  Lock lock(state().mutex);
  state().captures[stream] = graph;
}

void fake::endCaptures() {
  Lock lock(state().mutex);
  state().captures.clear();
}

bool fake::isCaptureRelaxed() {
  return captureMode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

int fake::countMemoryNodes(CUgraph graph) {
  Lock lock(state().mutex);
  return graph->numMemoryNodes;
}

void fake::destroyGraph(CUgraph graph) {
  SparedScope spared;
  std::thread([graph] {
    for (CUuserObject object : std::exchange(graph->objects, {}))
      destroy(object);
  }).join();
}

int fake::getOptLevel() {
  Lock lock(state().mutex);
  return state().optLevel;
}

void fake::fail(const std::string &function, int result) {
  Lock lock(state().mutex);
  state().failures[function] = CUresult(result);
}

void fake::succeedAgain() {
  Lock lock(state().mutex);
  state().failures.clear();
}

//===----------------------------------------------------------------------===//
// The driver
//===----------------------------------------------------------------------===//

namespace {
struct ErrorText {
  int code;
  const char *name;
  const char *text;
};
} // namespace

static constexpr ErrorText kErrors[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cluster misconfiguration"},
};

static const ErrorText *findError(CUresult error) {
  for (const ErrorText &each : kErrors)
    if (each.code == error)
      return &each;
  return nullptr;
}

extern "C" {
CUresult cuInit(unsigned) {
  SparedScope spared;
  return ask("cuInit");
}

CUresult cuGetErrorName(CUresult error, const char **name) {
  const ErrorText *found = findError(error);
  *name = found ? found->name : nullptr;
  return *name ? CUDA_SUCCESS : kInvalidValue;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  const ErrorText *found = findError(error);
  *text = found ? found->text : nullptr;
  return *text ? CUDA_SUCCESS : kInvalidValue;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  SparedScope spared;
  RETURN_IF_FAILED(ask("cuDeviceGet"));
  if (ordinal < 0 || ordinal >= fake::kNumDevices)
    return kInvalidDevice;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice) {
  SparedScope spared;
  RETURN_IF_FAILED(ask("cuDeviceGetName"));
  std::strncpy(name, "NVIDIA Fake", size);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                              CUdevice device) {
  SparedScope spared;
  RETURN_IF_FAILED(ask("cuDeviceGetAttribute"));
  Lock lock(state().mutex);
  const fake::DeviceInfo &info = state().devices[device];
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = info.major;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = info.minor;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
    *value = 2048;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
    *value = fake::kSharedOfMultiprocessor;
    break;
  case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
    *value = fake::kReservedShared;
    break;
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    *value = info.hasMemoryPools;
    break;
  }
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  SparedScope spared;
  RETURN_IF_FAILED(record("cuDevicePrimaryCtxRetain", std::to_string(device)));
  Lock lock(state().mutex);
  CUcontext &primary = state().primary[device];
  if (!primary)
    primary = state().keep(new CUctx_st{device, ++state().lastId, true});
  *context = primary;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  SparedScope spared;
  RETURN_IF_FAILED(ask("cuCtxGetCurrent"));
  *context = current();
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  SparedScope spared;
  RETURN_IF_FAILED(ask("cuCtxPushCurrent"));
  if (!context || !context->alive)
    return kInvalidContext;
  contextStack.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  SparedScope spared;
  RETURN_IF_FAILED(ask("cuCtxPopCurrent"));
  if (contextStack.empty())
    return kInvalidContext;
  *context = contextStack.back();
  contextStack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
  SparedScope spared;
  RETURN_IF_FAILED(ask("cuCtxGetDevice"));
  if (!current())
    return kInvalidContext;
  *device = current()->device;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
  SparedScope spared;
  RETURN_IF_FAILED(ask("cuCtxGetId"));
  *id = context->id;
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  SparedScope spared;
  RETURN_IF_FAILED(ask("cuStreamIsCapturing"));
  *status = getCapture(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                               : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream,
                                   CUstreamCaptureStatus *status, uint64_t *id,
                                   CUgraph *graph, const void **, size_t *) {
  SparedScope spared;
  RETURN_IF_FAILED(ask("cuStreamGetCaptureInfo"));
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (CUgraph found = getCapture(stream)) {
    *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    *graph = found;
    *id = found->captureId;
  }
  return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  SparedScope spared;
  RETURN_IF_FAILED(ask("cuThreadExchangeStreamCaptureMode"));
  std::swap(*mode, captureMode);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectCreate(CUuserObject *object, void *pointer,
                            void (*destroy)(void *), unsigned count,
                            unsigned flags) {
  SparedScope spared;
  RETURN_IF_FAILED(ask("cuUserObjectCreate"));
  if (count != 1 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return kInvalidValue;
  Lock lock(state().mutex);
  *object = state().keep(new CUuserObject_st{pointer, destroy});
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned count) {
  SparedScope spared;
  RETURN_IF_FAILED(ask("cuUserObjectRelease"));
  if (count != 1)
    return kInvalidValue;
  destroy(object);
  return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object,
                                 unsigned count, unsigned flags) {
  SparedScope spared;
  RETURN_IF_FAILED(ask("cuGraphRetainUserObject"));
  if (count != 1 || flags != CU_GRAPH_USER_OBJECT_MOVE)
    return kInvalidValue;
  Lock lock(state().mutex);
  graph->objects.push_back(object);
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  SparedScope spared;
  RETURN_IF_FAILED(recordInContext("cuStreamCreate", std::to_string(flags)));
  Lock lock(state().mutex);
  *stream = state().keep(new CUstream_st{current()});
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
  SparedScope spared;
  RETURN_IF_FAILED(recordInStream("cuStreamSynchronize", stream));
  return getCapture(stream) || (!state().captures.empty() &&
                                captureMode != CU_STREAM_CAPTURE_MODE_RELAXED)
             ? kCaptureUnsupported
             : CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  SparedScope spared;
  RETURN_IF_FAILED(
      recordInStream("cuStreamWaitEvent", stream, std::to_string(flags)));
  return event ? CUDA_SUCCESS : kInvalidHandle;
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
  SparedScope spared;
  RETURN_IF_FAILED(recordInContext("cuEventCreate", std::to_string(flags)));
  Lock lock(state().mutex);
  *event = state().keep(new CUevent_st{current()});
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  SparedScope spared;
  RETURN_IF_FAILED(recordInStream("cuEventRecord", stream));
  if (!event || event->context != current())
    return kInvalidHandle;
  Lock lock(state().mutex);
  state().eventRecords.push_back({event, stream, state().launches.size()});
  return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event) {
  SparedScope spared;
  RETURN_IF_FAILED(record("cuEventSynchronize"));
  return event ? CUDA_SUCCESS : kInvalidHandle;
}

//===----------------------------------------------------------------------===//
// A profiler
//===----------------------------------------------------------------------===//

static int pushRange(const char *text) {
  SparedScope spared;
  record("push", text);
  return 0;
}

static int popRange() {
  SparedScope spared;
  record("pop");
  return 0;
}

/// The entry point of a profiler's library, called at the first use of NVTX.
int InitializeInjectionNvtx2(const void *(*getExportTable)(uint32_t)) {
  using Slot = void (*)();
  struct Callbacks {
    size_t size;
    int (*getTable)(int module, Slot ***table, unsigned *size);
  };
  const auto *callbacks = static_cast<const Callbacks *>(getExportTable(1));
  Slot **table = nullptr;
  unsigned size = 0;
  for (int module = 1; module <= 6; ++module) {
    if (!callbacks->getTable(module, &table, &size))
      return 0;
    // As a profiler that replaces every function.
    for (unsigned i = 1; i < size; ++i)
      *table[i] = [] {};
  }
  if (!callbacks->getTable(1, &table, &size) || size <= 11)
    return 0;
  *table[9] = reinterpret_cast<Slot>(pushRange);
  *table[11] = reinterpret_cast<Slot>(popRange);
  return 1;
}
} // extern "C"
