//===- OutOfMemoryTest.cpp - host memory that runs out ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaTest.h"

#include <functional>

namespace {
class OutOfMemoryTest : public CudaTest {
protected:
  /// Runs `run` once for each of its allocations, which fails, and once more
  /// when there is memory again. `begin` comes before both.
  void expectStatus(const std::function<void()> &begin,
                    const std::function<void()> &run);
};
} // namespace

static long count(const Calls &calls, const std::string &function) {
  return std::count_if(calls.begin(), calls.end(), [&](const auto &call) {
    return call.substr(0, call.find(' ')) == function;
  });
}

/// Every object that was created is destroyed, except for those that are kept.
static void expectBalance(const Calls &calls) {
  EXPECT_EQ(count(calls, "cuModuleLoadDataEx"), count(calls, "cuModuleUnload"));
  EXPECT_EQ(count(calls, "cuMemAllocFromPoolAsync"),
            count(calls, "cuMemFreeAsync"));
  // These are kept, one of each in a context.
  EXPECT_LE(count(calls, "cuMemPoolCreate"), 1);
  EXPECT_LE(count(calls, "cuStreamCreate"), 1);
  EXPECT_LE(count(calls, "cuEventCreate"), 1);
  EXPECT_LE(count(calls, "cuDevicePrimaryCtxRetain"), 1);
}

void OutOfMemoryTest::expectStatus(const std::function<void()> &begin,
                                   const std::function<void()> &run) {
  // Tables that are there for all contexts.
  begin();
  run();
  begin();
  CUcontext current = fake::getCurrent();
  long numKept = callWithFailingNew(0, false, run).numLive;
  ASSERT_EQ(bngradCudaTakeStatus(), 0);
  for (bool forever : {false, true}) {
    for (long number = 1;; ++number) {
      SCOPED_TRACE("allocation " + std::to_string(number));
      begin();
      current = fake::getCurrent();
      fake::takeCalls();
      FailedNew failed = callWithFailingNew(number, forever, run);
      EXPECT_EQ(fake::getCurrent(), current);
      std::string errors = takeErrors();
      EXPECT_EQ(bngradCudaTakeStatus(), failed.hasFailed ? -2 : 0);
      if (!failed.hasFailed) {
        EXPECT_EQ(errors, "");
        EXPECT_GT(number, 1) << "nothing was allocated";
        break;
      }
      std::string expected = ": out of host memory\n";
      EXPECT_EQ(errors.substr(errors.rfind(':', errors.size())), expected);
      EXPECT_EQ(errors.substr(0, 15), "bngrad: error: ");
      EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1);

      FailedNew again = callWithFailingNew(0, false, run);
      EXPECT_EQ(bngradCudaTakeStatus(), 0);
      EXPECT_EQ(takeErrors(), "");
      EXPECT_EQ(fake::getCurrent(), current);
      EXPECT_LE(failed.numLive + again.numLive, numKept);
      expectBalance(fake::takeCalls());
    }
  }
  fake::takeLaunches();
}

// As generated code calls it: an object that could not be created is null, and
// every other one is released, whether a call failed or not.
static void callEverything() {
  char host[64] = {};
  int64_t descriptor[] = {reinterpret_cast<int64_t>(host),
                          reinterpret_cast<int64_t>(host), 0, 16, 1};
  static char text[] = "module";
  bngradCudaImage_t images[] = {{"sm_80", BNGRAD_CUDA_IMAGE_PTX, 3, 6, text},
                                {"sm_90", BNGRAD_CUDA_IMAGE_PTX, 3, 6, text}};
  void *modules[] = {mgpuModuleLoad(text, 6), mgpuModuleLoadJIT(text, 3),
                     bngradCudaModuleLoad(images, 2)};
  mgpuSetDefaultDevice(1);
  bngradCudaGetCapability();
  bngradCudaGetClusterSlots(16, 1);
  void *stream = mgpuStreamCreate();
  void *event = mgpuEventCreate();
  void *device = mgpuMemAlloc(sizeof(host), stream, 0);
  mgpuMemHostRegisterMemRef(1, descriptor, 4);
  mgpuMemcpy(device, host, sizeof(host), stream);
  mgpuMemset16(device, 0, 2, stream);
  mgpuMemset32(device, 0, 2, stream);
  for (void *module : modules) {
    void *kernel = mgpuModuleGetFunction(
        module, "a_kernel_whose_name_is_too_long_for_a_short_string");
    launch(kernel, 100000, stream);
    mgpuLaunchClusterKernel(kernel, 16, 1, 1, 16, 1, 1, 1, 1, 1, 0, stream,
                            nullptr, nullptr);
  }
  mgpuEventRecord(event, stream);
  mgpuStreamWaitEvent(stream, event);
  mgpuEventSynchronize(event);
  mgpuStreamSynchronize(stream);
  mgpuMemHostUnregisterMemRef(1, descriptor, 4);
  mgpuMemFree(device, stream);
  mgpuEventDestroy(event);
  mgpuStreamDestroy(stream);
  for (void *module : modules)
    mgpuModuleUnload(module);
}

