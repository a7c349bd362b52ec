//===- DriverCallsTest.cpp - calls of the driver by the C library ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call on a GPU launches kernels in the caller's stream, and neither
// allocates nor waits. The driver is that of the tests of the CUDA runtime,
// which records calls and runs no kernel; results are tested with the emulator.
//
//===----------------------------------------------------------------------===//

#include "../FailingNew.h"
#include "FakeDriver.h"
#include "Gradient.h"

#include "BNGrad/Runtime/Cuda.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>

using namespace bngrad::test;

/// All kinds of results and layouts, in one block of threads and in several.
static std::vector<Spec> makeDriverSpecs() {
  Spec planes;
  planes.shape = {3, 4, 9};
  Spec rows;
  rows.shape = {40, 64, 70};
  rows.order = {0, 2, 1};
  rows.hasMask = true;
  rows.dataType = BNGRAD_DTYPE_F16;
  Spec global;
  global.shape = {40, 3, 3000};
  global.isGlobal = true;
  global.isInvStd = true;
  global.inPlaceOf = GradOutput;
  Spec apart;
  apart.featureDims = {0, 2};
  apart.parameterStride = 2;
  Spec none;
  none.wants[GradInput] = false;
  none.dataType = BNGRAD_DTYPE_BF16;
  return {planes, rows, global, apart, none};
}

namespace {
/// A handle of a new context, in which no kernel is loaded.
class DriverCalls : public testing::Test {
protected:
  void SetUp() override {
    setenv("BNGRAD_CUDA_DRIVER", "libfakecuda.so", 1);
    setenv("BNGRAD_CACHE_DIR", "", 1);
    context = fake::createContext(0);
    fake::setCurrent(context);
    ASSERT_EQ(bngradCreateHandle(&handle, BNGRAD_DEVICE_CUDA, 0),
              BNGRAD_SUCCESS)
        << bngradGetLastError();
  }
  void TearDown() override {
    bngradDestroyHandle(handle);
    fake::setCurrent(nullptr);
    fake::takeLaunches();
    fake::takeCalls();
    unsetenv("BNGRAD_CACHE_DIR");
    unsetenv("BNGRAD_CUDA_DRIVER");
  }

  /// Descriptors of all specs, none of which was called.
  std::vector<std::unique_ptr<Gradient>> createAll() {
    std::vector<std::unique_ptr<Gradient>> gradients;
    for (const Spec &spec : makeDriverSpecs()) {
      gradients.push_back(std::make_unique<Gradient>(spec));
      EXPECT_EQ(gradients.back()->create(handle), BNGRAD_SUCCESS)
          << spec.print() << ": " << bngradGetLastError();
    }
    // Of the creation.
    fake::takeCalls();
    return gradients;
  }

  fake::CUcontext context = nullptr;
  bngradHandle_t handle = nullptr;
};
} // namespace

static bngradStatus_t callIn(void *stream, Gradient &gradient, bool isAsync,
                             const bngradCompletion_t *done = nullptr) {
  auto data = [&](Operand operand) { return gradient.data(operand); };
  void *workspace = gradient.workspace.data();
  size_t size = gradient.workspace.size();
  if (!isAsync)
    return bngradBatchNormBackward(
        gradient.descriptor, workspace, size, data(GradInput), data(GradScale),
        data(GradOffset), data(GradOutput), data(Input), data(Scale),
        data(Mean), data(Statistic), data(Mask), stream);
  return bngradBatchNormBackwardAsync(
      gradient.descriptor, workspace, size, data(GradInput), data(GradScale),
      data(GradOffset), data(GradOutput), data(Input), data(Scale), data(Mean),
      data(Statistic), data(Mask), stream, nullptr, done);
}

/// The functions of the driver that were called since the last time, once each.
static std::vector<std::string> takeFunctions() {
  std::vector<std::string> functions = fake::takeCalls();
  for (std::string &call : functions)
    call.resize(std::min(call.find(' '), call.size()));
  std::sort(functions.begin(), functions.end());
  functions.erase(std::unique(functions.begin(), functions.end()),
                  functions.end());
  return functions;
}

/// Takes the launches, which must be in `stream`; how many there were.
static size_t takeLaunches(void *stream) {
  std::vector<fake::Launch> launches = fake::takeLaunches();
  for (const fake::Launch &launch : launches)
    EXPECT_EQ(launch.stream, stream) << launch.kernel;
  return launches.size();
}

using Functions = std::vector<std::string>;

TEST_F(DriverCalls, LaunchesAlone) {
  void *streams[] = {nullptr, mgpuStreamCreate(), mgpuStreamCreate()};
  ASSERT_NE(streams[1], streams[2]);
  for (const std::unique_ptr<Gradient> &gradient : createAll()) {
    SCOPED_TRACE(gradient->spec.print());
    // The first call loads the kernels.
    size_t numLaunches = 0;
    for (bool isFirst : {true, false})
      for (bool isAsync : {false, true})
        for (void *stream : streams) {
          bngradStatus_t status = BNGRAD_INTERNAL_ERROR;
          bool isLoading = isFirst && !isAsync && !stream;
          FailedNew failed = callWithFailingNew(isLoading ? 0 : 1, true, [&] {
            status = callIn(stream, *gradient, isAsync);
          });
          EXPECT_EQ(status, BNGRAD_SUCCESS) << bngradGetLastError();
          EXPECT_FALSE(failed.hasFailed) << "memory of the host";
          size_t count = takeLaunches(stream);
          Functions functions = takeFunctions();
          if (isLoading) {
            numLaunches = count;
            for (const std::string &function : functions)
              EXPECT_TRUE(function == "cuModuleLoadDataEx" ||
                          function == "cuModuleGetFunction" ||
                          function == "cuFuncSetAttribute" ||
                          function == "cuLaunchKernelEx")
                  << function;
          } else {
            EXPECT_EQ(functions, Functions{"cuLaunchKernelEx"});
          }
          EXPECT_EQ(count, numLaunches);
          EXPECT_GT(count, 0u);
        }
  }
  mgpuStreamDestroy(streams[1]);
  mgpuStreamDestroy(streams[2]);
}

