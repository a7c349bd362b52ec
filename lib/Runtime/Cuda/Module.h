//===- Module.h - modules and kernels ---------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// A module is loaded into a context by the first launch of one of its kernels
// there. That launch loads all kernels, since later launches may be captured in
// a graph, where nothing can be loaded.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNTIME_CUDA_MODULE_H
#define BNGRAD_RUNTIME_CUDA_MODULE_H

#include "Context.h"
#include "Images.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bngrad::cuda {

/// What the driver knows about a kernel.
struct KernelProperties {
  CUfunction function = nullptr;
  /// Whether it waits for the kernel ahead of it before it accesses global
  /// memory.
  bool waitsFirst = false;
  int staticShared = 0; // in bytes
  int maxThreads = 0;   // of a block
};

/// A kernel in a context.
struct LoadedKernel {
  const Context &context;
  const std::string &name;
  const KernelProperties properties;
  /// The same kernel in another context.
  std::unique_ptr<LoadedKernel> next;

  LoadedKernel(const Context &context, const std::string &name,
               const KernelProperties &properties)
      : context(context), name(name), properties(properties) {}

  /// Lets launches have `bytes` of dynamic shared memory.
  ///
  /// Errors: false and a report.
  bool allowDynamicShared(int bytes);
  /// Lets launches have clusters larger than those that every chip can run.
  ///
  /// Errors: false and a report.
  bool allowLargeClusters();

  /// The least carve-out with which threads, and not shared memory, limit the
  /// blocks of a multiprocessor. In percent of the memory that shared memory
  /// and the first-level cache share, as the driver expects it.
  int getLeastCarveout() const;
  /// Prefers this carve-out. If the kernel is launched with dynamic shared
  /// memory, the largest carve-out is preferred instead.
  void preferCarveout(int percent);

private:
  /// Sets an attribute; false and a report if that fails.
  bool setAttribute(CUfunction_attribute attribute, int value);
  void setCarveout(int percent);

  /// Guards changes of the attributes below.
  std::mutex mutex;
  /// The most dynamic shared memory that is allowed, in bytes.
  std::atomic<int> allowedDynamicShared{0};
  std::atomic<bool> allowsLargeClusters{false};
};

class Module;

/// A kernel by name. Generated code holds a pointer to it as a handle.
class Kernel {
public:
  Kernel(Module &module, std::string_view name) : module(module), name(name) {}

  const char *getName() const { return name.c_str(); }

  /// The kernel in `context`, which is current; null and a report if it cannot
  /// be loaded.
  LoadedKernel *load(const Context &context);

private:
  friend class Module;

  LoadedKernel *find(const Context &context) const;
  /// Looks the kernel up in `handle`, which is the module in `context`.
  /// `loadMutex` is held. Sets `call` to the function that failed.
  CUresult add(const Context &context, CUmodule handle, const char *&call);

  Module &module;
  std::string name;
  /// Owned by `owner`; read without a lock.
  std::atomic<LoadedKernel *> first{nullptr};
  std::unique_ptr<LoadedKernel> owner;
};

/// The images of a module, and the modules made of them.
class Module {
public:
  explicit Module(std::vector<Image> images) : images(std::move(images)) {}
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;
  /// Unloads the module from contexts that certainly still exist; destroying a
  /// context unloads it from the others. Errors are not reported: generated
  /// code calls this at the end of a process, when the driver and the error
  /// handler may be gone, and after a fault of the device every call fails with
  /// its error.
  ~Module();

  Kernel *getKernel(std::string_view name);

private:
  friend class Kernel;

  /// The module in `context`, which is current; null and a report if it cannot
  /// be loaded. `loadMutex` is held.
  CUmodule load(const Context &context);
  /// Loads the requested kernels that are not in `context` yet, and lets all of
  /// them prefer one carve-out: kernels that differ in it cannot overlap.
  /// `loadMutex` is held. A kernel that cannot be loaded is left to its own
  /// launch, which reports the error.
  void loadKernels(const Context &context, CUmodule handle);

  const std::vector<Image> images;
  std::shared_mutex kernelsMutex;
  std::map<std::string, Kernel, std::less<>> kernels;
  /// Guards `loaded` and the lists of all kernels.
  std::mutex loadMutex;
  /// Null if loading failed.
  std::unordered_map<const Context *, CUmodule> loaded;
};

} // namespace bngrad::cuda

#endif // BNGRAD_RUNTIME_CUDA_MODULE_H
