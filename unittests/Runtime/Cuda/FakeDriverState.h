//===- FakeDriverState.h - the state of the fake CUDA driver ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_UNITTESTS_FAKEDRIVERSTATE_H
#define BNGRAD_UNITTESTS_FAKEDRIVERSTATE_H

#include "FakeDriver.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

extern "C" __attribute__((weak)) void spareAllocations(bool isSpared);

namespace bngrad::cuda {
struct CUctx_st {
  int device;
  unsigned long long id;
  bool alive;
};
struct CUmod_st {
  unsigned long long contextId;
  std::string text; // the first word of its image
};
struct CUfunc_st {
  CUcontext context;
  std::string name;
  fake::KernelInfo info;
  int maxDynamicShared = 0;
  bool allowsLargeClusters = false;
  int carveout = -1;
};
struct CUstream_st {
  CUcontext context;
};
struct CUevent_st {
  CUcontext context;
};
struct CUmemPoolHandle_st {
  uint64_t releaseThreshold;
};
struct CUuserObject_st {
  void *object;
  void (*destroy)(void *);
};
struct CUgraph_st {
  uint64_t captureId;
  int numMemoryNodes = 0;
  std::vector<CUuserObject> objects = {};
};
} // namespace bngrad::cuda

namespace fake {

/// Where tests make allocations fail, the driver's own do not.
struct SparedScope {
  SparedScope() {
    if (spareAllocations)
      spareAllocations(true);
  }
  ~SparedScope() {
    if (spareAllocations)
      spareAllocations(false);
  }
};

constexpr CUresult kInvalidValue = CUresult(1);
constexpr CUresult kInvalidDevice = CUresult(101);
constexpr CUresult kInvalidContext = CUresult(201);
constexpr CUresult kInvalidPtx = CUresult(218);
constexpr CUresult kInvalidHandle = CUresult(400);
constexpr CUresult kNotFound = CUresult(500);
constexpr CUresult kNotPermitted = CUresult(800);
constexpr CUresult kCaptureUnsupported = CUresult(900);
// Shared memory, in bytes, of a multiprocessor, of the driver in each block,
// and of a block without an attribute for more.
constexpr int kSharedOfMultiprocessor = 228 << 10;
constexpr int kReservedShared = 1 << 10;
constexpr int kDefaultShared = 48 << 10;

struct State {
  std::recursive_mutex mutex;
  DeviceInfo devices[kNumDevices];
  std::map<std::string, KernelInfo> kernels;
  CUcontext primary[kNumDevices] = {};
  std::vector<CUcontext> destroyed;
  unsigned long long lastId = 0;
  std::vector<std::string> calls;
  int numCalls = 0;
  std::vector<Launch> launches;
  std::vector<EventRecord> eventRecords;
  std::map<std::string, CUresult> failures;
  int optLevel = -1;
  /// The graphs of captured streams.
  std::map<CUstream, CUgraph> captures;
  /// Memory that cuMemFreeAsync and cuMemFree accept.
  std::set<CUdeviceptr> pooled;
  std::set<CUdeviceptr> plain;
  CUdeviceptr nextAddress = 0;
  /// Memory that is never freed, reachable for leak checkers.
  std::vector<void *> kept;

  template <typename T> T *keep(T *object) {
    kept.push_back(object);
    return object;
  }
};

inline State &state() {
  static State &state = *new State;
  return state;
}
using Lock = std::lock_guard<std::recursive_mutex>;

/// The current contexts of a thread. It has no destructor: modules are unloaded
/// when the variables of the main thread are already destroyed.
class ContextStack {
public:
  bool empty() const { return size == 0; }
  CUcontext back() const { return contexts[size - 1]; }
  void push_back(CUcontext context) {
    if (size == kMost)
      std::abort();
    contexts[size++] = context;
  }
  void pop_back() { --size; }
  void clear() { size = 0; }

private:
  static constexpr int kMost = 16;
  CUcontext contexts[kMost] = {};
  int size = 0;
};

inline thread_local ContextStack contextStack;

inline CUcontext current() {
  return contextStack.empty() ? nullptr : contextStack.back();
}

inline thread_local CUstreamCaptureMode captureMode =
    CU_STREAM_CAPTURE_MODE_GLOBAL;
inline thread_local bool isInDestructor = false;

/// Counts a query; returns its result.
inline CUresult ask(const char *function) {
  Lock lock(state().mutex);
  ++state().numCalls;
  if (isInDestructor)
    return kNotPermitted;
  auto found = state().failures.find(function);
  return found == state().failures.end() ? CUDA_SUCCESS : found->second;
}

/// Records a call; returns its result.
inline CUresult record(const char *function, const std::string &detail = "") {
  Lock lock(state().mutex);
  state().calls.push_back(function + (detail.empty() ? "" : " " + detail));
  return ask(function);
}

/// As record, for a call that needs a context.
inline CUresult recordInContext(const char *function,
                                const std::string &detail = "") {
  CUresult result = record(function, detail);
  if (result == CUDA_SUCCESS && (!current() || !current()->alive))
    return kInvalidContext;
  return result;
}

/// As recordInContext, for a call that must not be made during a capture,
/// except by threads that relax their mode.
inline CUresult recordUnsafe(const char *function,
                             const std::string &detail = "") {
  CUresult result = recordInContext(function, detail);
  Lock lock(state().mutex);
  if (result == CUDA_SUCCESS && !state().captures.empty() &&
      captureMode != CU_STREAM_CAPTURE_MODE_RELAXED)
    return kCaptureUnsupported;
  return result;
}

/// As record, for a call in `stream`.
inline CUresult recordInStream(const char *function, CUstream stream,
                               const std::string &detail = "") {
  CUresult result = recordInContext(function, detail);
  if (result == CUDA_SUCCESS && stream && stream != getStreamPerThread() &&
      stream->context != current())
    return kInvalidHandle;
  return result;
}

/// The graph in which `stream` is captured, or null.
inline CUgraph getCapture(CUstream stream) {
  Lock lock(state().mutex);
  auto found = state().captures.find(stream);
  return found == state().captures.end() ? nullptr : found->second;
}

/// Notes that a call in `stream` allocates or frees memory.
inline void noteMemoryNode(CUstream stream) {
  Lock lock(state().mutex);
  if (CUgraph graph = getCapture(stream))
    ++graph->numMemoryNodes;
}

} // namespace fake

#define RETURN_IF_FAILED(call)                                                 \
  if (CUresult result = call; result != CUDA_SUCCESS)                          \
    return result;

#endif // BNGRAD_UNITTESTS_FAKEDRIVERSTATE_H
