//===- CudaReadyTest.cpp - the ready kernels for GPUs on the emulator -----===//
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
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>

using namespace bngrad::test;

namespace {
/// A handle of the emulator, without a compiler and without a cache on disk.
class CudaReady : public testing::Test {
protected:
  void SetUp() override {
    setenv("BNGRAD_COMPILER", "", 1);
    setenv("BNGRAD_CACHE_DIR", "", 1);
    ASSERT_EQ(bngradCreateHandle(&handle, BNGRAD_DEVICE_CUDA_EMULATOR, 0),
              BNGRAD_SUCCESS)
        << bngradGetLastError();
  }
  void TearDown() override {
    EXPECT_EQ(bngradCudaTakeStatus(), 0);
    bngradDestroyHandle(handle);
    unsetenv("BNGRAD_COMPILER");
    unsetenv("BNGRAD_CACHE_DIR");
  }

  bngradHandle_t handle = nullptr;
};
} // namespace

static const bngradDtype_t kReadyTypes[] = {BNGRAD_DTYPE_F16, BNGRAD_DTYPE_BF16,
                                            BNGRAD_DTYPE_F32};

static bool isReady(const char *description) {
  return std::string(description).find("kernel=ready\n") != std::string::npos;
}

/// Runs a gradient at aligned and at unaligned addresses.
static void runReady(const Spec &spec, bngradHandle_t handle) {
  for (bool isUnaligned : {false, true}) {
    SCOPED_TRACE(spec.print() + (isUnaligned ? " unaligned" : ""));
    DeviceGradient gradient(spec, handle, isUnaligned);
    ASSERT_EQ(gradient.status, BNGRAD_SUCCESS) << bngradGetLastError();
    char text[1024];
    ASSERT_EQ(bngradDescribeBatchNormBackward(gradient.host.descriptor, text,
                                              sizeof(text)),
              BNGRAD_SUCCESS);
    EXPECT_TRUE(isReady(text)) << text;
    ASSERT_EQ(gradient.run(nullptr), BNGRAD_SUCCESS) << bngradGetLastError();
    EXPECT_EQ(gradient.host.check(), "");
  }
}

static void runReady(const ForwardSpec &spec, bngradHandle_t handle) {
  for (bool isUnaligned : {false, true}) {
    SCOPED_TRACE(spec.print() + (isUnaligned ? " unaligned" : ""));
    DeviceForward forward(spec, handle, isUnaligned);
    ASSERT_EQ(forward.status, BNGRAD_SUCCESS) << bngradGetLastError();
    char text[1024];
    ASSERT_EQ(forward.host.training
                  ? bngradDescribeBatchNormTraining(forward.host.training, text,
                                                    sizeof(text))
                  : bngradDescribeBatchNormInference(forward.host.inference,
                                                     text, sizeof(text)),
              BNGRAD_SUCCESS);
    EXPECT_TRUE(isReady(text)) << text;
    ASSERT_EQ(forward.run(nullptr), BNGRAD_SUCCESS) << bngradGetLastError();
    EXPECT_EQ(forward.host.check(), "");
  }
}

/// Each kernel, in each layout, at sizes that are small, odd, 1 or 0.
static std::vector<Spec> makeReadySpecs() {
  std::vector<Spec> specs;
  auto add = [&](std::vector<int64_t> shape, std::vector<int> order = {}) {
    Spec spec;
    spec.shape = std::move(shape);
    spec.order = std::move(order);
    spec.isInvStd = true;
    specs.push_back(spec);
    spec.isGlobal = true;
    specs.push_back(spec);
  };
  add({3, 4, 9});
  add({2, 5, 16});
  add({5, 19, 7}, {0, 2, 1});
  add({33, 8});
  add({1, 5});
  add({30, 1, 70});
  add({1, 3, 1025});
  add({0, 5});
  add({3, 0, 2});
  add({600, 3});
  return specs;
}

TEST_F(CudaReady, Gradients) {
  for (bngradDtype_t type : kReadyTypes)
    for (Spec spec : makeReadySpecs()) {
      spec.dataType = type;
      runReady(spec, handle);
    }
}

