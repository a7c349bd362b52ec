//===- MemoryTest.cpp - memory of devices -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaTest.h"

namespace {
class MemoryTest : public CudaTest {
protected:
  /// Registers a memref of f32 with the given layout.
  static void registerMemRef(float *data, int64_t offset,
                             std::vector<int64_t> sizes,
                             const std::vector<int64_t> &strides) {
    int64_t rank = sizes.size();
    std::vector<int64_t> descriptor = {
        0, int64_t(reinterpret_cast<intptr_t>(data)), offset};
    descriptor.insert(descriptor.end(), sizes.begin(), sizes.end());
    descriptor.insert(descriptor.end(), strides.begin(), strides.end());
    mgpuMemHostRegisterMemRef(rank, descriptor.data(), sizeof(float));
  }
};
} // namespace

TEST_F(MemoryTest, FromAPoolInTheOrderOfAStream) {
  void *stream = mgpuStreamCreate();
  fake::takeCalls();
  void *first = mgpuMemAlloc(100, stream, 0);
  void *second = mgpuMemAlloc(200, nullptr, 0);
  ASSERT_TRUE(first && second);
  mgpuMemFree(first, stream);
  mgpuMemFree(second, nullptr);
  // The pool keeps freed memory; the fake driver checks that.
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuMemPoolCreate 1", "cuMemPoolSetAttribute 4",
                   "cuMemAllocFromPoolAsync 100", "cuMemAllocFromPoolAsync 200",
                   "cuMemFreeAsync", "cuMemFreeAsync"}));
  mgpuStreamDestroy(stream);
}

TEST_F(MemoryTest, WithoutPools) {
  fake::setDevice(kDevice, {9, 0, /*hasMemoryPools=*/false});
  fake::setCurrent(fake::createContext(kDevice));
  void *memory = mgpuMemAlloc(100, nullptr, 0);
  ASSERT_TRUE(memory);
  mgpuMemFree(memory, nullptr);
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuMemAlloc 100", "cuStreamSynchronize", "cuMemFree"}));
}

TEST_F(MemoryTest, SharedWithTheHost) {
  void *memory = mgpuMemAlloc(100, nullptr, 1);
  ASSERT_TRUE(memory);
  mgpuMemFree(memory, nullptr);
  EXPECT_EQ(fake::takeCalls(), (Calls{"cuMemAllocManaged 100 1",
                                      "cuStreamSynchronize", "cuMemFree"}));
}

TEST_F(MemoryTest, NothingForNothing) {
  int before = fake::countAllCalls();
  EXPECT_EQ(mgpuMemAlloc(0, nullptr, 0), nullptr);
  EXPECT_EQ(mgpuMemAlloc(0, nullptr, 1), nullptr);
  mgpuMemFree(nullptr, nullptr);
  mgpuMemcpy(nullptr, nullptr, 0, nullptr);
  mgpuMemset16(nullptr, 0, 0, nullptr);
  mgpuMemset32(nullptr, 0, 0, nullptr);
  EXPECT_EQ(fake::countAllCalls(), before);
}

TEST_F(MemoryTest, OutOfMemory) {
  fake::fail("cuMemAllocFromPoolAsync", 2);
  EXPECT_EQ(mgpuMemAlloc(100, nullptr, 0), nullptr);
  expectError(2, "cuMemAllocFromPoolAsync on device 1 (NVIDIA Fake): "
                 "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
}

TEST_F(MemoryTest, FreedTwice) {
  void *memory = mgpuMemAlloc(100, nullptr, 0);
  mgpuMemFree(memory, nullptr);
  mgpuMemFree(memory, nullptr);
  expectError(1, "cuMemFree on device 1 (NVIDIA Fake): "
                 "CUDA_ERROR_INVALID_VALUE (1): invalid argument");
}

TEST_F(MemoryTest, ManyThreads) {
  runInThreads([&](int i) {
    for (int j = 0; j < 50; ++j) {
      uint8_t isHostShared = (i + j) % 3 == 0;
      mgpuMemFree(mgpuMemAlloc(16, nullptr, isHostShared), nullptr);
    }
    EXPECT_EQ(bngradCudaTakeStatus(), 0);
  });
  int numPools = 0;
  for (const std::string &call : fake::takeCalls())
    numPools += call == "cuMemPoolCreate 1";
  EXPECT_EQ(numPools, 1);
}

TEST_F(MemoryTest, PoolThatCannotBeSetUpIsDestroyed) {
  fake::fail("cuMemPoolSetAttribute", 1);
  EXPECT_FALSE(mgpuMemAlloc(16, nullptr, 0));
  fake::succeedAgain();
  expectError(1, "cuMemPoolSetAttribute on device 1 (NVIDIA Fake): "
                 "CUDA_ERROR_INVALID_VALUE (1): invalid argument");
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuMemPoolCreate 1", "cuMemPoolSetAttribute 4",
                   "cuMemPoolDestroy"}));
  mgpuMemFree(mgpuMemAlloc(16, nullptr, 0), nullptr);
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuMemPoolCreate 1", "cuMemPoolSetAttribute 4",
                   "cuMemAllocFromPoolAsync 16", "cuMemFreeAsync"}));
}

