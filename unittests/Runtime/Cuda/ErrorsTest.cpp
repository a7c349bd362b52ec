//===- ErrorsTest.cpp - messages, status, handler ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaTest.h"

#include <algorithm>
#include <thread>

namespace {
class ErrorsTest : public CudaTest {};
} // namespace

// Each runtime function of generated code, with a failing driver function.
TEST_F(ErrorsTest, TextOfEachCall) {
  void *kernel = mgpuModuleGetFunction(loadModule(), "bn_reduce");
  launch(kernel);
  void *event = mgpuEventCreate();
  void *memory = mgpuMemAlloc(16, nullptr, 0);
  void *shared = mgpuMemAlloc(16, nullptr, 1);
  float data[4] = {};
  struct {
    void *allocated, *aligned;
    int64_t offset, size, stride;
  } memref = {data, data, 0, 4, 1};

  auto expectFailure = [&](const std::string &function, auto call,
                           const std::string &kernel = "") {
    fake::fail(function, 1);
    call();
    fake::succeedAgain();
    expectError(1, function + (kernel.empty() ? "" : " of '" + kernel + "'") +
                       " on device 1 (NVIDIA Fake): CUDA_ERROR_INVALID_VALUE "
                       "(1): invalid argument");
  };
  expectFailure("cuLaunchKernelEx", [&] { launch(kernel); }, "bn_reduce");
  expectFailure(
      "cuFuncSetAttribute", [&] { launch(kernel, 100000); }, "bn_reduce");
  expectFailure(
      "cuFuncSetAttribute",
      [&] {
        mgpuLaunchClusterKernel(kernel, 16, 1, 1, 16, 1, 1, 1, 1, 1, 0, nullptr,
                                nullptr, nullptr);
      },
      "bn_reduce");
  void *other = mgpuModuleGetFunction(loadModule(), "other");
  expectFailure("cuModuleLoadDataEx", [&] { launch(other); });
  expectFailure("cuModuleGetFunction", [&] { launch(other); }, "other");
  expectFailure("cuFuncGetAttribute", [&] { launch(other); }, "other");
  expectFailure("cuStreamCreate", [] { EXPECT_FALSE(mgpuStreamCreate()); });
  expectFailure("cuStreamSynchronize", [] { mgpuStreamSynchronize(nullptr); });
  expectFailure("cuStreamWaitEvent",
                [&] { mgpuStreamWaitEvent(nullptr, event); });
  expectFailure("cuEventCreate", [] { EXPECT_FALSE(mgpuEventCreate()); });
  expectFailure("cuEventSynchronize", [&] { mgpuEventSynchronize(event); });
  expectFailure("cuEventRecord", [&] { mgpuEventRecord(event, nullptr); });
  expectFailure("cuMemAllocFromPoolAsync",
                [] { EXPECT_FALSE(mgpuMemAlloc(4, nullptr, 0)); });
  expectFailure("cuMemAllocManaged",
                [] { EXPECT_FALSE(mgpuMemAlloc(4, nullptr, 1)); });
  expectFailure("cuMemcpyAsync", [&] { mgpuMemcpy(memory, data, 4, nullptr); });
  expectFailure("cuMemsetD16Async",
                [&] { mgpuMemset16(memory, 0, 1, nullptr); });
  expectFailure("cuMemsetD32Async",
                [&] { mgpuMemset32(memory, 0, 1, nullptr); });
  expectFailure("cuMemFreeAsync", [&] { mgpuMemFree(memory, nullptr); });
  expectFailure("cuMemFree", [&] { mgpuMemFree(shared, nullptr); });
  expectFailure("cuMemHostRegister",
                [&] { mgpuMemHostRegisterMemRef(1, &memref, 4); });
  expectFailure("cuMemHostUnregister",
                [&] { mgpuMemHostUnregisterMemRef(1, &memref, 4); });

  fake::setCurrent(fake::createContext(kDevice));
  expectFailure("cuMemPoolCreate",
                [] { EXPECT_FALSE(mgpuMemAlloc(4, nullptr, 0)); });
  expectFailure("cuMemPoolSetAttribute",
                [] { EXPECT_FALSE(mgpuMemAlloc(4, nullptr, 0)); });
  EXPECT_EQ(bngradCudaTakeStatus(), 0);
}

