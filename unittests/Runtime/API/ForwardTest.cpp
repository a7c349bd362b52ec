//===- ForwardTest.cpp - the forward pass in the C library ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random forward passes against a reference in long double that is written
// here, within the bounds of docs/numerics.md, section 10.
//
//===----------------------------------------------------------------------===//

#include "Forward.h"
#include "Specs.h"

#include "gtest/gtest.h"

#include <limits>
#include <random>
#include <string>

using namespace bngrad::test;

static void runForward(bngradHandle_t handle, const ForwardSpec &spec) {
  SCOPED_TRACE(spec.print());
  Forward forward(spec);
  ASSERT_EQ(forward.create(handle), BNGRAD_SUCCESS) << bngradGetLastError();
  ASSERT_EQ(forward.run(), BNGRAD_SUCCESS) << bngradGetLastError();
  ASSERT_EQ(forward.check(), "");
  std::vector<char> results = forward.results();
  for (int count : {1, 3}) {
    bngrad_threads_t threads = makeReversedThreads(count);
    ASSERT_EQ(bngradSetThreads(handle, &threads), BNGRAD_SUCCESS);
    ASSERT_EQ(forward.run(), BNGRAD_SUCCESS) << bngradGetLastError();
    ASSERT_EQ(forward.results(), results) << count << " threads";
  }
  ASSERT_EQ(bngradSetThreads(handle, nullptr), BNGRAD_SUCCESS);
}

static std::string describe(const Forward &forward) {
  char text[BNGRAD_DESCRIPTION_SIZE] = "";
  EXPECT_EQ(forward.training ? bngradDescribeBatchNormTraining(
                                   forward.training, text, sizeof(text))
                             : bngradDescribeBatchNormInference(
                                   forward.inference, text, sizeof(text)),
            BNGRAD_SUCCESS)
      << bngradGetLastError();
  return text;
}

/// Whether a ready kernel covers `spec`.
static bool isCovered(const ForwardSpec &spec) {
  bool isF64 = spec.dataType == BNGRAD_DTYPE_F64;
  bool hasParameters = spec.hasScale || spec.hasOffset || spec.isInference;
  bool hasOutput = spec.isInference || spec.wants[0];
  // makeSpec has them apart, or in another order than in parameters.
  bool hasSeveralDims = spec.layout.featureDims.size() > 1;
  bool isEmpty = false;
  for (int64_t size : spec.layout.shape)
    isEmpty |= size == 0;
  return !(hasOutput && spec.outputType != spec.dataType) &&
         !(hasParameters && !isF64 && spec.parameterType == BNGRAD_DTYPE_F64) &&
         !hasSeveralDims && (isEmpty || spec.dataStride == 1);
}

/// Runs random forward passes by the kernels of `isa`, without a compiler.
static void runReady(const char *isa, unsigned seed, int count) {
  Handle handle(isa);
  if (handle.status != BNGRAD_SUCCESS)
    return;
  setenv("BNGRAD_COMPILER", "", 1);
  setenv("BNGRAD_CACHE_DIR", "", 1);
  std::mt19937 random(seed);
  if (!isLongTest())
    count /= 4;
  while (count > 0 && !testing::Test::HasFailure()) {
    ForwardSpec spec = makeForwardSpec(random);
    Forward forward(spec);
    bngradStatus_t status = forward.create(handle);
    EXPECT_EQ(status,
              isCovered(spec) ? BNGRAD_SUCCESS : BNGRAD_COMPILER_NOT_FOUND)
        << isa << " " << spec.print() << ": " << bngradGetLastError();
    if (status != BNGRAD_SUCCESS)
      continue;
    EXPECT_NE(describe(forward).find("\nkernel=ready\n"), std::string::npos);
    SCOPED_TRACE(isa);
    runForward(handle, spec);
    --count;
  }
  unsetenv("BNGRAD_CACHE_DIR");
  unsetenv("BNGRAD_COMPILER");
}

TEST(ForwardTest, Ready) { runReady("", 21, 400); }

// Those that this CPU lacks are tested where it has them.
TEST(ForwardTest, ReadyX86V2) { runReady("x86-64-v2", 22, 200); }
TEST(ForwardTest, ReadyX86V3) { runReady("x86-64-v3", 23, 200); }
TEST(ForwardTest, ReadyX86V4) { runReady("x86-64-v4", 24, 200); }
TEST(ForwardTest, ReadyX86V4Bf16) { runReady("x86-64-v4+avx512bf16", 25, 200); }

