//===- ClusterSlotsTest.cpp - clusters that run at once ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaTest.h"

namespace {
/// Each test has a device of its own, since the answers of a device are kept.
class ClusterSlotsTest : public CudaTest {
protected:
  void SetUp() override {
    static int last = kDevice;
    CudaTest::SetUp();
    device = ++last;
    useDevice({});
  }

  void useDevice(fake::DeviceInfo info) {
    fake::setDevice(device, info);
    fake::setCurrent(fake::createContext(device));
    fake::takeCalls();
  }

  std::string onDevice() const {
    return " on device " + std::to_string(device) + " (NVIDIA Fake): ";
  }

  int device = 0;

  /// The questions to the driver, as `cluster bytes`.
  static Calls takeQuestions() {
    Calls result;
    const std::string prefix = "cuOccupancyMaxActiveClusters ";
    for (const std::string &call : fake::takeCalls())
      if (call.rfind(prefix, 0) == 0)
        result.push_back(call.substr(prefix.size()));
    return result;
  }
};
} // namespace

// A block of all shared memory but the driver's part fills a multiprocessor.
TEST_F(ClusterSlotsTest, AskedOfTheDriverOnce) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(bngradCudaGetClusterSlots(2, 1), 66);
    EXPECT_EQ(bngradCudaGetClusterSlots(8, 1), 16);
    EXPECT_EQ(bngradCudaGetClusterSlots(8, 2), 33);
    EXPECT_EQ(bngradCudaGetClusterSlots(16, 1), 8);
    EXPECT_EQ(bngradCudaGetClusterSlots(4, 5), 165);
  }
  EXPECT_EQ(takeQuestions(), (Calls{"2 232448", "8 232448", "8 115712",
                                    "16 232448", "4 45568"}));
  fake::setCurrent(fake::createContext(device));
  EXPECT_EQ(bngradCudaGetClusterSlots(2, 1), 66);
  EXPECT_EQ(takeQuestions(), Calls()) << "another context of the device";
  fake::setCurrent(fake::createContext(kDevice));
  EXPECT_EQ(bngradCudaGetClusterSlots(2, 1), 66);
  EXPECT_EQ(takeQuestions(), Calls{"2 232448"}) << "another device";
}

TEST_F(ClusterSlotsTest, NothingStaysLoaded) {
  EXPECT_EQ(bngradCudaGetClusterSlots(4, 1), 33);
  Calls calls = fake::takeCalls();
  EXPECT_EQ(calls.front(), "cuModuleLoadDataEx .version");
  EXPECT_EQ(calls.back(), "cuModuleUnload");
  EXPECT_EQ(fake::takeLaunches().size(), 0u);
}

TEST_F(ClusterSlotsTest, DeviceWithoutClusters) {
  useDevice({8, 9});
  EXPECT_EQ(bngradCudaGetClusterSlots(2, 1), 0);
  EXPECT_EQ(fake::takeCalls(), Calls());
}

// As clusters of 16 where a part of a device has fewer multiprocessors.
TEST_F(ClusterSlotsTest, ClustersThatCannotRun) {
  fake::fail("cuOccupancyMaxActiveClusters", 912);
  EXPECT_EQ(bngradCudaGetClusterSlots(16, 1), 0);
  fake::succeedAgain();
  EXPECT_EQ(bngradCudaGetClusterSlots(16, 1), 0) << "known by now";
}

TEST_F(ClusterSlotsTest, ErrorsAreReportedOnce) {
  fake::fail("cuOccupancyMaxActiveClusters", 700);
  EXPECT_EQ(bngradCudaGetClusterSlots(2, 1), 0);
  expectError(700, "cuOccupancyMaxActiveClusters" + onDevice() +
                       "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory "
                       "access was encountered");
  fake::succeedAgain();
  EXPECT_EQ(bngradCudaGetClusterSlots(2, 1), 0);
  fake::fail("cuModuleLoadDataEx", 2);
  EXPECT_EQ(bngradCudaGetClusterSlots(4, 1), 0);
  expectError(2, "cuModuleLoadDataEx" + onDevice() +
                     "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
}

TEST_F(ClusterSlotsTest, NumbersOutOfRange) {
  for (int blocks : {0, 17}) {
    EXPECT_EQ(bngradCudaGetClusterSlots(blocks, 1), 0);
    expectError(-1, "bngradCudaGetClusterSlots: expected cluster_blocks in [1, "
                    "16], got " +
                        std::to_string(blocks));
  }
  for (int blocks : {-1, 33}) {
    EXPECT_EQ(bngradCudaGetClusterSlots(2, blocks), 0);
    expectError(-1, "bngradCudaGetClusterSlots: expected resident_blocks in "
                    "[1, 32], got " +
                        std::to_string(blocks));
  }
  EXPECT_EQ(fake::takeCalls(), Calls());
}
