//===- CudaTest.h - common code of tests of the CUDA runtime ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_UNITTESTS_CUDATEST_H
#define BNGRAD_UNITTESTS_CUDATEST_H

#include "../FailingNew.h"
#include "BNGrad/Runtime/Cuda.h"
#include "FakeDriver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using fake::CUcontext;
using Calls = std::vector<std::string>;

/// Modules that the current test has loaded; never destroyed, as tests may
/// exit.
inline std::vector<void *> &loadedModules() {
  static auto &modules = *new std::vector<void *>;
  return modules;
}

/// A module for any device, with every kernel.
inline void *loadModule(const char *text = "module") {
  loadedModules().push_back(mgpuModuleLoad(const_cast<char *>(text), 0));
  return loadedModules().back();
}

inline void *loadPtx(const char *text, int32_t optLevel) {
  loadedModules().push_back(
      mgpuModuleLoadJIT(const_cast<char *>(text), optLevel));
  return loadedModules().back();
}

inline void unloadModule(void *module) {
  auto found =
      std::find(loadedModules().begin(), loadedModules().end(), module);
  if (found != loadedModules().end())
    loadedModules().erase(found);
  mgpuModuleUnload(module);
}

inline void launch(void *kernel, int32_t dynamicShared = 0,
                   void *stream = nullptr) {
  mgpuLaunchKernel(kernel, 4, 2, 1, 128, 1, 1, dynamicShared, stream, nullptr,
                   nullptr, 0);
}

/// Calls `run(i)` in 8 threads that share the current context, and waits.
template <typename Function> void runInThreads(Function run) {
  CUcontext context = fake::getCurrent();
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([=, &run] {
      fake::setCurrent(context);
      run(i);
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// A test begins with a new context of a device of 9.0, so that caches of
/// earlier tests do not apply.
class CudaTest : public ::testing::Test {
protected:
  static constexpr int kDevice = 1;

  void SetUp() override {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    setenv("BNGRAD_CUDA_DRIVER", "libfakecuda.so", 1);
    bngradCudaSetErrorHandler(
        [](const char *message, void *user) {
          // There is memory for the test where there is none for the library.
          spareAllocations(true);
          auto *test = static_cast<CudaTest *>(user);
          {
            std::lock_guard<std::mutex> lock(test->mutex);
            test->errors += message;
            test->errors += '\n';
          }
          spareAllocations(false);
        },
        this);
    fake::setDevice(kDevice, {});
    fake::resetKernels();
    // The kernel that the runtime asks about has no shared memory.
    fake::setKernel("bngrad_cluster_slots", {0, 1024});
    fake::setCurrent(fake::createContext(kDevice));
    fake::takeCalls();
    fake::takeLaunches();
  }

  void TearDown() override {
    EXPECT_EQ(takeErrors(), "");
    EXPECT_EQ(bngradCudaTakeStatus(), 0);
    fake::succeedAgain();
    while (!loadedModules().empty())
      unloadModule(loadedModules().back());
    bngradCudaSetErrorHandler(nullptr, nullptr);
    fake::setCurrent(nullptr);
  }

  /// The error lines since the last call.
  std::string takeErrors() {
    std::lock_guard<std::mutex> lock(mutex);
    return std::exchange(errors, "");
  }

  /// Takes the status and the one error.
  void expectError(int32_t status, const std::string &message) {
    EXPECT_EQ(takeErrors(), "bngrad: error: " + message + "\n");
    EXPECT_EQ(bngradCudaTakeStatus(), status);
  }

private:
  std::mutex mutex;
  std::string errors;
};

#endif // BNGRAD_UNITTESTS_CUDATEST_H