TEST_F(OutOfMemoryTest, EveryCallInANewContext) {
  expectStatus([] { fake::setCurrent(fake::createContext(kDevice)); },
               callEverything);
}

TEST_F(OutOfMemoryTest, MemoryOfGraphs) {
  expectStatus([] { fake::setCurrent(fake::createContext(kDevice)); },
               [] {
                 fake::CUgraph graph = fake::beginCapture();
                 mgpuMemFree(mgpuMemAlloc(64, nullptr, 0), nullptr);
                 fake::endCaptures();
                 fake::destroyGraph(graph);
                 mgpuMemFree(mgpuMemAlloc(64, nullptr, 0), nullptr);
               });
}

TEST_F(OutOfMemoryTest, PrimaryContextIsRetainedOnceAndNotLeftCurrent) {
  int device = 2;
  expectStatus(
      [&] {
        fake::setCurrent(nullptr);
        mgpuSetDefaultDevice(device++);
      },
      [] {
        void *stream = mgpuStreamCreate();
        mgpuStreamDestroy(stream);
      });
  mgpuSetDefaultDevice(0);
}

// Whoever has no memory left must be able to free some.
TEST_F(OutOfMemoryTest, ReleasesAndErrorsAllocateNothing) {
  void *module = mgpuModuleLoad(const_cast<char *>("module"), 6);
  void *kernel = mgpuModuleGetFunction(module, "kernel");
  void *stream = mgpuStreamCreate();
  void *event = mgpuEventCreate();
  void *device = mgpuMemAlloc(64, stream, 0);
  char host[64];
  int64_t descriptor[] = {reinterpret_cast<int64_t>(host),
                          reinterpret_cast<int64_t>(host),
                          0,
                          4,
                          2,
                          1,
                          2,
                          1,
                          8};
  mgpuMemHostRegisterMemRef(3, descriptor, 4);
  launch(kernel);
  fake::CUgraph graph = fake::beginCapture(static_cast<fake::CUstream>(stream));
  void *ofGraph = mgpuMemAlloc(64, stream, 0);
  fake::endCaptures();
  FailedNew released = callWithFailingNew(1, true, [&] {
    mgpuMemHostUnregisterMemRef(3, descriptor, 4);
    mgpuMemFree(device, stream);
    mgpuMemFree(ofGraph, stream);
    fake::destroyGraph(graph);
    mgpuEventDestroy(event);
    mgpuStreamDestroy(stream);
    mgpuModuleUnload(module);
  });
  EXPECT_FALSE(released.hasFailed);
  EXPECT_EQ(bngradCudaTakeStatus(), 0);

  fake::fail("cuStreamSynchronize", 1);
  FailedNew reported =
      callWithFailingNew(1, true, [] { mgpuStreamSynchronize(nullptr); });
  EXPECT_FALSE(reported.hasFailed);
  expectError(1, "cuStreamSynchronize on device 1 (NVIDIA Fake): "
                 "CUDA_ERROR_INVALID_VALUE (1): invalid argument");
}

TEST_F(OutOfMemoryTest, LongErrorsAreCut) {
  std::string name(10000, 'x');
  void *kernel = mgpuModuleGetFunction(loadModule(), name.c_str());
  launch(kernel, -1);
  EXPECT_EQ(bngradCudaTakeStatus(), -1);
  std::string error = takeErrors();
  EXPECT_EQ(error.substr(0, 30), "bngrad: error: launch of 'xxxx");
  EXPECT_EQ(error.substr(error.size() - 5), "x...\n");
  EXPECT_EQ(error.size(), 8192u);
}