// Parameters and results of other types and strides, a variance, no scale, and
// some of the gradients.
TEST_F(CudaReady, GradientsOfAnyVectors) {
  Spec spec;
  spec.shape = {5, 7, 9};
  for (bngradDtype_t type : kReadyTypes)
    for (bool isGlobal : {false, true})
      for (int wants = 1; wants < 8; ++wants) {
        spec.dataType = type;
        spec.isGlobal = isGlobal;
        spec.parameterType = wants % 2 ? type : BNGRAD_DTYPE_F32;
        spec.resultType = wants % 3 ? type : BNGRAD_DTYPE_F64;
        spec.parameterStride = 1 + wants % 2;
        spec.isInvStd = wants % 4 == 0;
        spec.hasScale = wants % 5 != 0;
        spec.seed = wants;
        for (int i = 0; i < 3; ++i)
          spec.wants[i] = (wants >> i & 1) != 0;
        spec.inPlaceOf = wants == 3   ? GradOutput
                         : wants == 7 ? Input
                                      : GradInput;
        runReady(spec, handle);
      }
}

TEST_F(CudaReady, RandomGradients) {
  Specs random(5);
  for (int i = 0, count = isLongTest() ? 300 : 20; i < count;) {
    Spec spec = random.next();
    if (spec.dataType == BNGRAD_DTYPE_F64 ||
        spec.parameterType == BNGRAD_DTYPE_F64)
      continue;
    spec.hasMask = false;
    runReady(spec, handle);
    ++i;
  }
}

TEST_F(CudaReady, Halves) {
  for (bngradDtype_t type : kReadyTypes)
    for (Spec spec : makeReadySpecs()) {
      if (spec.isGlobal)
        continue;
      spec.dataType = type;
      spec.wants[GradScale] = spec.wants[GradOffset] = false;
      spec.parameterType = type;
      spec.isInvStd = spec.shape[0] % 2 != 0;
      SCOPED_TRACE(spec.print());
      Gradient gradient(spec);
      ASSERT_EQ(gradient.createHalves(handle), BNGRAD_SUCCESS)
          << bngradGetLastError();
      ASSERT_EQ(runHalvesOnDevice(gradient), BNGRAD_SUCCESS)
          << bngradGetLastError();
      EXPECT_EQ(gradient.checkHalves(), "");
    }
}

TEST_F(CudaReady, ForwardPasses) {
  for (bngradDtype_t type : kReadyTypes)
    for (const Spec &shape : makeReadySpecs())
      for (bool isUnbiased : {false, true}) {
        // One specification of each shape.
        if (shape.isGlobal)
          continue;
        ForwardSpec spec;
        spec.layout = {shape.shape, {1}, shape.order};
        spec.dataType = spec.outputType = type;
        spec.isUnbiased = isUnbiased;
        spec.wants[1] = spec.wants[3] = isUnbiased;
        // The rounding residual of the mean is not lost.
        spec.location = isUnbiased ? 1000 : 1;
        runReady(spec, handle);
        // As PyTorch's batch_norm_stats.
        spec.wants[0] = false;
        spec.wants[1] = spec.wants[2] = true;
        spec.hasRunning = isUnbiased;
        runReady(spec, handle);
        spec.isInference = true;
        spec.isInvStd = isUnbiased;
        spec.wants[0] = true;
        spec.wants[1] = spec.wants[2] = spec.wants[3] = false;
        runReady(spec, handle);
      }
}

TEST_F(CudaReady, RandomForwardPasses) {
  std::mt19937 random(3);
  for (int i = 0, count = isLongTest() ? 300 : 20; i < count;) {
    ForwardSpec spec = makeForwardSpec(random);
    // Two feature dims are apart, or in another order in data and parameters.
    if (spec.dataType == BNGRAD_DTYPE_F64 ||
        spec.parameterType == BNGRAD_DTYPE_F64 ||
        spec.layout.featureDims.size() > 1)
      continue;
    spec.outputType = spec.dataType;
    spec.dataStride = 1;
    runReady(spec, handle);
    ++i;
  }
}

