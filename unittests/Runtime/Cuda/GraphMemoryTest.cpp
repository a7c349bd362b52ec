//===- GraphMemoryTest.cpp - device memory of graphs ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaTest.h"

#include <set>

using fake::CUgraph;

namespace {
class GraphMemoryTest : public CudaTest {
protected:
  void TearDown() override {
    fake::endCapture();
    CudaTest::TearDown();
  }

  /// What a compiled function does: allocates, launches and releases.
  static void *callFunction(uint64_t bytes, void *stream = nullptr) {
    void *memory = mgpuMemAlloc(bytes, stream, 0);
    mgpuMemFree(memory, stream);
    return memory;
  }
};
} // namespace

TEST_F(GraphMemoryTest, IsNoNode) {
  void *stream = mgpuStreamCreate();
  fake::takeCalls();
  CUgraph graph = fake::beginCapture();
  EXPECT_TRUE(callFunction(100, stream));
  // The mode of the capture forbids it unless the thread is in another one,
  // which it leaves again.
  EXPECT_EQ(fake::takeCalls(), (Calls{"cuMemAlloc 100"}));
  EXPECT_EQ(mgpuMemAlloc(100, stream, /*isHostShared=*/1), nullptr);
  expectError(900, "cuMemAllocManaged on device 1 (NVIDIA Fake): "
                   "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900): operation not "
                   "permitted when stream is capturing");
  fake::endCapture();
  fake::takeCalls();
  fake::destroyGraph(graph);
  EXPECT_EQ(fake::takeCalls(), Calls());
  mgpuStreamDestroy(stream);
}

TEST_F(GraphMemoryTest, WithoutPools) {
  fake::setDevice(kDevice, {9, 0, /*hasMemoryPools=*/false});
  fake::setCurrent(fake::createContext(kDevice));
  fake::beginCapture();
  EXPECT_TRUE(callFunction(100));
  EXPECT_EQ(fake::takeCalls(), (Calls{"cuMemAlloc 100"}));
}

TEST_F(GraphMemoryTest, CallsOfOneStreamShareIt) {
  void *stream = mgpuStreamCreate();
  void *other = mgpuStreamCreate();
  fake::beginCapture();
  void *first = callFunction(100, stream);
  EXPECT_EQ(callFunction(60, stream), first);
  // Too small, of another stream, in use.
  void *larger = callFunction(200, stream);
  void *ofOther = callFunction(60, other);
  void *inUse = mgpuMemAlloc(200, stream, 0);
  EXPECT_EQ(inUse, larger);
  void *next = mgpuMemAlloc(150, stream, 0);
  EXPECT_EQ(std::set<void *>({first, larger, ofOther, next}).size(), 4u);
  // The smallest that fits.
  EXPECT_EQ(callFunction(100, stream), first);
  mgpuMemFree(inUse, stream);
  mgpuMemFree(next, stream);
  EXPECT_EQ(callFunction(101, stream), next);
  mgpuStreamDestroy(stream);
  mgpuStreamDestroy(other);
}

TEST_F(GraphMemoryTest, EachGraphHasItsOwnUntilItIsDestroyed) {
  CUgraph graph = fake::beginCapture();
  void *first = callFunction(100);
  fake::endCapture();
  fake::beginCapture();
  void *second = callFunction(100);
  EXPECT_NE(first, second);
  fake::endCapture();
  fake::destroyGraph(graph);
  fake::beginCapture();
  EXPECT_EQ(callFunction(80), first);
  // The new owner, which asked for less, may use all of it.
  EXPECT_EQ(callFunction(100), first);
}

TEST_F(GraphMemoryTest, IsFreedIfItIsTooSmallForLaterGraphs) {
  CUgraph graph = fake::beginCapture();
  void *memory = mgpuMemAlloc(100, nullptr, 0);
  void *released = callFunction(50);
  EXPECT_NE(memory, released);
  fake::endCapture();
  fake::destroyGraph(graph);
  CUcontext context = fake::getCurrent();
  fake::takeCalls();

  // Not by those of other contexts.
  fake::setCurrent(fake::createContext(kDevice));
  fake::beginCapture();
  EXPECT_TRUE(callFunction(200));
  EXPECT_EQ(fake::takeCalls(), (Calls{"cuMemAlloc 200"}));
  fake::endCapture();

  fake::setCurrent(context);
  fake::beginCapture();
  EXPECT_TRUE(callFunction(200));
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuMemFree", "cuMemFree", "cuMemAlloc 200"}));
}

TEST_F(GraphMemoryTest, ReleasedAfterTheCapture) {
  CUgraph graph = fake::beginCapture();
  void *memory = mgpuMemAlloc(100, nullptr, 0);
  fake::endCapture();
  fake::takeCalls();
  // It is the graph's until then.
  mgpuMemFree(memory, nullptr);
  EXPECT_EQ(fake::takeCalls(), Calls());
  fake::destroyGraph(graph);
  mgpuMemFree(memory, nullptr);
  EXPECT_EQ(fake::takeCalls(), Calls());
}

TEST_F(GraphMemoryTest, Failures) {
  fake::beginCapture();
  fake::fail("cuMemAlloc", 2);
  EXPECT_EQ(callFunction(100), nullptr);
  expectError(2, "cuMemAlloc on device 1 (NVIDIA Fake): "
                 "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
  for (std::string call : {"cuUserObjectCreate", "cuGraphRetainUserObject"}) {
    fake::succeedAgain();
    fake::fail(call, 1);
    EXPECT_EQ(callFunction(100), nullptr);
    expectError(1, call + " on device 1 (NVIDIA Fake): "
                          "CUDA_ERROR_INVALID_VALUE (1): invalid argument");
  }
  fake::succeedAgain();
  fake::takeCalls();
  // What could not be given to a graph is used for the next one.
  EXPECT_TRUE(callFunction(100));
  EXPECT_EQ(fake::takeCalls(), Calls());
  // Where the driver cannot tell, the stream is as any other.
  fake::fail("cuStreamGetCaptureInfo", 906);
  EXPECT_TRUE(callFunction(100));
  EXPECT_EQ(fake::takeCalls().back(), "cuMemFreeAsync");
}

TEST_F(GraphMemoryTest, ManyThreads) {
  fake::beginCapture();
  std::vector<void *> streams(8);
  for (void *&stream : streams)
    stream = mgpuStreamCreate();
  runInThreads([&](int i) {
    void *first = callFunction(16 + i, streams[i]);
    for (int j = 0; j < 50; ++j)
      EXPECT_EQ(callFunction(16, streams[i]), first);
    EXPECT_EQ(bngradCudaTakeStatus(), 0);
  });
  for (void *stream : streams)
    mgpuStreamDestroy(stream);
}
