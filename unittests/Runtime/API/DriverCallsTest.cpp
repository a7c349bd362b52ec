//===- DriverCallsTest.cpp - calls of the driver by the C library ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call on a GPU launches kernels in the caller's stream, on the device of its
// handle, and neither allocates nor waits. The driver is that of the tests of
// the CUDA runtime, which records calls and runs no kernel; results are tested
// with the emulator.
//
//===----------------------------------------------------------------------===//

#include "../FailingNew.h"
#include "FakeDriver.h"
#include "Forward.h"
#include "Gradient.h"

#include "BNGrad/Runtime/Cuda.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>

using namespace bngrad::test;

/// All kinds of results and layouts, in one block of threads and in several;
/// for ready kernels, those that they cover.
static std::vector<Spec> makeDriverSpecs(bool isReady) {
  Spec planes;
  planes.shape = {3, 4, 9};
  // Its vectors need no other kernel.
  planes.isInvStd = isReady;
  Spec rows;
  rows.shape = {40, 64, 70};
  rows.order = {0, 2, 1};
  rows.hasMask = !isReady;
  rows.dataType = BNGRAD_DTYPE_F16;
  Spec global;
  global.shape = {40, 3, 3000};
  global.isGlobal = true;
  global.isInvStd = true;
  global.inPlaceOf = GradOutput;
  Spec apart;
  if (!isReady)
    apart.featureDims = {0, 2};
  apart.parameterStride = 2;
  Spec none;
  none.wants[GradInput] = false;
  none.dataType = BNGRAD_DTYPE_BF16;
  std::vector<Spec> specs = {planes, rows, global, apart, none};
  // Sizes for which no other test has compiled kernels in this process.
  for (Spec &spec : specs)
    spec.shape[0] += isReady ? 1 : 0;
  return specs;
}

static std::vector<ForwardSpec> makeDriverForwardSpecs(bool isReady) {
  ForwardSpec planes;
  planes.layout = {{3, 4, 9}, {1}, {}};
  ForwardSpec rows;
  rows.layout = {{40, 64, 70}, {1}, {0, 2, 1}};
  rows.dataType = rows.outputType = BNGRAD_DTYPE_F16;
  rows.isInPlace = true;
  ForwardSpec statistics;
  statistics.wants[0] = statistics.hasRunning = false;
  for (int i = 1; i < 4; ++i)
    rows.wants[i] = statistics.wants[i] = true;
  ForwardSpec inference;
  inference.isInference = true;
  std::vector<ForwardSpec> specs = {planes, rows, statistics, inference};
  for (ForwardSpec &spec : specs)
    spec.layout.shape[0] += isReady ? 1 : 0;
  return specs;
}

/// A gradient.
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

namespace {
/// A gradient or a forward pass.
struct Op {
  std::unique_ptr<Gradient> gradient;
  std::unique_ptr<Forward> forward;
  Memory workspace;
  /// The results that are wanted, in the order of the function in C.
  std::vector<bool> wants;

  explicit Op(const Spec &spec)
      : gradient(std::make_unique<Gradient>(spec)),
        wants(spec.wants, spec.wants + 3) {}
  explicit Op(const ForwardSpec &spec)
      : forward(std::make_unique<Forward>(spec)) {
    for (int i = 0; i < (spec.isInference ? 1 : int(kNumWritten)); ++i)
      wants.push_back(forward->arrays[i].isPresent);
  }

  std::string print() const {
    return gradient ? gradient->spec.print() : forward->spec.print();
  }
  bngradStatus_t create(bngradHandle_t handle) {
    if (gradient)
      return gradient->create(handle);
    bngradStatus_t status = forward->create(handle);
    workspace = Memory(status ? 0 : forward->workspaceSize());
    return status;
  }
  /// Whether the kernels are ready ones.
  bool isReady() const {
    char text[1024] = "";
    if (gradient)
      bngradDescribeBatchNormBackward(gradient->descriptor, text, sizeof(text));
    else if (forward->training)
      bngradDescribeBatchNormTraining(forward->training, text, sizeof(text));
    else
      bngradDescribeBatchNormInference(forward->inference, text, sizeof(text));
    return std::string(text).find("kernel=ready") != std::string::npos;
  }
  bngradStatus_t call(void *stream, bool isAsync,
                      const bngradCompletion_t *done = nullptr) {
    if (gradient)
      return callIn(stream, *gradient, isAsync, done);
    return isAsync ? forward->callAsync(workspace.data(), stream, nullptr, done)
                   : forward->call(workspace.data(), stream);
  }
};

/// A handle of a new context, in which no kernel is loaded.
class CudaDriver : public testing::Test {
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

