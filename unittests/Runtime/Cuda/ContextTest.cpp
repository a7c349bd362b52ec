//===- ContextTest.cpp - the context of a call ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaTest.h"

#include <thread>

namespace {
class ContextTest : public CudaTest {
protected:
  /// A device that no earlier test of the process has used. Which tests are in
  /// the process depends on the number of cores; others use the first devices.
  static int takeDevice() {
    static int device = fake::kNumDevices;
    return --device;
  }
};
} // namespace

TEST_F(ContextTest, CurrentContextIsUsed) {
  CUcontext context = fake::getCurrent();
  int device = takeDevice();
  mgpuSetDefaultDevice(device);
  launch(mgpuModuleGetFunction(loadModule(), "kernel"));
  mgpuSetDefaultDevice(0);
  std::vector<fake::Launch> launches = fake::takeLaunches();
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].context, context);
  EXPECT_EQ(fake::getCurrent(), context);
  EXPECT_EQ(fake::getPrimary(device), nullptr);
}

TEST_F(ContextTest, PrimaryContextOfTheDefaultDevice) {
  int device = takeDevice();
  fake::setCurrent(nullptr);
  void *kernel = mgpuModuleGetFunction(loadModule(), "kernel");
  launch(kernel);
  mgpuSetDefaultDevice(device);
  launch(kernel);
  launch(kernel);
  // The default device is thread-local.
  std::thread([&] { launch(kernel); }).join();
  mgpuSetDefaultDevice(0);
  EXPECT_EQ(fake::getCurrent(), nullptr) << "left current after the call";

  std::vector<fake::Launch> launches = fake::takeLaunches();
  ASSERT_EQ(launches.size(), 4u);
  EXPECT_EQ(launches[0].context, fake::getPrimary(0));
  EXPECT_EQ(launches[1].context, fake::getPrimary(device));
  EXPECT_EQ(launches[2].context, fake::getPrimary(device));
  EXPECT_EQ(launches[3].context, fake::getPrimary(0));
  int numRetained = 0;
  for (const std::string &call : fake::takeCalls())
    numRetained += call == "cuDevicePrimaryCtxRetain " + std::to_string(device);
  EXPECT_EQ(numRetained, 1);
}

TEST_F(ContextTest, DefaultDeviceThatIsNotThere) {
  fake::setCurrent(nullptr);
  for (int device : {-1, fake::kNumDevices}) {
    mgpuSetDefaultDevice(device);
    mgpuStreamSynchronize(nullptr);
    expectError(101, "cuDeviceGet of device " + std::to_string(device) +
                         ": CUDA_ERROR_INVALID_DEVICE (101): invalid device "
                         "ordinal");
  }
  mgpuSetDefaultDevice(0);
}

TEST_F(ContextTest, DeviceThatIsSet) {
  CUcontext context = fake::getCurrent();
  int device = takeDevice();
  void *kernel = mgpuModuleGetFunction(loadModule(), "kernel");
  std::vector<CUcontext> expected;
  for (CUcontext current : {context, CUcontext(nullptr)}) {
    fake::setCurrent(current);
    bngradCudaSetDevice(device);
    launch(kernel);
    EXPECT_EQ(fake::getCurrent(), current) << "left current after the call";
    expected.push_back(fake::getPrimary(device));
    // It is the thread's, and stronger than the default.
    mgpuSetDefaultDevice(0);
    launch(kernel);
    expected.push_back(fake::getPrimary(device));
    std::thread([&] {
      fake::setCurrent(context);
      launch(kernel);
    }).join();
    expected.push_back(context);
    bngradCudaResetDevice();
  }
  fake::setCurrent(context);
  launch(kernel);
  expected.push_back(context);
  // A context of the device, although it is not the primary one.
  bngradCudaSetDevice(kDevice);
  launch(kernel);
  expected.push_back(context);
  bngradCudaResetDevice();
  std::vector<CUcontext> actual;
  for (const fake::Launch &each : fake::takeLaunches())
    actual.push_back(each.context);
  EXPECT_EQ(actual, expected);
}

TEST_F(ContextTest, DeviceThatIsSetButNotThere) {
  bngradCudaSetDevice(fake::kNumDevices);
  mgpuStreamSynchronize(nullptr);
  expectError(101, "cuDeviceGet of device " +
                       std::to_string(fake::kNumDevices) +
                       ": CUDA_ERROR_INVALID_DEVICE (101): invalid device "
                       "ordinal");
  bngradCudaResetDevice();
}

// A module must not confuse a new context with the previous one at its address.
TEST_F(ContextTest, ContextAtTheAddressOfADestroyedOne) {
  void *module = loadModule();
  void *kernel = mgpuModuleGetFunction(module, "kernel");
  launch(kernel);
  void *stream = mgpuStreamCreate();
  mgpuStreamDestroy(stream);
  CUcontext old = fake::getCurrent();
  fake::destroyContext(old);
  ASSERT_EQ(fake::createContext(kDevice), old);
  fake::takeCalls();
  launch(kernel);
  mgpuStreamDestroy(mgpuStreamCreate());
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuModuleLoadDataEx module", "cuModuleGetFunction kernel",
                   "cuLaunchKernelEx kernel", "cuStreamCreate 1"}));
  unloadModule(module);
  EXPECT_EQ(fake::takeCalls(), Calls{"cuModuleUnload"});
}