// Each thread has a stream, data and a workspace of its own.
TEST_F(CudaReady, ThreadsWithStreams) {
  constexpr int kThreads = 4, kCalls = 3;
  ForwardSpec spec;
  spec.layout = {{5, 6, 7}, {1}, {}};
  spec.dataType = spec.outputType = BNGRAD_DTYPE_BF16;
  // Converted in the workspace.
  spec.parameterType = spec.runningType = BNGRAD_DTYPE_BF16;
  std::vector<std::unique_ptr<DeviceForward>> forwards;
  for (int i = 0; i < kThreads; ++i) {
    forwards.push_back(std::make_unique<DeviceForward>(spec, handle));
    ASSERT_EQ(forwards[i]->status, BNGRAD_SUCCESS) << bngradGetLastError();
  }
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (auto &forward : forwards)
    threads.emplace_back([&] {
      void *stream = mgpuStreamCreate();
      for (int i = 0; i < kCalls; ++i) {
        EXPECT_EQ(forward->run(stream), BNGRAD_SUCCESS) << bngradGetLastError();
        EXPECT_EQ(forward->host.check(), "");
      }
      mgpuStreamDestroy(stream);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (auto &forward : forwards)
    EXPECT_EQ(forward->host.results(), forwards[0]->host.results());
}

// The emulator finds that data are in host memory.
TEST_F(CudaReady, Faults) {
  Spec spec;
  spec.shape = {4, 6, 5};
  DeviceGradient gradient(spec, handle);
  ASSERT_EQ(gradient.status, BNGRAD_SUCCESS) << bngradGetLastError();
  void *address = std::exchange(gradient.data[Input],
                                gradient.host.arrays[Input].memory.data());
  EXPECT_EQ(gradient.host.runAsync(nullptr, nullptr), BNGRAD_INTERNAL_ERROR);
  EXPECT_STRNE(bngradGetLastError(), "");
  // The next call is right again.
  gradient.data[Input] = address;
  EXPECT_EQ(gradient.run(nullptr), BNGRAD_SUCCESS) << bngradGetLastError();
  EXPECT_EQ(gradient.host.check(), "");
}

/// The error of a gradient that no ready kernel covers.
static std::string getUncovered(const Spec &spec, bngradHandle_t handle) {
  Gradient gradient(spec);
  EXPECT_EQ(gradient.create(handle), BNGRAD_COMPILER_NOT_FOUND)
      << bngradGetLastError();
  return bngradGetLastError();
}

TEST_F(CudaReady, Uncovered) {
  const std::string start = "expected a ready kernel or libBNGradCompiler.so "
                            "of the package bngrad-compiler: ";
  const std::string end = ", and BNGRAD_COMPILER is empty";
  Spec mask;
  mask.hasMask = true;
  EXPECT_EQ(getUncovered(mask, handle), start + "it has a mask" + end);
  Spec wide;
  wide.dataType = BNGRAD_DTYPE_F64;
  EXPECT_EQ(getUncovered(wide, handle), start + "its data are of f64" + end);
  wide.dataType = BNGRAD_DTYPE_F16;
  wide.parameterType = BNGRAD_DTYPE_F64;
  EXPECT_EQ(getUncovered(wide, handle),
            start + "its parameters are of f64, its data are not" + end);
  Spec apart;
  apart.featureDims = {0, 2};
  EXPECT_EQ(getUncovered(apart, handle),
            start + "its feature dims are apart in memory" + end);
  Spec gaps;
  gaps.dataStride = 2;
  EXPECT_EQ(getUncovered(gaps, handle), start + "its data have gaps" + end);
}

TEST_F(CudaReady, Description) {
  Spec spec;
  spec.shape = {3, 6, 9};
  spec.order = {0, 2, 1};
  spec.dataType = BNGRAD_DTYPE_BF16;
  Gradient gradient(spec);
  ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS) << bngradGetLastError();
  char text[1024];
  ASSERT_EQ(
      bngradDescribeBatchNormBackward(gradient.descriptor, text, sizeof(text)),
      BNGRAD_SUCCESS);
  EXPECT_EQ(std::string(text),
            "part=whole\nkernel=ready\nchip=sm_90\ndata=bf16\nform=rows\n"
            "outer=27\nchannels=6\ninner=1\n");
}
