//===- CudaTest.cpp - the C library on the emulator of CUDA ---------------===//
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
#include <cstring>

#include <link.h>

using namespace bngrad::test;

/// Gradients of all kinds of results and layouts, small as they are emulated.
static std::vector<Spec> makeCudaSpecs() {
  Spec planes;
  planes.shape = {3, 4, 9};
  Spec rows = planes;
  rows.order = {0, 2, 1};
  rows.hasMask = true;
  rows.dataType = BNGRAD_DTYPE_F16;
  Spec global = planes;
  global.isGlobal = true;
  global.inPlaceOf = GradOutput;
  global.isInvStd = true;
  Spec apart = planes;
  apart.featureDims = {0, 2};
  apart.parameterStride = 2;
  Spec none = planes;
  none.wants[GradInput] = false;
  none.dataType = BNGRAD_DTYPE_BF16;
  // Parameters of another type than arithmetic.
  Spec narrow = apart;
  narrow.parameterType = BNGRAD_DTYPE_BF16;
  narrow.resultType = BNGRAD_DTYPE_F16;
  // Nothing to sum over, and one channel.
  Spec single;
  single.shape = {1, 5};
  Spec channel;
  channel.shape = {30, 1, 70};
  std::vector<Spec> specs = {planes, rows,   global, apart,
                             none,   narrow, single, channel};
  Specs random(1);
  for (int i = 0, count = isLongTest() ? 40 : 0; i < count; ++i)
    specs.push_back(random.next());
  return specs;
}

TEST(Cuda, Emulator) {
  setenv("BNGRAD_CACHE_DIR", "", 1);
  bngradHandle_t handle = nullptr;
  ASSERT_EQ(bngradCreateHandle(&handle, BNGRAD_DEVICE_CUDA_EMULATOR, 0),
            BNGRAD_SUCCESS)
      << bngradGetLastError();
  void *stream = mgpuStreamCreate();
  std::vector<Spec> specs = makeCudaSpecs();
  for (size_t i = 0; i < 2 * specs.size(); ++i) {
    const Spec &spec = specs[i / 2];
    bool isUnaligned = i % 2 != 0;
    SCOPED_TRACE(spec.print() + (isUnaligned ? " unaligned" : ""));
    DeviceGradient gradient(spec, handle, isUnaligned);
    ASSERT_EQ(gradient.status, BNGRAD_SUCCESS) << bngradGetLastError();
    // An event for each gradient.
    bngradCompletion_t done[3] = {};
    for (bngradCompletion_t &completion : done)
      completion.context = mgpuEventCreate();
    ASSERT_EQ(gradient.run(stream, done), BNGRAD_SUCCESS)
        << bngradGetLastError();
    EXPECT_EQ(gradient.host.check(), "");
    for (bngradCompletion_t &completion : done) {
      mgpuEventSynchronize(completion.context);
      mgpuEventDestroy(completion.context);
    }
    EXPECT_EQ(bngradCudaTakeStatus(), 0);
  }
  mgpuStreamDestroy(stream);
  bngradDestroyHandle(handle);
  unsetenv("BNGRAD_CACHE_DIR");
}

/// The kernels in this process, which are files in memory.
static int countKernels() {
  int count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *count) {
        *static_cast<int *>(count) += !!std::strstr(info->dlpi_name, "/fd/");
        return 0;
      },
      &count);
  return count;
}

/// epsilon is an argument of the kernel, whatever the type of the parameters.
TEST(Cuda, Epsilon) {
  setenv("BNGRAD_CACHE_DIR", "", 1);
  bngradHandle_t handle = nullptr;
  ASSERT_EQ(bngradCreateHandle(&handle, BNGRAD_DEVICE_CUDA_EMULATOR, 0),
            BNGRAD_SUCCESS)
      << bngradGetLastError();
  void *stream = mgpuStreamCreate();
  for (bngradDtype_t type : {BNGRAD_DTYPE_F32, BNGRAD_DTYPE_BF16}) {
    // No other test has these types.
    Spec spec;
    spec.dataType = BNGRAD_DTYPE_F16;
    spec.parameterType = type;
    spec.resultType = BNGRAD_DTYPE_F64;
    int before = countKernels();
    for (double epsilon : {0.0, 1e-3, 0.5}) {
      spec.epsilon = epsilon;
      DeviceGradient gradient(spec, handle);
      ASSERT_EQ(gradient.status, BNGRAD_SUCCESS) << bngradGetLastError();
      ASSERT_EQ(gradient.run(stream), BNGRAD_SUCCESS) << bngradGetLastError();
      EXPECT_EQ(gradient.host.check(), "");
    }
    EXPECT_EQ(countKernels() - before, 1);
  }
  mgpuStreamDestroy(stream);
  bngradDestroyHandle(handle);
  unsetenv("BNGRAD_CACHE_DIR");
}

