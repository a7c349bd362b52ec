//===- LaunchTest.cpp - launches of kernels ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaTest.h"

namespace {
class LaunchTest : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    kernel = mgpuModuleGetFunction(loadModule(), "kernel");
  }

  static void launchClusters(void *kernel, intptr_t x, intptr_t y, intptr_t z) {
    mgpuLaunchClusterKernel(kernel, x, y, z, 16, 16, 16, 128, 1, 1, 0, nullptr,
                            nullptr, nullptr);
  }

  /// The calls that change attributes of kernels.
  static Calls takeAttributes() {
    Calls result;
    for (const std::string &call : fake::takeCalls())
      if (call.rfind("cuFuncSetAttribute", 0) == 0)
        result.push_back(call);
    return result;
  }

  void *kernel = nullptr;
};
} // namespace

TEST_F(LaunchTest, PassesEverythingOn) {
  void *stream = mgpuStreamCreate();
  int value = 1;
  void *params[] = {&value};
  void *extra[] = {nullptr};
  mgpuLaunchKernel(kernel, 70000, 2, 3, 32, 4, 2, 40960, stream, params, extra,
                   1);
  mgpuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr, 0);
  std::vector<fake::Launch> launches = fake::takeLaunches();
  ASSERT_EQ(launches.size(), 2u);
  const fake::Launch &first = launches[0];
  EXPECT_EQ(first.kernel, "kernel");
  EXPECT_EQ(first.grid, (std::array<unsigned, 3>{70000, 2, 3}));
  EXPECT_EQ(first.block, (std::array<unsigned, 3>{32, 4, 2}));
  EXPECT_EQ(first.cluster, (std::array<unsigned, 3>{0, 0, 0}));
  EXPECT_EQ(first.dynamicShared, 40960u);
  EXPECT_EQ(first.stream, stream);
  EXPECT_EQ(first.params, params);
  EXPECT_EQ(first.extra, extra);
  EXPECT_EQ(launches[1].stream, nullptr);
  mgpuStreamDestroy(stream);
}