  fake::CUcontext context = nullptr;
  bngradHandle_t handle = nullptr;
};

/// With compiled kernels or, if the parameter is true, with ready ones.
// NOLINTNEXTLINE(misc-multiple-inheritance): as googletest documents it.
class DriverCalls : public CudaDriver,
                    public testing::WithParamInterface<bool> {
protected:
  void SetUp() override {
    if (GetParam())
      setenv("BNGRAD_COMPILER", "", 1);
    CudaDriver::SetUp();
  }
  void TearDown() override {
    CudaDriver::TearDown();
    if (GetParam())
      unsetenv("BNGRAD_COMPILER");
  }

  /// Descriptors of all specs, none of which was called.
  std::vector<std::unique_ptr<Op>> createAll() {
    std::vector<std::unique_ptr<Op>> ops;
    for (const Spec &spec : makeDriverSpecs(GetParam()))
      ops.push_back(std::make_unique<Op>(spec));
    for (const ForwardSpec &spec : makeDriverForwardSpecs(GetParam()))
      ops.push_back(std::make_unique<Op>(spec));
    for (const std::unique_ptr<Op> &op : ops)
      EXPECT_EQ(op->create(handle), BNGRAD_SUCCESS)
          << op->print() << ": " << bngradGetLastError();
    for (const std::unique_ptr<Op> &op : ops)
      EXPECT_EQ(op->isReady(), GetParam()) << op->print();
    // Of the creation.
    fake::takeCalls();
    return ops;
  }
};
} // namespace

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

static std::vector<bool> getKindsOfKernels() {
#ifdef BNGRAD_HAS_CUDA_KERNELS
  return {false, true};
#else
  return {false};
#endif
}

INSTANTIATE_TEST_SUITE_P(Kernels, DriverCalls,
                         testing::ValuesIn(getKindsOfKernels()),
                         [](const auto &info) {
                           return info.param ? "Ready" : "Compiled";
                         });

