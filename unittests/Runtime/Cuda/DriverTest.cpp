//===- DriverTest.cpp - loading the driver and NVTX -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each test runs in its own process, in which no driver is loaded yet.
//
//===----------------------------------------------------------------------===//

#include "CudaTest.h"

namespace {
class DriverTest : public CudaTest {};
} // namespace

[[noreturn]] static void launchWithoutDriver() {
  setenv("BNGRAD_CUDA_DRIVER", "libnone.so", 1);
  bngradCudaSetErrorHandler(nullptr, nullptr);
  bngradCudaImage_t image = {"sm_90", BNGRAD_CUDA_IMAGE_PTX, 2, 4, "ptx"};
  void *modules[] = {loadModule(), loadPtx("ptx", 2),
                     bngradCudaModuleLoad(&image, 1)};
  void *kernel = nullptr;
  for (void *module : modules)
    kernel = mgpuModuleGetFunction(module, "kernel");
  unloadModule(modules[0]);
  mgpuSetDefaultDevice(3);
  mgpuMemFree(mgpuMemAlloc(0, nullptr, 0), nullptr);
  if (fake::countAllCalls() != 0 || bngradCudaTakeStatus() != 0)
    std::exit(1);
  launch(kernel);
  unloadModule(modules[1]);
  unloadModule(modules[2]);
  std::exit(bngradCudaTakeStatus() == -1 ? 0 : 2);
}

TEST_F(DriverTest, DriverIsLoadedByTheFirstLaunch) {
  EXPECT_EXIT(
      launchWithoutDriver(), ::testing::ExitedWithCode(0),
      "^bngrad: error: cannot load libnone.so: libnone.so: .*No such file or "
      "directory; expected an NVIDIA driver\n$");
}

TEST_F(DriverTest, EveryCallFailsWithoutADriver) {
  EXPECT_EXIT(
      {
        setenv("BNGRAD_CUDA_DRIVER", "libnone.so", 1);
        bngradCudaSetErrorHandler(nullptr, nullptr);
        if (mgpuStreamCreate() || bngradCudaTakeStatus() != -1)
          std::exit(1);
        std::exit(mgpuMemAlloc(4, nullptr, 0) ? 2 : 0);
      },
      ::testing::ExitedWithCode(0),
      "^(bngrad: error: cannot load libnone.so: .*\n){2}$");
}

TEST_F(DriverTest, LibraryThatIsNoDriver) {
  EXPECT_EXIT(
      {
        setenv("BNGRAD_CUDA_DRIVER", "libm.so.6", 1);
        bngradCudaSetErrorHandler(nullptr, nullptr);
        mgpuStreamSynchronize(nullptr);
        std::exit(bngradCudaTakeStatus() == -1 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0),
      "^bngrad: error: libm.so.6 has no cuInit; expected a driver of CUDA 11.8 "
      "or newer\n$");
}

TEST_F(DriverTest, DriverWithoutADevice) {
  EXPECT_EXIT(
      {
        fake::fail("cuInit", 100);
        bngradCudaSetErrorHandler(nullptr, nullptr);
        mgpuStreamSynchronize(nullptr);
        std::exit(bngradCudaTakeStatus() == 100 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0),
      "^bngrad: error: cuInit: CUDA_ERROR_NO_DEVICE \\(100\\): no CUDA-capable "
      "device is detected\n$");
}

TEST_F(DriverTest, RangesForProfilers) {
  EXPECT_EXIT(
      {
        setenv("NVTX_INJECTION64_PATH", "libfakecuda.so", 1);
        launch(mgpuModuleGetFunction(loadModule(), "bn_reduce"));
        mgpuStreamSynchronize(nullptr);
        int data = 0;
        mgpuMemcpy(&data, &data, 4, nullptr);
        for (const std::string &call : fake::takeCalls())
          fprintf(stderr, "%s\n", call.c_str());
        std::exit(bngradCudaTakeStatus());
      },
      ::testing::ExitedWithCode(0),
      "^push bn_reduce\n"
      "push bngrad: module load\n"
      "cuModuleLoadDataEx module\n"
      "pop\n"
      "cuModuleGetFunction bn_reduce\n"
      "cuLaunchKernelEx bn_reduce\n"
      "pop\n"
      "push bngrad: stream synchronize\n"
      "cuStreamSynchronize\n"
      "pop\n"
      "push bngrad: copy\n"
      "cuMemcpyAsync 4\n"
      "pop\n$");
}