TEST_F(DriverCalls, EventOfEachGradient) {
  void *streams[] = {nullptr, mgpuStreamCreate(), mgpuStreamCreate()};
  void *events[] = {mgpuEventCreate(), mgpuEventCreate(), mgpuEventCreate()};
  for (const std::unique_ptr<Gradient> &gradient : createAll()) {
    SCOPED_TRACE(gradient->spec.print());
    EXPECT_EQ(callIn(nullptr, *gradient, false), BNGRAD_SUCCESS);
    takeLaunches(nullptr);
    fake::takeCalls();
    fake::takeEventRecords();
    // All events; all but that of grad_offset.
    for (int numEvents : {3, 2})
      for (void *stream : streams) {
        bngradCompletion_t done[3] = {};
        std::vector<void *> expected, recorded;
        for (int i = 0; i < numEvents; ++i) {
          done[i].context = events[i];
          if (gradient->spec.wants[i])
            expected.push_back(events[i]);
        }
        EXPECT_EQ(callIn(stream, *gradient, true, done), BNGRAD_SUCCESS)
            << bngradGetLastError();
        EXPECT_EQ(takeFunctions(),
                  (Functions{"cuEventRecord", "cuLaunchKernelEx"}));
        std::vector<fake::EventRecord> records = fake::takeEventRecords();
        size_t count = takeLaunches(stream);
        for (const fake::EventRecord &record : records) {
          recorded.push_back(record.event);
          EXPECT_EQ(record.stream, stream);
          EXPECT_EQ(record.numLaunches, count) << "before the last kernel";
        }
        EXPECT_EQ(recorded, expected);
      }
  }
  for (void *event : events)
    mgpuEventDestroy(event);
  mgpuStreamDestroy(streams[1]);
  mgpuStreamDestroy(streams[2]);
}

// Threads, each with a stream of its own, and one descriptor.
TEST_F(DriverCalls, ThreadsWithStreams) {
  constexpr int kThreads = 4, kCalls = 200;
  std::vector<std::unique_ptr<Gradient>> gradients = createAll();
  Gradient &gradient = *gradients[1];
  ASSERT_EQ(callIn(nullptr, gradient, false), BNGRAD_SUCCESS);
  size_t numLaunches = takeLaunches(nullptr);
  fake::takeCalls();
  std::vector<void *> streams;
  streams.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i)
    streams.push_back(mgpuStreamCreate());
  fake::takeCalls();
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (void *stream : streams)
    threads.emplace_back([&, stream] {
      fake::setCurrent(context);
      for (int i = 0; i < kCalls; ++i)
        EXPECT_EQ(callIn(stream, gradient, i % 2 != 0), BNGRAD_SUCCESS);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(takeFunctions(), Functions{"cuLaunchKernelEx"});
  std::vector<fake::Launch> launches = fake::takeLaunches();
  for (void *stream : streams) {
    EXPECT_EQ(std::count_if(launches.begin(), launches.end(),
                            [&](const auto &l) { return l.stream == stream; }),
              static_cast<long>(kCalls * numLaunches));
    mgpuStreamDestroy(stream);
  }
}

// Each allocation of the host fails once, in a context without kernels.
TEST_F(DriverCalls, OutOfMemory) {
  std::vector<std::unique_ptr<Gradient>> gradients = createAll();
  Gradient &gradient = *gradients[0];
  bngradStatus_t status = BNGRAD_SUCCESS;
  auto run = [&] {
    bngradHandle_t other = nullptr;
    status = bngradCreateHandle(&other, BNGRAD_DEVICE_CUDA, 0);
    if (!status)
      status = callIn(nullptr, gradient, false);
    bngradDestroyHandle(other);
  };
  for (bool forever : {false, true})
    for (long number = 1;; ++number) {
      SCOPED_TRACE(number);
      fake::setCurrent(fake::createContext(0));
      FailedNew failed = callWithFailingNew(number, forever, run);
      if (!failed.hasFailed) {
        EXPECT_EQ(status, BNGRAD_SUCCESS) << bngradGetLastError();
        EXPECT_GT(number, 4);
        break;
      }
      EXPECT_EQ(status, BNGRAD_INTERNAL_ERROR) << bngradGetLastError();
      EXPECT_NE(std::string(bngradGetLastError()).find("memory"),
                std::string::npos)
          << bngradGetLastError();
      callWithFailingNew(0, false, run);
      EXPECT_EQ(status, BNGRAD_SUCCESS) << bngradGetLastError();
    }
}