TEST_F(ErrorsTest, CodeTheDriverDoesNotKnow) {
  fake::fail("cuStreamSynchronize", 4321);
  mgpuStreamSynchronize(nullptr);
  expectError(4321, "cuStreamSynchronize on device 1 (NVIDIA Fake): unknown "
                    "error (4321)");
}

TEST_F(ErrorsTest, NothingButReleasesUntilTheStatusIsTaken) {
  void *module = loadModule();
  void *kernel = mgpuModuleGetFunction(module, "kernel");
  void *stream = mgpuStreamCreate();
  void *event = mgpuEventCreate();
  void *memory = mgpuMemAlloc(16, stream, 0);
  float data = 0;
  struct {
    void *allocated, *aligned;
    int64_t offset;
  } memref = {&data, &data, 0};
  mgpuMemHostRegisterMemRef(0, &memref, sizeof(data));
  fake::fail("cuStreamSynchronize", 1);
  mgpuStreamSynchronize(stream);
  fake::fail("cuStreamSynchronize", 2);
  fake::takeCalls();

  bngradCudaImage_t image = {"sm_90", BNGRAD_CUDA_IMAGE_PTX, 2, 4, "ptx"};
  EXPECT_EQ(loadModule(), nullptr);
  EXPECT_EQ(mgpuModuleLoadJIT(memory, 2), nullptr);
  EXPECT_EQ(bngradCudaModuleLoad(&image, 1), nullptr);
  EXPECT_EQ(mgpuModuleGetFunction(module, "kernel"), nullptr);
  EXPECT_EQ(mgpuStreamCreate(), nullptr);
  EXPECT_EQ(mgpuEventCreate(), nullptr);
  EXPECT_EQ(mgpuMemAlloc(16, stream, 0), nullptr);
  launch(kernel);
  launch(nullptr);
  mgpuStreamSynchronize(stream);
  mgpuStreamWaitEvent(stream, event);
  mgpuEventRecord(event, stream);
  mgpuEventSynchronize(event);
  mgpuMemcpy(memory, memory, 4, stream);
  mgpuMemset16(memory, 0, 1, stream);
  mgpuMemset32(memory, 0, 1, stream);
  mgpuMemHostRegisterMemRef(0, &memref, sizeof(data));
  mgpuSetDefaultDevice(9);
  EXPECT_EQ(bngradCudaGetCapability(), 0);
  EXPECT_EQ(fake::takeCalls(), Calls());

  // Another thread has no error.
  std::thread([&] {
    fake::setCurrent(static_cast<CUcontext>(nullptr));
    EXPECT_NE(mgpuStreamCreate(), nullptr);
    EXPECT_EQ(bngradCudaTakeStatus(), 0);
  }).join();

  // The thread can release its resources.
  fake::takeCalls();
  mgpuMemFree(memory, stream);
  mgpuMemHostUnregisterMemRef(0, &memref, sizeof(data));
  unloadModule(module);
  mgpuEventDestroy(event);
  mgpuStreamDestroy(stream);
  EXPECT_EQ(fake::takeCalls(),
            (Calls{"cuMemFreeAsync", "cuMemHostUnregister"}));

  expectError(1, "cuStreamSynchronize on device 1 (NVIDIA Fake): "
                 "CUDA_ERROR_INVALID_VALUE (1): invalid argument");
}

TEST_F(ErrorsTest, HandlerMayTakeItselfAway) {
  static int numErrors;
  numErrors = 0;
  bngradCudaSetErrorHandler(
      [](const char *, void *) {
        ++numErrors;
        bngradCudaSetErrorHandler(nullptr, nullptr);
      },
      nullptr);
  mgpuEventSynchronize(nullptr);
  EXPECT_EQ(bngradCudaTakeStatus(), 400);
  ::testing::internal::CaptureStderr();
  mgpuEventSynchronize(nullptr);
  EXPECT_EQ(bngradCudaTakeStatus(), 400);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "bngrad: error: cuEventSynchronize on device 1 (NVIDIA Fake): "
            "CUDA_ERROR_INVALID_HANDLE (400): invalid resource handle\n");
  EXPECT_EQ(numErrors, 1);
}

TEST_F(ErrorsTest, HandlerOfManyThreads) {
  runInThreads([&](int) {
    for (int j = 0; j < 50; ++j) {
      mgpuEventSynchronize(nullptr);
      EXPECT_EQ(bngradCudaTakeStatus(), 400);
    }
  });
  std::string errors = takeErrors();
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 400);
}