TEST_F(LaunchTest, OverlapsKernelsThatWait) {
  auto getOverlaps = [] {
    std::vector<bool> result;
    for (const fake::Launch &launch : fake::takeLaunches())
      result.push_back(launch.overlaps);
    return result;
  };
  void *waiting = mgpuModuleGetFunction(loadModule("waits"), "kernel");
  launch(waiting);
  launch(kernel);
  launchClusters(waiting, 2, 2, 2);
  launchClusters(kernel, 2, 2, 2);
  EXPECT_EQ(getOverlaps(), (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(takeErrors(), "");
  // Not in a graph, nor where the driver cannot tell.
  fake::beginCapture();
  launch(waiting);
  fake::endCaptures();
  fake::fail("cuStreamIsCapturing", 906);
  launch(waiting);
  fake::succeedAgain();
  launch(waiting);
  EXPECT_EQ(getOverlaps(), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(takeErrors(), "");
}

TEST_F(LaunchTest, EmptyGridLaunchesNothing) {
  int before = fake::countAllCalls();
  mgpuLaunchKernel(kernel, 0, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr, 0);
  mgpuLaunchKernel(kernel, 1, 0, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr, 0);
  mgpuLaunchKernel(kernel, 1, 1, 0, 1, 1, 1, 0, nullptr, nullptr, nullptr, 0);
  mgpuLaunchClusterKernel(kernel, 2, 1, 1, 0, 1, 1, 1, 1, 1, 0, nullptr,
                          nullptr, nullptr);
  EXPECT_EQ(fake::countAllCalls(), before);
}

TEST_F(LaunchTest, SizesOutOfRange) {
  auto launchGrid = [&](intptr_t grid, intptr_t block, int32_t shared) {
    mgpuLaunchKernel(kernel, 1, grid, 1, 1, 1, block, shared, nullptr, nullptr,
                     nullptr, 0);
  };
  launchGrid(intptr_t(1) << 32, 1, 0);
  expectError(-1, "launch of 'kernel': expected sizes of the grid in [0, "
                  "4294967295], got 4294967296");
  launchGrid(-1, 1, 0);
  expectError(-1, "launch of 'kernel': expected sizes of the grid in [0, "
                  "4294967295], got -1");
  launchGrid(1, 0, 0);
  expectError(-1, "launch of 'kernel': expected sizes of the block in [1, "
                  "4294967295], got 0");
  launchGrid(1, 1, -4);
  expectError(-1, "launch of 'kernel': expected dynamic_shared_bytes of at "
                  "least 0, got -4");
  launchClusters(kernel, 2, 0, 1);
  expectError(-1, "launch of 'kernel': expected sizes of the cluster in [1, "
                  "4294967295], got 0");
  launch(nullptr);
  expectError(-1, "launch: expected a kernel, got null");
}

// A kernel of the fake driver has 1 KiB of static shared memory.
TEST_F(LaunchTest, DynamicSharedMemoryIsAskedForOnce) {
  launch(kernel, 47 << 10);
  EXPECT_EQ(takeAttributes(), Calls());
  launch(kernel, (47 << 10) + 1);
  launch(kernel, 100000);
  launch(kernel, 60000);
  launch(kernel, 100000);
  EXPECT_EQ(takeAttributes(), (Calls{"cuFuncSetAttribute 8 48129",
                                     "cuFuncSetAttribute 8 100000"}));
  EXPECT_EQ(fake::takeLaunches().size(), 5u);
  launch(kernel, 228 << 10);
  expectError(1, "cuFuncSetAttribute of 'kernel' on device 1 (NVIDIA Fake): "
                 "CUDA_ERROR_INVALID_VALUE (1): invalid argument");
}

// Static and dynamic shared memory of more than 48 KiB need the attribute,
// whatever its initial value is.
TEST_F(LaunchTest, StaticSharedMemoryCounts) {
  fake::setKernel("large", {48 << 10, 256});
  fake::setKernel("none", {0, 256});
  void *module = loadModule();
  void *none = mgpuModuleGetFunction(module, "none");
  launch(none, 48 << 10);
  EXPECT_EQ(takeAttributes(), Calls());
  launch(none, (48 << 10) + 4);
  EXPECT_EQ(takeAttributes(), Calls{"cuFuncSetAttribute 8 49156"});
  void *large = mgpuModuleGetFunction(module, "large");
  launch(large);
  EXPECT_EQ(takeAttributes(), Calls());
  launch(large, 4);
  EXPECT_EQ(takeAttributes(), Calls{"cuFuncSetAttribute 8 4"});
  EXPECT_EQ(fake::takeLaunches().size(), 4u);
}

TEST_F(LaunchTest, DynamicSharedMemoryOfManyThreads) {
  runInThreads([&](int i) {
    for (int j = 0; j < 20; ++j)
      launch(kernel, 50000 + 1000 * ((3 * i + j) % 8));
    EXPECT_EQ(bngradCudaTakeStatus(), 0);
  });
  EXPECT_EQ(fake::takeLaunches().size(), 160u);
  EXPECT_LE(takeAttributes().size(), 8u);
}

namespace {
class CarveoutTest : public LaunchTest {
protected:
  /// The carve-outs of the launches since the last time.
  static std::vector<int> takeCarveouts() {
    std::vector<int> result;
    for (const fake::Launch &launch : fake::takeLaunches())
      result.push_back(launch.carveout);
    return result;
  }
};
} // namespace

// 4 blocks of 17 KiB, the driver's part included, are 30 % of 228 KiB. Kernels
// with less have the same, as they could not overlap otherwise.
TEST_F(CarveoutTest, OneOfAllKernelsOfAModule) {
  fake::setKernel("reduce", {16 << 10, 512});
  fake::setKernel("reduce_0", {2 << 10, 512});
  fake::setKernel("finish", {1 << 10, 128});
  fake::setKernel("apply", {0, 512});
  void *module = loadModule();
  std::vector<void *> kernels;
  for (const char *name : {"apply", "reduce", "reduce_0", "finish", "missing"})
    kernels.push_back(mgpuModuleGetFunction(module, name));
  for (int i : {0, 1, 2, 3})
    launch(kernels[i]);
  EXPECT_EQ(takeCarveouts(), (std::vector<int>{30, 30, 30, 30}));
  // Kernels of another module have nothing to do with it. 16 blocks of 2 KiB.
  launch(mgpuModuleGetFunction(loadModule("another"), "finish"));
  EXPECT_EQ(takeCarveouts(), std::vector<int>{15});
}

TEST_F(CarveoutTest, GrowsWithKernelsThatAreAskedForLate) {
  fake::setKernel("late", {48 << 10, 128});
  fake::setKernel("first", {100, 250});
  void *module = loadModule();
  void *first = mgpuModuleGetFunction(module, "first");
  launch(first);
  // 8 blocks, as warps are whole, of 1.25 KiB.
  EXPECT_EQ(takeCarveouts(), std::vector<int>{5});
  launch(mgpuModuleGetFunction(module, "late"));
  launch(first);
  EXPECT_EQ(takeCarveouts(), (std::vector<int>{100, 100}));
}

TEST_F(CarveoutTest, DynamicSharedMemoryHasAll) {
  fake::setKernel("one_pass", {512, 256});
  fake::setKernel("reduce", {512, 256});
  void *module = loadModule();
  void *onePass = mgpuModuleGetFunction(module, "one_pass");
  void *reduce = mgpuModuleGetFunction(module, "reduce");
  launch(onePass, 1024);
  launch(reduce);
  launch(onePass);
  EXPECT_EQ(takeCarveouts(), (std::vector<int>{100, 6, 100}));
  // A kernel that is loaded later leaves it so.
  launch(mgpuModuleGetFunction(module, "kernel"));
  launch(onePass, 100000);
  launch(reduce);
  EXPECT_EQ(takeCarveouts(), (std::vector<int>{6, 100, 6}));
}

TEST_F(CarveoutTest, DriverThatRefusesIt) {
  fake::fail("cuFuncSetAttribute 9", 1);
  launch(kernel);
  launch(kernel, 100000);
  EXPECT_EQ(takeCarveouts(), (std::vector<int>{-1, -1}));
  EXPECT_EQ(takeAttributes(), Calls{"cuFuncSetAttribute 8 100000"});
}

TEST_F(LaunchTest, Clusters) {
  launchClusters(kernel, 1, 1, 1);
  launchClusters(kernel, 2, 2, 2);
  EXPECT_EQ(takeAttributes(), Calls());
  launchClusters(kernel, 4, 1, 4);
  launchClusters(kernel, 16, 1, 1);
  EXPECT_EQ(takeAttributes(), Calls{"cuFuncSetAttribute 14 1"});
  std::vector<fake::Launch> launches = fake::takeLaunches();
  ASSERT_EQ(launches.size(), 4u);
  EXPECT_EQ(launches[0].cluster, (std::array<unsigned, 3>{1, 1, 1}));
  EXPECT_EQ(launches[1].cluster, (std::array<unsigned, 3>{2, 2, 2}));
  EXPECT_EQ(launches[2].cluster, (std::array<unsigned, 3>{4, 1, 4}));
  EXPECT_EQ(launches[3].cluster, (std::array<unsigned, 3>{16, 1, 1}));
  EXPECT_EQ(launches[3].grid, (std::array<unsigned, 3>{16, 16, 16}));
  EXPECT_EQ(launches[3].block, (std::array<unsigned, 3>{128, 1, 1}));
}