TEST(Cuda, Halves) {
  setenv("BNGRAD_CACHE_DIR", "", 1);
  bngradHandle_t handle = nullptr;
  ASSERT_EQ(bngradCreateHandle(&handle, BNGRAD_DEVICE_CUDA_EMULATOR, 0),
            BNGRAD_SUCCESS)
      << bngradGetLastError();
  Spec spec;
  spec.shape = {3, 4, 9};
  spec.wants[GradScale] = spec.wants[GradOffset] = false;
  {
    Gradient gradient(spec);
    ASSERT_EQ(gradient.createHalves(handle), BNGRAD_SUCCESS)
        << bngradGetLastError();
    EXPECT_EQ(runHalvesOnDevice(gradient), BNGRAD_SUCCESS)
        << bngradGetLastError();
    EXPECT_EQ(gradient.checkHalves(), "");
  }
  bngradDestroyHandle(handle);
  unsetenv("BNGRAD_CACHE_DIR");
}

TEST(Cuda, Errors) {
  setenv("BNGRAD_CACHE_DIR", "", 1);
  bngradHandle_t handle = nullptr;
  // No driver, or none that is one.
  setenv("BNGRAD_CUDA_DRIVER", "/none/libcuda.so", 1);
  EXPECT_EQ(bngradCreateHandle(&handle, BNGRAD_DEVICE_CUDA, 0),
            BNGRAD_DEVICE_NOT_SUPPORTED);
  EXPECT_EQ(std::string(bngradGetLastError()).substr(0, 42),
            "device: expected a device that can be used");
  EXPECT_NE(std::string(bngradGetLastError()).find("/none/libcuda.so"),
            std::string::npos)
      << bngradGetLastError();
  EXPECT_EQ(handle, nullptr);

  ASSERT_EQ(bngradCreateHandle(&handle, BNGRAD_DEVICE_CUDA_EMULATOR, 0),
            BNGRAD_SUCCESS)
      << bngradGetLastError();
  Spec spec;
  DeviceGradient gradient(spec, handle);
  ASSERT_EQ(gradient.status, BNGRAD_SUCCESS) << bngradGetLastError();
  ASSERT_EQ(gradient.run(nullptr), BNGRAD_SUCCESS) << bngradGetLastError();
  ASSERT_EQ(gradient.host.check(), "");

  bngradExecutor_t executor = {
      sizeof(executor), nullptr,
      [](void *, void (*)(void *), void *) { return 0; }};
  EXPECT_EQ(gradient.host.runAsync(&executor, nullptr), BNGRAD_BAD_PARAM);
  EXPECT_EQ(std::string(bngradGetLastError()).substr(0, 10), "executor: ");
  bngradCompletion_t done[3] = {};
  done[GradScale].function = [](void *, bngradStatus_t, const char *) {};
  EXPECT_EQ(gradient.host.runAsync(nullptr, done), BNGRAD_BAD_PARAM);
  EXPECT_STREQ(bngradGetLastError(),
               "done: expected an event for grad_scale on "
               "a GPU, got a function");
  // Memory of the host is none of the device.
  EXPECT_EQ(gradient.host.runAsync(nullptr, nullptr), BNGRAD_INTERNAL_ERROR);
  EXPECT_STRNE(bngradGetLastError(), "");
  // The next call is right again.
  EXPECT_EQ(gradient.run(nullptr), BNGRAD_SUCCESS) << bngradGetLastError();
  EXPECT_EQ(gradient.host.check(), "");
  bngradDestroyHandle(handle);
  unsetenv("BNGRAD_CUDA_DRIVER");
  unsetenv("BNGRAD_CACHE_DIR");
}
