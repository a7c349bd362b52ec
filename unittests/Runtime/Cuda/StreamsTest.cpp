//===- StreamsTest.cpp - streams and events ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaTest.h"

#include <set>
#include <thread>

namespace {
class StreamsTest : public CudaTest {};
} // namespace

TEST_F(StreamsTest, StreamsAreUsedAgain) {
  void *first = mgpuStreamCreate();
  void *second = mgpuStreamCreate();
  EXPECT_NE(first, second);
  mgpuStreamDestroy(first);
  EXPECT_EQ(mgpuStreamCreate(), first);
  EXPECT_EQ(fake::takeCalls(), (Calls{"cuStreamCreate 1", "cuStreamCreate 1"}))
      << "non-blocking ones, and none is destroyed";
  mgpuStreamDestroy(first);
  mgpuStreamDestroy(second);
}

TEST_F(StreamsTest, StreamsStayInTheirContext) {
  CUcontext context = fake::getCurrent();
  void *stream = mgpuStreamCreate();
  fake::setCurrent(fake::createContext(kDevice));
  mgpuStreamDestroy(stream);
  void *other = mgpuStreamCreate();
  EXPECT_NE(other, stream);
  fake::setCurrent(context);
  EXPECT_EQ(mgpuStreamCreate(), stream);
}

TEST_F(StreamsTest, CallersStreamIsWaitedForAfterHostCopies) {
  void *callers = mgpuStreamCreate();
  bngradCudaSetStream(callers);
  float host[4] = {};
  void *device = mgpuMemAlloc(sizeof(host), callers, /*is_host_shared=*/false);
  void *other = mgpuMemAlloc(sizeof(host), callers, /*is_host_shared=*/false);
  auto countWaits = [&] {
    fake::takeCalls();
    mgpuStreamSynchronize(callers);
    return fake::takeCalls().size();
  };
  mgpuMemcpy(other, device, sizeof(host), callers);
  EXPECT_EQ(countWaits(), 0u);
  mgpuMemcpy(device, host, sizeof(host), callers);
  EXPECT_EQ(countWaits(), 1u);
  EXPECT_EQ(countWaits(), 0u) << "nothing since";
  mgpuMemcpy(host, device, sizeof(host), callers);
  EXPECT_EQ(countWaits(), 1u);
  mgpuMemFree(device, callers);
  mgpuMemFree(other, callers);
  bngradCudaResetStream();
}

TEST_F(StreamsTest, CallersStream) {
  void *own = mgpuStreamCreate();
  void *kernel = mgpuModuleGetFunction(loadModule(), "kernel");
  void *made = mgpuStreamCreate();
  // The default stream can also be set.
  for (void *callers : {made, static_cast<void *>(nullptr)}) {
    bngradCudaSetStream(callers);
    fake::takeCalls();
    void *stream = mgpuStreamCreate();
    EXPECT_EQ(stream, callers);
    mgpuStreamSynchronize(stream);
    mgpuStreamDestroy(stream);
    EXPECT_EQ(fake::takeCalls(), Calls()) << "the caller's affair";
    launch(kernel, 0, stream);
    std::vector<fake::Launch> launches = fake::takeLaunches();
    ASSERT_EQ(launches.size(), 1u);
    EXPECT_EQ(launches[0].stream, callers);
    // Other streams are waited for.
    fake::takeCalls();
    mgpuStreamSynchronize(own);
    EXPECT_EQ(fake::takeCalls().size(), 1u);
  }
  CUcontext context = fake::getCurrent();
  std::thread([&] {
    fake::setCurrent(context);
    void *stream = mgpuStreamCreate();
    EXPECT_NE(stream, nullptr) << "the stream of one thread";
    mgpuStreamDestroy(stream);
  }).join();

  bngradCudaResetStream();
  void *next = mgpuStreamCreate();
  EXPECT_NE(next, nullptr);
  EXPECT_NE(next, own);
  EXPECT_NE(next, made) << "it was not given back";
  mgpuStreamDestroy(next);
  mgpuStreamDestroy(made);
  mgpuStreamDestroy(own);
}

TEST_F(StreamsTest, StreamsOfManyThreads) {
  std::mutex mutex;
  std::set<void *> used;
  runInThreads([&](int) {
    for (int j = 0; j < 100; ++j) {
      void *stream = mgpuStreamCreate();
      {
        std::lock_guard<std::mutex> lock(mutex);
        EXPECT_TRUE(used.insert(stream).second) << "handed out twice";
      }
      mgpuStreamSynchronize(stream);
      {
        std::lock_guard<std::mutex> lock(mutex);
        used.erase(stream);
      }
      mgpuStreamDestroy(stream);
    }
    EXPECT_EQ(bngradCudaTakeStatus(), 0);
  });
  int numCreated = 0;
  for (const std::string &call : fake::takeCalls())
    numCreated += call == "cuStreamCreate 1";
  EXPECT_LE(numCreated, 8);
}

TEST_F(StreamsTest, DestroyedTwice) {
  void *stream = mgpuStreamCreate();
  mgpuStreamDestroy(stream);
  mgpuStreamDestroy(stream);
  expectError(-1, "mgpuStreamDestroy: expected a stream of mgpuStreamCreate "
                  "that is not destroyed");
  void *event = mgpuEventCreate();
  mgpuEventDestroy(event);
  mgpuEventDestroy(event);
  expectError(-1, "mgpuEventDestroy: expected an event of mgpuEventCreate that "
                  "is not destroyed");
}

TEST_F(StreamsTest, NullIsTheDefaultStream) {
  void *event = mgpuEventCreate();
  mgpuEventRecord(event, nullptr);
  mgpuStreamWaitEvent(nullptr, event);
  mgpuStreamSynchronize(nullptr);
  mgpuStreamDestroy(nullptr);
  mgpuEventDestroy(nullptr);
  mgpuEventDestroy(event);
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuEventCreate 2", "cuEventRecord", "cuStreamWaitEvent 0",
                   "cuStreamSynchronize"}));
}

TEST_F(StreamsTest, EventsAreUsedAgain) {
  void *stream = mgpuStreamCreate();
  void *event = mgpuEventCreate();
  mgpuEventRecord(event, stream);
  mgpuEventSynchronize(event);
  mgpuEventDestroy(event);
  EXPECT_EQ(mgpuEventCreate(), event);
  EXPECT_EQ(fake::takeCalls(), (Calls{"cuStreamCreate 1", "cuEventCreate 2",
                                      "cuEventRecord", "cuEventSynchronize"}));
  mgpuEventDestroy(event);
  mgpuStreamDestroy(stream);
}