TEST_F(MemoryTest, CopiesAndFills) {
  uint32_t words[4] = {1, 2, 3, 4};
  uint32_t copy[4] = {};
  mgpuMemcpy(copy, words, 12, nullptr);
  EXPECT_EQ(copy[2], 3u);
  EXPECT_EQ(copy[3], 0u);
  mgpuMemset32(copy, 0xdeadbeef, 2, nullptr);
  EXPECT_EQ(copy[1], 0xdeadbeef);
  EXPECT_EQ(copy[2], 3u);
  mgpuMemset16(copy, 0xabcd, 3, nullptr);
  EXPECT_EQ(copy[0], 0xabcdabcd);
  EXPECT_EQ(copy[1], 0xdeadabcd);
  EXPECT_EQ(fake::takeCalls(), (Calls{"cuMemcpyAsync 12", "cuMemsetD32Async 2",
                                      "cuMemsetD16Async 3"}));
}

TEST_F(MemoryTest, RegistersDenseMemRefs) {
  float data[64];
  registerMemRef(data, 0, {}, {});
  registerMemRef(data, 3, {2, 3, 4}, {12, 4, 1});
  registerMemRef(data, 0, {4, 3, 2}, {1, 4, 12});
  // The stride of a single element does not matter.
  registerMemRef(data, 0, {1, 5, 1}, {0, 1, 99});
  registerMemRef(data, 0, {0, 5}, {9, 9});
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuMemHostRegister 4 1", "cuMemHostRegister 96 1",
                   "cuMemHostRegister 96 1", "cuMemHostRegister 20 1"}));
}

TEST_F(MemoryTest, RefusesMemRefsWithGaps) {
  float data[64];
  registerMemRef(data, 0, {2, 3}, {4, 1});
  expectError(-1, "mgpuMemHostRegisterMemRef: expected a memref without gaps, "
                  "got stride 4 in place of 3");
  registerMemRef(data, 0, {4}, {2});
  expectError(-1, "mgpuMemHostRegisterMemRef: expected a memref without gaps, "
                  "got stride 2 in place of 1");
  registerMemRef(data, 0, {4, 4}, {0, 1});
  expectError(-1, "mgpuMemHostRegisterMemRef: expected a memref without gaps, "
                  "got stride 0 in place of 1");
  registerMemRef(data, 3, {4}, {-1});
  expectError(-1, "mgpuMemHostRegisterMemRef: expected a memref without gaps, "
                  "got stride -1 in place of 1");
  EXPECT_EQ(fake::takeCalls(), Calls());
}

TEST_F(MemoryTest, Unregisters) {
  float data[8];
  struct {
    void *allocated, *aligned;
    int64_t offset, size, stride;
  } memref = {nullptr, data, 2, 4, 1};
  mgpuMemHostRegisterMemRef(1, &memref, sizeof(float));
  mgpuMemHostUnregisterMemRef(1, &memref, sizeof(float));
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuMemHostRegister 16 1", "cuMemHostUnregister"}));
  memref.stride = 2;
  mgpuMemHostUnregisterMemRef(1, &memref, sizeof(float));
  expectError(-1, "mgpuMemHostUnregisterMemRef: expected a memref without "
                  "gaps, got stride 2 in place of 1");
}
