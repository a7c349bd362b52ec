//===- CudaForwardTest.cpp - the forward pass on the emulator of CUDA -----===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "Specs.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <utility>

using namespace bngrad::test;

namespace {
/// A handle of the emulator, without a cache on disk.
class CudaForward : public testing::Test {
protected:
  void SetUp() override {
    setenv("BNGRAD_CACHE_DIR", "", 1);
    ASSERT_EQ(bngradCreateHandle(&handle, BNGRAD_DEVICE_CUDA_EMULATOR, 0),
              BNGRAD_SUCCESS)
        << bngradGetLastError();
  }
  void TearDown() override {
    EXPECT_EQ(bngradCudaTakeStatus(), 0);
    bngradDestroyHandle(handle);
    unsetenv("BNGRAD_CACHE_DIR");
  }

  bngradHandle_t handle = nullptr;
};
} // namespace

/// All results of training, in both layouts and on each kind of schedule.
static std::vector<ForwardSpec> makeForwardSpecs() {
  ForwardSpec planes;
  planes.layout = {{3, 4, 8}, {1}, {}};
  for (bool &isWanted : planes.wants)
    isWanted = true;
  planes.isUnbiased = true;
  ForwardSpec rows = planes;
  rows.layout = {{3, 64, 5}, {1}, {0, 2, 1}};
  rows.dataType = rows.outputType = BNGRAD_DTYPE_BF16;
  ForwardSpec apart = planes;
  apart.layout = {{3, 4, 2, 5}, {0, 2}, {}};
  apart.dataType = apart.outputType = BNGRAD_DTYPE_F16;
  apart.parameterStride = 2;
  // As PyTorch's batch_norm_stats.
  ForwardSpec statistics = planes;
  statistics.wants[0] = statistics.hasRunning = false;
  // Sums of several blocks.
  ForwardSpec few = planes;
  few.layout = {{2, 1, 9000}, {1}, {}};
  few.isInPlace = true;
  ForwardSpec empty = planes;
  empty.layout = {{0, 5}, {1}, {}};
  // Nothing to sum over.
  ForwardSpec single = planes;
  single.layout = {{1, 5}, {1}, {}};
  single.isUnbiased = false;
  ForwardSpec inference;
  inference.isInference = true;
  inference.isInPlace = true;
  ForwardSpec singleInference = inference;
  singleInference.layout = single.layout;
  ForwardSpec invStd = rows;
  invStd.isInference = invStd.isInvStd = true;
  return {planes, rows,   apart,     statistics,      few,
          empty,  single, inference, singleInference, invStd};
}

TEST_F(CudaForward, Values) {
  void *stream = mgpuStreamCreate();
  std::vector<ForwardSpec> specs = makeForwardSpecs();
  std::mt19937 random(1);
  for (int i = 0, count = isLongTest() ? 60 : 4; i < count; ++i)
    specs.push_back(makeForwardSpec(random));
  for (const ForwardSpec &spec : specs) {
    SCOPED_TRACE(spec.print());
    DeviceForward forward(spec, handle);
    ASSERT_EQ(forward.status, BNGRAD_SUCCESS) << bngradGetLastError();
    // In the default stream, and with an event for each result.
    for (bool isAsync : {false, true}) {
      bngradCompletion_t done[kNumWritten] = {};
      for (bngradCompletion_t &completion : done)
        completion.context = mgpuEventCreate();
      EXPECT_EQ(
          forward.run(isAsync ? stream : nullptr, isAsync ? done : nullptr),
          BNGRAD_SUCCESS)
          << bngradGetLastError();
      EXPECT_EQ(forward.host.check(), "");
      for (bngradCompletion_t &completion : done) {
        mgpuEventSynchronize(completion.context);
        mgpuEventDestroy(completion.context);
      }
    }
  }
  mgpuStreamDestroy(stream);
}

// The kernels for such addresses may need more workspace.
TEST_F(CudaForward, UnalignedAddresses) {
  for (const ForwardSpec &spec : makeForwardSpecs()) {
    SCOPED_TRACE(spec.print());
    DeviceForward forward(spec, handle, /*isUnaligned=*/true);
    ASSERT_EQ(forward.status, BNGRAD_SUCCESS) << bngradGetLastError();
    EXPECT_EQ(forward.run(nullptr), BNGRAD_SUCCESS) << bngradGetLastError();
    EXPECT_EQ(forward.host.check(), "");
  }
}

// Each thread has a stream, data and a workspace of its own.
TEST_F(CudaForward, ThreadsWithStreams) {
  constexpr int kThreads = 4, kCalls = 3;
  ForwardSpec spec = makeForwardSpecs()[0];
  std::vector<std::unique_ptr<DeviceForward>> forwards;
  for (int i = 0; i < kThreads; ++i) {
    forwards.push_back(std::make_unique<DeviceForward>(spec, handle));
    ASSERT_EQ(forwards[i]->status, BNGRAD_SUCCESS) << bngradGetLastError();
  }
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (auto &forward : forwards)
    threads.emplace_back([&] {
      void *stream = mgpuStreamCreate();
      for (int i = 0; i < kCalls; ++i) {
        EXPECT_EQ(forward->run(stream), BNGRAD_SUCCESS) << bngradGetLastError();
        EXPECT_EQ(forward->host.check(), "");
      }
      mgpuStreamDestroy(stream);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (auto &forward : forwards)
    EXPECT_EQ(forward->host.results(), forwards[0]->host.results());
}

// The emulator finds that data are in host memory.
TEST_F(CudaForward, Faults) {
  DeviceForward forward(makeForwardSpecs()[0], handle);
  ASSERT_EQ(forward.status, BNGRAD_SUCCESS) << bngradGetLastError();
  Forward &host = forward.host;
  void *address = std::exchange(host.addresses[Data], nullptr);
  EXPECT_EQ(forward.host.run(), BNGRAD_INTERNAL_ERROR);
  EXPECT_STRNE(bngradGetLastError(), "");
  // The next call is right again.
  host.addresses[Data] = address;
  EXPECT_EQ(forward.run(nullptr), BNGRAD_SUCCESS) << bngradGetLastError();
  EXPECT_EQ(host.check(), "");
}
