//===- FakeDriver.h - a CUDA driver that records calls ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory is that of the host, kernels do nothing, streams have no work. What a
// real driver would refuse (a handle of another context, shared memory or a
// cluster that was not asked for) is an error here too.
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

/// A context that is not the primary one; it gets the handle of the context
/// that was destroyed last, if there is one.
CUcontext createContext(int device);
void destroyContext(CUcontext context);
/// Of the calling thread.
void setCurrent(CUcontext context);
CUcontext getCurrent();
/// Null if nobody retains it.
CUcontext getPrimary(int device);

/// The calls since the last time, such as `cuModuleGetFunction bn_reduce`,
/// without those that only ask something.
std::vector<std::string> takeCalls();
/// All calls ever, with those that ask.
int countAllCalls();

struct Launch {
  std::string kernel;
  CUcontext context;
  std::array<unsigned, 3> grid;
  std::array<unsigned, 3> block;
  /// Zeros where there are no clusters.
  std::array<unsigned, 3> cluster;
  unsigned dynamicShared;
  CUstream stream;
  void **params;
  void **extra;
};
std::vector<Launch> takeLaunches();

/// The level of optimization of the last module, -1 if it had none.
int getOptLevel();

/// Makes `function` return `result` until `succeedAgain`.
void fail(const std::string &function, int result);
void succeedAgain();

} // namespace fake

#endif // BNGRAD_UNITTESTS_FAKEDRIVER_H