// Of so many elements that loops are shared among threads, with every schedule.
TEST(ForwardTest, ReadyLarge) {
  Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
  const struct {
    ForwardLayout layout;
    const char *schedule;
  } cases[] = {{{{2, 3, 5000}, {1}, {}}, "split"},
               {{{3, 9, 1000}, {1}, {}}, "channels"},
               {{{64, 300, 5}, {1}, {}}, "tiles"},
               {{{1500, 30}, {1}, {}}, "rows"}};
  for (const auto &some : cases)
    for (bngradDtype_t type : {BNGRAD_DTYPE_F32, BNGRAD_DTYPE_BF16})
      for (bool isInference : {false, true})
        for (bool wantsOutput : {false, true}) {
          if (isInference && !wantsOutput)
            continue;
          ForwardSpec spec;
          spec.layout = some.layout;
          spec.isInference = isInference;
          spec.dataType = spec.outputType = type;
          spec.wants[0] = wantsOutput;
          spec.wants[3] = true;
          spec.location = 100;
          Forward forward(spec);
          ASSERT_EQ(forward.create(handle), BNGRAD_SUCCESS)
              << bngradGetLastError();
          std::string text = describe(forward);
          EXPECT_NE(
              text.find(std::string("\nschedule=") + some.schedule + "\n"),
              std::string::npos)
              << text;
          runForward(handle, spec);
        }
}

TEST(ForwardTest, Random) {
  setenv("BNGRAD_CACHE_DIR", "", 1);
  Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
  std::mt19937 random(11);
  int count = isLongTest() ? 300 : 16;
  for (int i = 0; i < count && !testing::Test::HasFailure(); ++i)
    runForward(handle, makeForwardSpec(random));
  unsetenv("BNGRAD_CACHE_DIR");
}

// One kernel for two momenta and counts: M = 1, where the unbiased variance is
// NaN, and without elements, where the running statistics are kept.
TEST(ForwardTest, RunningStatistics) {
  Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
  for (bool isUnbiased : {false, true})
    for (int64_t count : {0, 1, 2, 9}) {
      ForwardSpec spec;
      spec.layout = {{count, 4}, {1}, {}};
      spec.isUnbiased = isUnbiased;
      spec.wants[1] = spec.wants[2] = true;
      spec.statisticType = BNGRAD_DTYPE_BF16;
      spec.momentum = 0.25;
      runForward(handle, spec);
      spec.wants[0] = false;
      spec.momentum = 0.5;
      runForward(handle, spec);
    }
}

// Data that fill more than a block of rows, in place, for channels innermost
// and not.
TEST(ForwardTest, LargeInPlace) {
  Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
  const ForwardLayout layouts[] = {{{6, 9, 50, 50}, {1}, {}},
                                   {{3001, 40}, {1}, {}},
                                   {{2, 1, 70001}, {1}, {}}};
  for (const ForwardLayout &layout : layouts)
    for (bool isInference : {false, true}) {
      ForwardSpec spec;
      spec.layout = layout;
      spec.isInference = isInference;
      spec.isInPlace = true;
      spec.location = 1000;
      runForward(handle, spec);
    }
}

TEST(ForwardTest, Asynchronous) {
  Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
  for (bool isInference : {false, true}) {
    ForwardSpec spec;
    spec.isInference = isInference;
    Forward forward(spec);
    ASSERT_EQ(forward.create(handle), BNGRAD_SUCCESS) << bngradGetLastError();
    std::vector<int> order;
    struct Context {
      std::vector<int> *order;
      int place;
    } contexts[kNumWritten];
    bngradCompletion_t done[kNumWritten];
    for (int i = 0; i < kNumWritten; ++i) {
      contexts[i] = {&order, i};
      done[i].context = &contexts[i];
      done[i].function = [](void *context, bngradStatus_t status,
                            const char *) {
        EXPECT_EQ(status, BNGRAD_SUCCESS);
        auto *given = static_cast<Context *>(context);
        given->order->push_back(given->place);
      };
    }
    ASSERT_EQ(forward.runAsync(nullptr, done), BNGRAD_SUCCESS)
        << bngradGetLastError();
    EXPECT_EQ(forward.check(), "");
    EXPECT_EQ(order, isInference ? std::vector<int>({Output})
                                 : std::vector<int>(
                                       {RunningVariance, RunningMean, Output}));
  }
}

/// Expects a status and an error of the last call.
#define EXPECT_ERROR(call, expected, text)                                     \
  do {                                                                         \
    EXPECT_EQ(call, expected);                                                 \
    EXPECT_STREQ(bngradGetLastError(), text);                                  \
  } while (false)

TEST(ForwardTest, MisuseOfOptions) {
  Handle handle;
  ForwardSpec spec;
  spec.momentum = std::numeric_limits<double>::quiet_NaN();
  EXPECT_ERROR(Forward(spec).create(handle), BNGRAD_BAD_PARAM,
               "options: expected momentum to be finite, got nan");
  spec = {};
  spec.epsilon = -1;
  EXPECT_ERROR(Forward(spec).create(handle), BNGRAD_BAD_PARAM,
               "options: expected epsilon to be finite and at least 0, got -1");
  Forward training({});
  training.trainingOptions.unbiased_running_variance = 2;
  EXPECT_ERROR(
      training.create(handle), BNGRAD_BAD_PARAM,
      "options: expected unbiased_running_variance to be 0 or 1, got 2");
  training.trainingOptions.unbiased_running_variance = 0;
  training.trainingOptions.struct_size = 8;
  std::string text = "options: expected struct_size to be at least " +
                     std::to_string(sizeof(training.trainingOptions)) +
                     ", got 8";
  EXPECT_ERROR(training.create(handle), BNGRAD_BAD_PARAM, text.c_str());
  spec = {};
  spec.isInference = spec.isInvStd = true;
  Forward inference(spec);
  inference.inferenceOptions.epsilon = 0.5;
  EXPECT_ERROR(inference.create(handle), BNGRAD_BAD_PARAM,
               "options: expected epsilon to be 0 with an inv_std, which "
               "contains it, got 0.5");
}