TEST_P(DriverCalls, LaunchesAlone) {
  void *streams[] = {nullptr, mgpuStreamCreate(), mgpuStreamCreate()};
  ASSERT_NE(streams[1], streams[2]);
  for (const std::unique_ptr<Op> &op : createAll()) {
    SCOPED_TRACE(op->print());
    // The first call loads the kernels.
    size_t numLaunches = 0;
    for (bool isFirst : {true, false})
      for (bool isAsync : {false, true})
        for (void *stream : streams) {
          bngradStatus_t status = BNGRAD_INTERNAL_ERROR;
          bool isLoading = isFirst && !isAsync && !stream;
          FailedNew failed = callWithFailingNew(isLoading ? 0 : 1, true, [&] {
            status = op->call(stream, isAsync);
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

TEST_P(DriverCalls, EventOfEachResult) {
  void *streams[] = {nullptr, mgpuStreamCreate(), mgpuStreamCreate()};
  void *events[kNumWritten];
  for (void *&event : events)
    event = mgpuEventCreate();
  for (const std::unique_ptr<Op> &op : createAll()) {
    SCOPED_TRACE(op->print());
    EXPECT_EQ(op->call(nullptr, false), BNGRAD_SUCCESS);
    takeLaunches(nullptr);
    fake::takeCalls();
    fake::takeEventRecords();
    // All events; all but the last, of two or more.
    size_t numResults = op->wants.size();
    for (size_t numEvents : {numResults, std::max<size_t>(numResults - 1, 1)})
      for (void *stream : streams) {
        bngradCompletion_t done[kNumWritten] = {};
        std::vector<void *> expected, recorded;
        for (size_t i = 0; i < numEvents; ++i) {
          done[i].context = events[i];
          if (op->wants[i])
            expected.push_back(events[i]);
        }
        EXPECT_EQ(op->call(stream, true, done), BNGRAD_SUCCESS)
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
        std::sort(recorded.begin(), recorded.end());
        std::sort(expected.begin(), expected.end());
        EXPECT_EQ(recorded, expected);
      }
  }
  for (void *event : events)
    mgpuEventDestroy(event);
  mgpuStreamDestroy(streams[1]);
  mgpuStreamDestroy(streams[2]);
}

// Neither half copies or waits.
TEST_P(DriverCalls, Halves) {
  void *stream = mgpuStreamCreate();
  for (bngradDtype_t type : {BNGRAD_DTYPE_F32, BNGRAD_DTYPE_F16}) {
    Spec spec;
    spec.shape = {GetParam() ? 5 : 4, 3, 9};
    spec.dataType = type;
    spec.wants[GradScale] = spec.wants[GradOffset] = false;
    Gradient gradient(spec);
    ASSERT_EQ(gradient.createHalves(handle), BNGRAD_SUCCESS)
        << bngradGetLastError();
    auto data = [&](Operand operand) { return gradient.data(operand); };
    void *workspace = gradient.workspace.data();
    size_t size = gradient.workspace.size();
    int64_t count = 0;
    for (bool isFirst : {true, false}) {
      fake::takeCalls();
      EXPECT_EQ(bngradBatchNormBackwardReduce(gradient.reduce, workspace, size,
                                              gradient.sums.memory.data(),
                                              data(GradOutput), data(Input),
                                              data(Mean), nullptr, stream),
                BNGRAD_SUCCESS)
          << bngradGetLastError();
      EXPECT_EQ(bngradBatchNormBackwardElemt(
                    gradient.elemt, workspace, size, data(GradInput),
                    data(GradOutput), data(Input), data(Scale), data(Mean),
                    data(Statistic), gradient.sums.memory.data(), &count,
                    nullptr, stream),
                BNGRAD_SUCCESS)
          << bngradGetLastError();
      EXPECT_GT(takeLaunches(stream), 1u);
      if (!isFirst)
        EXPECT_EQ(takeFunctions(), Functions{"cuLaunchKernelEx"});
    }
  }
  mgpuStreamDestroy(stream);
}

// Threads, each with a stream of its own, and one descriptor.
TEST_P(DriverCalls, ThreadsWithStreams) {
  constexpr int kThreads = 4, kCalls = 200;
  std::vector<std::unique_ptr<Op>> ops = createAll();
  Op &op = *ops[1];
  ASSERT_EQ(op.call(nullptr, false), BNGRAD_SUCCESS);
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
        EXPECT_EQ(op.call(stream, i % 2 != 0), BNGRAD_SUCCESS);
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

/// Modules that were loaded since the last time.
static size_t takeModules() {
  std::vector<std::string> calls = fake::takeCalls();
  return static_cast<size_t>(
      std::count_if(calls.begin(), calls.end(), [](const std::string &call) {
        return call.find("cuModuleLoadDataEx") == 0;
      }));
}

// While the stream, or another one, is captured, the first call can load its
// kernels. No node of the graph allocates or frees memory.
TEST_P(DriverCalls, CapturedStreams) {
  for (const std::unique_ptr<Op> &op : createAll())
    for (bool isOther : {false, true}) {
      SCOPED_TRACE(op->print());
      fake::setCurrent(fake::createContext(0));
      void *stream = mgpuStreamCreate();
      void *captured = isOther ? mgpuStreamCreate() : stream;
      fake::takeCalls();
      for (bool isFirst : {true, false}) {
        fake::CUgraph graph =
            fake::beginCapture(static_cast<fake::CUstream>(captured));
        bngradStatus_t status = op->call(stream, false);
        fake::endCaptures();
        EXPECT_EQ(status, BNGRAD_SUCCESS) << bngradGetLastError();
        EXPECT_EQ(fake::countMemoryNodes(graph), 0);
        Functions functions = takeFunctions();
        if (!isFirst)
          EXPECT_EQ(functions, Functions{"cuLaunchKernelEx"});
        EXPECT_GT(takeLaunches(stream), 0u);
      }
    }
}

// Handles of several devices, whatever the context of the thread. Each context
// has a module of its own, and the thread's context stays.
TEST_P(DriverCalls, Devices) {
  constexpr int kDevices = 3;
  std::vector<bngradHandle_t> handles(kDevices);
  std::vector<std::unique_ptr<Op>> ops;
  for (int i = 0; i < kDevices; ++i) {
    ASSERT_EQ(bngradCreateHandle(&handles[i], BNGRAD_DEVICE_CUDA, i),
              BNGRAD_SUCCESS)
        << bngradGetLastError();
    ops.push_back(std::make_unique<Op>(makeDriverSpecs(GetParam())[0]));
    ASSERT_EQ(ops[i]->create(handles[i]), BNGRAD_SUCCESS)
        << bngradGetLastError();
  }
  EXPECT_EQ(fake::getCurrent(), context);
  takeModules();
  size_t numModules = 0;
  for (bool isFirst : {true, false})
    for (fake::CUcontext current :
         {context, fake::getPrimary(1), fake::CUcontext(nullptr)}) {
      fake::setCurrent(current);
      for (int i = 0; i < kDevices; ++i) {
        SCOPED_TRACE(i);
        ASSERT_EQ(ops[i]->call(nullptr, false), BNGRAD_SUCCESS)
            << bngradGetLastError();
        EXPECT_EQ(fake::getCurrent(), current);
        bool isOfCurrent =
            (current == context && i == 0) ||
            (current && current == fake::getPrimary(1) && i == 1);
        for (const fake::Launch &launch : fake::takeLaunches())
          EXPECT_EQ(launch.context,
                    isOfCurrent ? current : fake::getPrimary(i));
      }
      if (isFirst)
        numModules += takeModules();
    }
  // Of the thread's context and of the three primary ones.
  EXPECT_EQ(numModules, 4u);
  EXPECT_EQ(takeModules(), 0u);
  // Other calls of the thread have no device.
  fake::setCurrent(nullptr);
  void *stream = mgpuStreamCreate();
  EXPECT_NE(stream, nullptr);
  mgpuStreamDestroy(stream);
  ops.clear();
  for (bngradHandle_t each : handles)
    bngradDestroyHandle(each);
}

// Each allocation of the host fails once, in a context without kernels.
TEST_P(DriverCalls, OutOfMemory) {
  std::vector<std::unique_ptr<Op>> ops = createAll();
  Op &op = *ops[0];
  bngradStatus_t status = BNGRAD_SUCCESS;
  auto run = [&] {
    bngradHandle_t other = nullptr;
    status = bngradCreateHandle(&other, BNGRAD_DEVICE_CUDA, 0);
    if (!status)
      status = op.call(nullptr, false);
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

#ifdef BNGRAD_HAS_CUDA_KERNELS
// Each allocation of the host fails once while the ready kernels are loaded.
TEST_F(CudaDriver, LoadOutOfMemory) {
  setenv("BNGRAD_COMPILER", "", 1);
  Gradient gradient(makeDriverSpecs(/*isReady=*/true)[0]);
  // This creates the tensors.
  bngradHandle_t cpu = nullptr;
  ASSERT_EQ(bngradCreateHandle(&cpu, BNGRAD_DEVICE_CPU, 0), BNGRAD_SUCCESS);
  ASSERT_EQ(gradient.create(cpu), BNGRAD_SUCCESS) << bngradGetLastError();
  bngradBatchNormBackwardDescriptor_t descriptor = nullptr;
  bngradStatus_t status = BNGRAD_SUCCESS;
  auto run = [&] {
    auto **t = gradient.tensors;
    status = bngradCreateBatchNormBackwardDescriptor(
        handle, &descriptor, &gradient.options, t[GradInput], t[GradScale],
        t[GradOffset], t[GradOutput], t[Input], t[Scale], t[Mean], t[Statistic],
        t[Mask]);
  };
  for (long number = 1;; ++number) {
    SCOPED_TRACE(number);
    FailedNew failed = callWithFailingNew(number, false, run);
    if (!failed.hasFailed)
      break;
    EXPECT_EQ(status, BNGRAD_INTERNAL_ERROR) << bngradGetLastError();
    EXPECT_NE(std::string(bngradGetLastError()).find("memory"),
              std::string::npos)
        << bngradGetLastError();
  }
  ASSERT_EQ(status, BNGRAD_SUCCESS) << bngradGetLastError();
  std::swap(descriptor, gradient.descriptor);
  EXPECT_EQ(callIn(nullptr, gradient, false), BNGRAD_SUCCESS)
      << bngradGetLastError();
  EXPECT_EQ(takeLaunches(nullptr), 3u);
  bngradDestroyBatchNormBackwardDescriptor(descriptor);
  bngradDestroyHandle(cpu);
  unsetenv("BNGRAD_COMPILER");
}
#endif
