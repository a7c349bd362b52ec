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
using fake::CUstream;

namespace {
class GraphMemoryTest : public CudaTest {
protected:
  void TearDown() override {
    fake::endCaptures();
    CudaTest::TearDown();
  }

  /// What a compiled function does in a stream: allocates, launches, releases.
  static void *callFunction(uint64_t bytes, void *stream = nullptr) {
    void *memory = mgpuMemAlloc(bytes, stream, 0);
    mgpuMemFree(memory, stream);
    return memory;
  }

  static CUgraph beginCapture(void *stream) {
    return fake::beginCapture(static_cast<CUstream>(stream));
  }

  static void joinCapture(CUgraph graph, void *stream) {
    fake::joinCapture(graph, static_cast<CUstream>(stream));
  }
};
} // namespace

TEST_F(GraphMemoryTest, IsNoNode) {
  void *stream = mgpuStreamCreate();
  CUgraph graph = beginCapture(stream);
  fake::takeCalls();
  EXPECT_TRUE(callFunction(100, stream));
  EXPECT_EQ(
      fake::takeCalls(),
      (Calls{"cuStreamCreate 1", "cuMemPoolCreate 1", "cuMemPoolSetAttribute 4",
             "cuMemAllocFromPoolAsync 100", "cuStreamSynchronize"}));
  EXPECT_TRUE(callFunction(200, stream));
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuMemAllocFromPoolAsync 200", "cuStreamSynchronize"}));
  EXPECT_EQ(fake::countMemoryNodes(graph), 0);
  // The thread is in the mode of the capture again.
  EXPECT_EQ(mgpuMemAlloc(100, stream, 1), nullptr);
  expectError(900, "cuMemAllocManaged on device 1 (NVIDIA Fake): "
                   "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900): operation not "
                   "permitted when stream is capturing");
  mgpuStreamDestroy(stream);
}

TEST_F(GraphMemoryTest, WithoutPools) {
  fake::setDevice(kDevice, {9, 0, /*hasMemoryPools=*/false});
  fake::setCurrent(fake::createContext(kDevice));
  CUgraph graph = fake::beginCapture();
  EXPECT_TRUE(callFunction(100));
  EXPECT_EQ(fake::takeCalls(), (Calls{"cuStreamCreate 1", "cuMemAlloc 100",
                                      "cuStreamSynchronize"}));
  fake::endCaptures();
  fake::destroyGraph(graph);
  EXPECT_TRUE(mgpuMemAlloc(10, nullptr, 0));
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuStreamSynchronize", "cuMemFree", "cuMemAlloc 10"}));
}

TEST_F(GraphMemoryTest, CallsOfOneStreamShareIt) {
  void *stream = mgpuStreamCreate();
  void *other = mgpuStreamCreate();
  CUgraph graph = beginCapture(stream);
  joinCapture(graph, other);
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
  EXPECT_EQ(callFunction(60, other), ofOther);
  mgpuStreamDestroy(stream);
  mgpuStreamDestroy(other);
}

TEST_F(GraphMemoryTest, NoOrderWithoutAStream) {
  void *stream = mgpuStreamCreate();
  void *other = mgpuStreamCreate();
  CUgraph graph = beginCapture(stream);
  joinCapture(graph, other);
  // Later calls in the first stream do not wait for the other one.
  void *memory = mgpuMemAlloc(100, stream, 0);
  mgpuMemFree(memory, other);
  EXPECT_NE(callFunction(100, stream), memory);
  EXPECT_NE(callFunction(100, other), memory);
  // The handle of as many streams as there are threads.
  joinCapture(graph, fake::getStreamPerThread());
  memory = callFunction(100, fake::getStreamPerThread());
  EXPECT_NE(callFunction(100, fake::getStreamPerThread()), memory);
  mgpuStreamDestroy(stream);
  mgpuStreamDestroy(other);
}

TEST_F(GraphMemoryTest, EachGraphHasItsOwn) {
  fake::beginCapture();
  void *first = callFunction(100);
  fake::endCaptures();
  fake::beginCapture();
  EXPECT_NE(callFunction(100), first);
}

TEST_F(GraphMemoryTest, IsFreedAfterTheGraph) {
  CUgraph graph = fake::beginCapture();
  EXPECT_TRUE(callFunction(100));
  fake::endCaptures();
  // Another graph lives on, and its memory with it.
  fake::beginCapture();
  EXPECT_TRUE(callFunction(100));
  fake::endCaptures();
  CUcontext context = fake::getCurrent();
  fake::takeCalls();
  // By the next call that allocates, as a destructor cannot.
  fake::destroyGraph(graph);
  EXPECT_EQ(fake::takeCalls(), Calls());
  // In the same context.
  fake::setCurrent(fake::createContext(kDevice));
  callFunction(10);
  Calls calls = fake::takeCalls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "cuMemFreeAsync"), 1);
  fake::setCurrent(context);
  callFunction(10);
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuMemFreeAsync", "cuMemAllocFromPoolAsync 10",
                   "cuMemFreeAsync"}));
  callFunction(10);
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuMemAllocFromPoolAsync 10", "cuMemFreeAsync"}));
}