TEST(ForwardTest, MisuseOfTensors) {
  Handle handle;
  ForwardSpec spec;
  spec.wants[0] = false;
  spec.hasRunning = false;
  EXPECT_ERROR(Forward(spec).create(handle), BNGRAD_BAD_PARAM,
               "expected output, mean, variance or inv_std to be wanted, got "
               "none");
  Forward types({});
  types.arrays[Offset].dtype = BNGRAD_DTYPE_F64;
  EXPECT_ERROR(types.create(handle), BNGRAD_BAD_DTYPE,
               "offset: expected the dtype of scale, f32, got f64");
  Forward shapes({});
  shapes.arrays[RunningMean].shape = {5};
  EXPECT_ERROR(shapes.create(handle), BNGRAD_BAD_SHAPE,
               "running_mean: expected dim 0 to have the size of dim 1 of "
               "input, 3, got 5");
  Forward strides({});
  strides.arrays[RunningVariance].strides = {0};
  EXPECT_ERROR(strides.create(handle), BNGRAD_BAD_STRIDES,
               "running_variance: expected strides that give each element an "
               "address of its own, got an overlap");
  spec = {};
  spec.isInference = true;
  Forward missing(spec);
  missing.arrays[GivenStatistic].isPresent = false;
  EXPECT_ERROR(missing.create(handle), BNGRAD_NULL_POINTER,
               "statistic: expected a tensor descriptor, got null");
}

TEST(ForwardTest, MisuseOfCalls) {
  Handle handle;
  Forward forward({});
  ASSERT_EQ(forward.create(handle), BNGRAD_SUCCESS) << bngradGetLastError();
  forward.addresses[RunningMean] = forward.data(RunningVariance);
  EXPECT_ERROR(forward.run(), BNGRAD_BAD_PARAM,
               "running_mean: expected memory apart from that of "
               "running_variance, got an overlap");
  forward.addresses[RunningMean] = forward.data(GivenScale);
  EXPECT_ERROR(forward.run(), BNGRAD_BAD_PARAM,
               "running_mean: expected memory apart from that of scale, got an "
               "overlap");
  forward.addresses[RunningMean] = nullptr;
  forward.addresses[Output] = forward.data(Data) + 4;
  EXPECT_ERROR(forward.run(), BNGRAD_BAD_PARAM,
               "output: expected memory apart from that of input, got an "
               "overlap");
  EXPECT_ERROR(
      bngradBatchNormInference(nullptr, nullptr, 0, nullptr, nullptr, nullptr,
                               nullptr, nullptr, nullptr, nullptr),
      BNGRAD_NULL_POINTER, "descriptor: expected a descriptor, got null");
  std::string text = "workspace_size: expected at least " +
                     std::to_string(forward.workspaceSize()) + ", got 0";
  EXPECT_ERROR(bngradBatchNormTraining(forward.training, nullptr, 0, nullptr,
                                       nullptr, nullptr, nullptr, nullptr,
                                       nullptr, nullptr, nullptr, nullptr,
                                       nullptr),
               BNGRAD_INSUFFICIENT_WORKSPACE, text.c_str());
}

TEST(ForwardTest, Description) {
  Handle handle;
  bngrad_threads_t threads = makeReversedThreads(2);
  ASSERT_EQ(bngradSetThreads(handle, &threads), BNGRAD_SUCCESS);
  ForwardSpec spec;
  auto get = [&] {
    Forward forward(spec);
    EXPECT_EQ(forward.create(handle), BNGRAD_SUCCESS) << bngradGetLastError();
    std::string text = describe(forward);
    // Without the instruction set.
    size_t isa = text.find("isa="), end = text.find('\n', isa);
    return isa == std::string::npos ? text : text.erase(isa, end + 1 - isa);
  };
  const std::string sizes = "kernel=ready\ndata=f32\nform=planes\nouter=4\n"
                            "channels=3\ninner=5\nschedule=channels\n"
                            "threads=1\n";
  EXPECT_EQ(get(), "part=training\n" + sizes +
                       "passes.input=2\npasses.output=1\nreuse_bytes=80\n"
                       "streaming=0\n");
  spec.wants[0] = false;
  EXPECT_EQ(get(),
            "part=training\n" + sizes + "passes.input=1\nreuse_bytes=0\n");
  spec.isInference = true;
  EXPECT_EQ(get(), "part=inference\n" + sizes +
                       "passes.input=1\npasses.output=1\nreuse_bytes=0\n"
                       "streaming=0\n");
  spec.outputType = BNGRAD_DTYPE_F64;
  EXPECT_EQ(get(), "part=inference\nkernel=compiled\n"
                   "reason=output is of another type than input\n");
}
