//===- Context.h - the device a call works on -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNTIME_CUDA_CONTEXT_H
#define BNGRAD_RUNTIME_CUDA_CONTEXT_H

#include "Errors.h"

#include <atomic>

namespace bngrad::cuda {

/// A compute capability, such as 9.0.
struct Capability {
  int major = 0;
  int minor = 0;
};

/// What the blocks of a multiprocessor share.
struct Multiprocessor {
  /// On every chip, sizes of shared memory are multiples of this, in bytes.
  /// Source: "Shared Memory" of each compute capability in the CUDA occupancy
  /// calculator.
  static constexpr int kSharedUnit = 256;

  int threads = 0;
  /// Shared memory of all blocks, in bytes.
  int sharedBytes = 0;
  /// What the driver uses of it for each block, in bytes.
  int reservedBytes = 0;
};

/// A CUDA context with properties of its device. Lives as long as the process,
/// so that tables can use its address as a key.
struct Context {
  const Driver &driver;
  CUcontext handle;
  /// Distinguishes it from later contexts that reuse the handle.
  unsigned long long id;
  CUdevice device = 0;
  char deviceName[256] = "";
  Capability capability;
  Multiprocessor multiprocessor;
  bool hasMemoryPools = false;
  /// Destroyed graphs have left memory to free (GraphMemory.h).
  mutable std::atomic<bool> hasUnusedGraphMemory{false};

  Context(const Driver &driver, CUcontext handle, unsigned long long id)
      : driver(driver), handle(handle), id(id) {}

  /// A description such as `device 0 (NVIDIA H200)`.
  Line describeDevice() const;

  /// Whether `result` of the driver's function `call` is success; reports it if
  /// not. `kernel`, if not null, names the kernel of the call.
  bool check(CUresult result, const char *call,
             const char *kernel = nullptr) const;
};

/// The scope in which one call uses the device: the context that is current in
/// the calling thread, if it is one of the device that the thread has set, or
/// has set none. Otherwise, the primary context of that device or of the
/// thread's default device, which is then current until the end of the scope.
///
/// Errors: converts to false if the thread has an error, unless the call is one
///         that `releases`, or if there is no usable device, which is then
///         reported.
class DeviceScope {
public:
  explicit DeviceScope(bool releases = false);

  explicit operator bool() const { return context != nullptr; }
  const Context &operator*() const { return *context; }
  const Context *operator->() const { return context; }

private:
  /// A context that is current for as long as this lives. As a member, it is
  /// also popped if the constructor of the scope throws.
  class Pushed {
  public:
    Pushed() = default;
    Pushed(const Pushed &) = delete;
    Pushed &operator=(const Pushed &) = delete;
    ~Pushed();
    /// False and a report if it fails.
    bool push(const Driver &driver, CUcontext handle);

  private:
    const Driver *driver = nullptr;
  };

  Pushed pushed;
  const Context *context = nullptr;
};

/// Within this scope, the calling thread may load code, allocate memory and
/// wait for a stream while other streams are captured in any mode.
class RelaxedScope {
public:
  explicit RelaxedScope(const Driver &driver) : driver(driver) { exchange(); }
  RelaxedScope(const RelaxedScope &) = delete;
  RelaxedScope &operator=(const RelaxedScope &) = delete;
  ~RelaxedScope() { exchange(); }

private:
  void exchange() { driver.cuThreadExchangeStreamCaptureMode(&mode); }

  const Driver &driver;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// Whether `context` certainly exists: it is current, or a primary context that
/// this library retains.
bool isAlive(const Context &context);

} // namespace bngrad::cuda

#endif // BNGRAD_RUNTIME_CUDA_CONTEXT_H
