//===- FakeDriver.h - a CUDA driver that records calls ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory is that of the host, kernels do nothing, streams have no work. Errors
// of a real driver (a handle of another context, shared memory or a cluster
// that was not requested) are errors here, too.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_UNITTESTS_FAKEDRIVER_H
#define BNGRAD_UNITTESTS_FAKEDRIVER_H

#include "Driver.h"

#include <array>
#include <string>
#include <vector>

namespace fake {

using namespace bngrad::cuda;

constexpr int kNumDevices = 64;

struct DeviceInfo {
  int major = 9;
  int minor = 0;
  bool hasMemoryPools = true;
};
void setDevice(int device, DeviceInfo info);

struct KernelInfo {
  int staticShared = 1024; // in bytes
  int maxThreads = 1024;   // of a block
};
/// Kernels called `name` that are loaded from now on.
void setKernel(const std::string &name, KernelInfo info);
/// Forgets the kernels that were set.
void resetKernels();

/// Creates a context other than the primary one. It reuses the handle of the
/// last destroyed context, if there is one.
CUcontext createContext(int device);
void destroyContext(CUcontext context);
/// Sets the current context of the calling thread.
void setCurrent(CUcontext context);
CUcontext getCurrent();
/// The primary context; null if it is not retained.
CUcontext getPrimary(int device);

/// The calls since the last time, such as `cuModuleGetFunction bn_reduce`,
/// without queries.
std::vector<std::string> takeCalls();
/// The number of all calls, including queries.
int countAllCalls();

struct Launch {
  std::string kernel;
  CUcontext context;
  std::array<unsigned, 3> grid;
  std::array<unsigned, 3> block;
  /// Zeros without clusters.
  std::array<unsigned, 3> cluster;
  /// Whether it may begin before the kernel ahead of it ends.
  bool overlaps;
  unsigned dynamicShared;
  /// That of the kernel, in percent; -1: none.
  int carveout;
  CUstream stream;
  void **params;
  void **extra;
};
std::vector<Launch> takeLaunches();

/// A call of cuEventRecord, after as many launches.
struct EventRecord {
  CUevent event;
  CUstream stream;
  size_t numLaunches;
};
/// Those since the last time; before takeLaunches.
std::vector<EventRecord> takeEventRecords();

/// Forgets memory, as when its context is destroyed, but does not free it.
void forgetMemory(void *memory);
/// Lets the next allocation return `memory`, which is forgotten or freed and as
/// large.
void setNextAddress(void *memory);

/// The level of optimization of the last module, -1 if it had none.
int getOptLevel();

/// Captures `stream` in a new graph, in the mode that forbids most to all
/// threads, until `endCaptures`.
CUgraph beginCapture(CUstream stream = nullptr);
/// Captures `stream` in the graph of another stream.
void joinCapture(CUgraph graph, CUstream stream);
void endCaptures();
/// Whether the calling thread may do what a capture forbids.
bool isCaptureRelaxed();
/// The nodes that allocate or free memory.
int countMemoryNodes(CUgraph graph);
/// Destroys a graph and, in another thread, its user objects, whose destructors
/// must not call the driver.
void destroyGraph(CUgraph graph);

/// Makes `function` return `result` until `succeedAgain`.
void fail(const std::string &function, int result);
void succeedAgain();

} // namespace fake

#endif // BNGRAD_UNITTESTS_FAKEDRIVER_H
