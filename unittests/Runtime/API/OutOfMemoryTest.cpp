//===- OutOfMemoryTest.cpp - memory that runs out in the C library --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../FailingNew.h"
#include "Gradient.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

using namespace bngrad::test;

/// Creates all objects of `gradient`, which has tensors, and computes it on the
/// calling thread.
static bngradStatus_t compute(Gradient &gradient) {
  static char workspace[1 << 16];
  const bngrad_threads_t threads = makeReversedThreads(1);
  const int64_t size = 3;
  bngradHandle_t handle = nullptr;
  bngradTensorDescriptor_t tensor = nullptr;
  bngradBatchNormBackwardDescriptor_t descriptor = nullptr;
  auto &t = gradient.tensors;
  bngradStatus_t status = bngradCreateHandle(&handle, BNGRAD_DEVICE_CPU, 0);
  if (!status)
    status = bngradSetThreads(handle, &threads);
  if (!status)
    status = bngradCreateTensorDescriptor(&tensor, BNGRAD_DTYPE_F32, 1, &size,
                                          nullptr);
  if (!status)
    status = bngradCreateBatchNormBackwardDescriptor(
        handle, &descriptor, &gradient.options, t[GradInput], t[GradScale],
        t[GradOffset], t[GradOutput], t[Input], t[Scale], t[Mean], t[Statistic],
        t[Mask]);
  if (!status)
    status = bngradBatchNormBackward(
        descriptor, workspace, sizeof(workspace), gradient.data(GradInput),
        gradient.data(GradScale), gradient.data(GradOffset),
        gradient.data(GradOutput), gradient.data(Input), gradient.data(Scale),
        gradient.data(Mean), gradient.data(Statistic), gradient.data(Mask),
        nullptr);
  bngradDestroyBatchNormBackwardDescriptor(descriptor);
  bngradDestroyTensorDescriptor(tensor);
  bngradDestroyHandle(handle);
  return status;
}

namespace {
enum Outcome { Right, RightWithoutFailure, Wrong };
} // namespace

/// Runs `run` in a child of this process.
static Outcome runInChild(const std::function<Outcome()> &run) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    Outcome outcome = run();
    _exit(testing::Test::HasFailure() ? Wrong : outcome);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
    return Wrong;
  return static_cast<Outcome>(WEXITSTATUS(status));
}

TEST(OutOfMemory, ReadyKernel) {
  bngradHandle_t handle = nullptr;
  ASSERT_EQ(bngradCreateHandle(&handle, BNGRAD_DEVICE_CPU, 0), BNGRAD_SUCCESS);
  {
    Gradient gradient((Spec()));
    ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS);
    int failures = 0;
    for (bool forever : {false, true})
      for (long number = 1;; ++number) {
        bngradStatus_t status = BNGRAD_SUCCESS;
        FailedNew failed = callWithFailingNew(
            number, forever, [&] { status = compute(gradient); });
        EXPECT_EQ(failed.numLive, 0) << number;
        if (!failed.hasFailed) {
          EXPECT_EQ(status, BNGRAD_SUCCESS);
          break;
        }
        EXPECT_EQ(status, BNGRAD_INTERNAL_ERROR) << number;
        EXPECT_STREQ(bngradGetLastError(), "out of memory");
        ++failures;
      }
    EXPECT_EQ(failures, 8);
  }
  bngradDestroyHandle(handle);
}

namespace {
/// A gradient whose kernel is compiled, and a cache on disk that has it. The
/// kernel is not loaded in this process, but in its children.
class CompiledOutOfMemory : public testing::Test {
protected:
  void SetUp() override {
    // That of the first process, in the one that compiles.
    char name[] = "/tmp/bngrad-XXXXXX";
    const char *given = std::getenv(kVariable);
    folder = given ? given : mkdtemp(name);
    setenv(kVariable, folder.c_str(), 1);
    setenv("BNGRAD_CACHE_DIR", folder.c_str(), 1);
    Spec spec;
    spec.featureDims = {0, 2};
    spec.hasMask = true;
    // Of no other test, which would have loaded it.
    spec.dataType = BNGRAD_DTYPE_F16;
    spec.resultType = BNGRAD_DTYPE_BF16;
    gradient = std::make_unique<Gradient>(spec);
    // Without a compiler the gradient has its tensors alone.
    setenv("BNGRAD_COMPILER", "", 1);
    bngradHandle_t handle = nullptr;
    ASSERT_EQ(bngradCreateHandle(&handle, BNGRAD_DEVICE_CPU, 0),
              BNGRAD_SUCCESS);
    EXPECT_EQ(gradient->create(handle), BNGRAD_COMPILER_NOT_FOUND);
    bngradDestroyHandle(handle);
    // In a process that is new, as LLVM's threads are not in a child.
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(
        {
          unsetenv("BNGRAD_COMPILER");
          _exit(compute(*gradient));
        },
        testing::ExitedWithCode(BNGRAD_SUCCESS), "");
  }
  void TearDown() override {
    std::filesystem::remove_all(folder);
    unsetenv(kVariable);
    unsetenv("BNGRAD_COMPILER");
    unsetenv("BNGRAD_CACHE_DIR");
  }

  /// Computes twice; allocation `number` of the first time fails. Nothing is
  /// left: SetUp has made the entry of the kernel.
  Outcome computeTwice(long number, bool forever) {
    bngradStatus_t status = BNGRAD_SUCCESS;
    auto run = [&] { status = compute(*gradient); };
    FailedNew failed = callWithFailingNew(number, forever, run);
    EXPECT_EQ(status, failed.hasFailed ? BNGRAD_INTERNAL_ERROR : BNGRAD_SUCCESS)
        << number;
    EXPECT_STREQ(bngradGetLastError(), failed.hasFailed ? "out of memory" : "");
    FailedNew again = callWithFailingNew(0, false, run);
    EXPECT_EQ(status, BNGRAD_SUCCESS) << number << bngradGetLastError();
    EXPECT_EQ(gradient->check(), "");
    EXPECT_EQ(failed.numLive, 0) << number;
    EXPECT_EQ(again.numLive, 0) << number;
    return failed.hasFailed ? Right : RightWithoutFailure;
  }

  static constexpr char kVariable[] = "BNGRAD_TEST_FOLDER";
  std::string folder;
  std::unique_ptr<Gradient> gradient;
};
} // namespace

TEST_F(CompiledOutOfMemory, FromDisk) {
  for (bool forever : {false, true})
    for (long number = 1;; ++number) {
      Outcome outcome =
          runInChild([&] { return computeTwice(number, forever); });
      ASSERT_NE(outcome, Wrong);
      if (outcome == Right)
        continue;
      EXPECT_GT(number, 40);
      break;
    }
}