TEST_F(GraphMemoryTest, ReleasedAfterTheGraph) {
  CUgraph graph = fake::beginCapture();
  void *memory = mgpuMemAlloc(100, nullptr, 0);
  fake::endCaptures();
  fake::destroyGraph(graph);
  fake::takeCalls();
  // Its user still has it.
  EXPECT_NE(callFunction(100), memory);
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuMemAllocFromPoolAsync 100", "cuMemFreeAsync"}));
  // Which may have used it in a stream that is not captured.
  mgpuMemFree(memory, nullptr);
  EXPECT_EQ(fake::takeCalls(), (Calls{"cuStreamSynchronize"}));
  callFunction(100);
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuMemFreeAsync", "cuMemAllocFromPoolAsync 100",
                   "cuMemFreeAsync"}));
}

TEST_F(GraphMemoryTest, AddressesComeAgainInOtherContexts) {
  CUgraph first = fake::beginCapture();
  auto *memory = static_cast<char *>(callFunction(100));
  fake::endCaptures();
  fake::forgetMemory(memory);
  fake::setCurrent(fake::createContext(kDevice));
  // Of the pool.
  fake::setNextAddress(memory);
  EXPECT_EQ(mgpuMemAlloc(100, nullptr, 0), memory);
  fake::takeCalls();
  mgpuMemFree(memory, nullptr);
  EXPECT_EQ(fake::takeCalls(), (Calls{"cuMemFreeAsync"}));
  // Of a graph, which lives longer than the first one.
  fake::beginCapture();
  fake::setNextAddress(memory);
  EXPECT_EQ(callFunction(100), memory);
  fake::endCaptures();
  fake::destroyGraph(first);
  fake::takeCalls();
  EXPECT_NE(mgpuMemAlloc(100, nullptr, 0), memory);
  EXPECT_EQ(fake::takeCalls(), (Calls{"cuMemAllocFromPoolAsync 100"}));
}

TEST_F(GraphMemoryTest, Failures) {
  fake::beginCapture();
  for (std::string call :
       {"cuStreamCreate", "cuMemAllocFromPoolAsync", "cuUserObjectCreate",
        "cuGraphRetainUserObject", "cuStreamSynchronize"}) {
    fake::fail(call, 1);
    EXPECT_EQ(callFunction(100), nullptr);
    expectError(1, call + " on device 1 (NVIDIA Fake): "
                          "CUDA_ERROR_INVALID_VALUE (1): invalid argument");
    fake::succeedAgain();
  }
  // What could not be given to the graph is freed.
  EXPECT_TRUE(callFunction(1000));
  Calls calls = fake::takeCalls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "cuMemFreeAsync"), 2);
  // Where the driver cannot tell, the stream is as any other.
  fake::fail("cuStreamGetCaptureInfo", 906);
  EXPECT_TRUE(callFunction(100));
  EXPECT_EQ(fake::takeCalls().back(), "cuMemFreeAsync");
}

TEST_F(GraphMemoryTest, FailureToFree) {
  CUgraph graph = fake::beginCapture();
  EXPECT_TRUE(callFunction(100));
  EXPECT_TRUE(callFunction(200));
  fake::endCaptures();
  fake::destroyGraph(graph);
  fake::takeCalls();
  fake::fail("cuMemFreeAsync", 700);
  EXPECT_EQ(mgpuMemAlloc(100, nullptr, 0), nullptr);
  expectError(700, "cuMemFreeAsync on device 1 (NVIDIA Fake): "
                   "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access "
                   "was encountered");
  // The others are freed nevertheless.
  EXPECT_EQ(fake::takeCalls(), (Calls{"cuMemFreeAsync", "cuMemFreeAsync"}));
}

TEST_F(GraphMemoryTest, ManyThreads) {
  std::vector<void *> streams(8);
  for (void *&stream : streams)
    stream = mgpuStreamCreate();
  CUgraph graph = beginCapture(streams[0]);
  for (void *stream : streams)
    joinCapture(graph, stream);
  runInThreads([&](int i) {
    void *first = callFunction(16 + i, streams[i]);
    for (int j = 0; j < 50; ++j)
      EXPECT_EQ(callFunction(16, streams[i]), first);
    EXPECT_EQ(bngradCudaTakeStatus(), 0);
  });
  for (void *stream : streams)
    mgpuStreamDestroy(stream);
}
