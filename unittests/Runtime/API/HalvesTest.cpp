//===- HalvesTest.cpp - the halves of a gradient in the C library ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gradient.h"
#include "Specs.h"

#include "gtest/gtest.h"

#include <thread>

using namespace bngrad::test;

/// Threads that run all parts at once.
static bngrad_threads_t makeConcurrentThreads(int count) {
  bngrad_threads_t threads = makeReversedThreads(count);
  threads.run = [](void *, int n, void (*body)(void *, int, int), void *data) {
    std::vector<std::thread> running;
    running.reserve(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i)
      running.emplace_back(body, data, i, n);
    for (std::thread &thread : running)
      thread.join();
  };
  return threads;
}

/// Runs the halves of `spec`, also with other threads.
static void runHalves(Handle &handle, Spec spec) {
  spec.isGlobal = false;
  spec.wants[GradInput] = true;
  spec.wants[GradScale] = spec.wants[GradOffset] = false;
  SCOPED_TRACE(spec.print());
  Gradient gradient(spec);
  ASSERT_EQ(gradient.createHalves(handle), BNGRAD_SUCCESS)
      << bngradGetLastError();
  ASSERT_EQ(gradient.runHalves(), BNGRAD_SUCCESS) << bngradGetLastError();
  ASSERT_EQ(gradient.checkHalves(), "");
  std::vector<char> results = gradient.results();
  std::vector<char> sums = gradient.sums.loadDense();
  for (const bngrad_threads_t &threads :
       {makeReversedThreads(1), makeReversedThreads(3), makeReversedThreads(64),
        makeConcurrentThreads(3)}) {
    ASSERT_EQ(bngradSetThreads(handle, &threads), BNGRAD_SUCCESS);
    ASSERT_EQ(gradient.runHalves(), BNGRAD_SUCCESS) << bngradGetLastError();
    int count = threads.count(threads.context);
    ASSERT_EQ(gradient.results(), results) << count << " threads";
    ASSERT_EQ(gradient.sums.loadDense(), sums) << count << " threads";
  }
  ASSERT_EQ(bngradSetThreads(handle, nullptr), BNGRAD_SUCCESS);
}

TEST(Halves, Random) {
  Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
  Specs specs(7);
  for (int i = 0; i < 300 && !testing::Test::HasFailure(); ++i)
    runHalves(handle, specs.next());
}

TEST(Halves, Compiled) {
  setenv("BNGRAD_CACHE_DIR", "", 1);
  Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
  int64_t quickStride = 1;
  for (Spec spec : makeUncoveredSpecs()) {
    // The strides take turns, unless there is time for both.
    quickStride = 3 - quickStride;
    for (int64_t stride : {1, 2}) {
      if (stride != quickStride && !isLongTest())
        continue;
      spec.parameterStride = stride;
      spec.inPlaceOf = stride == 1 ? GradInput : Input;
      spec.seed++;
      runHalves(handle, spec);
    }
  }
  unsetenv("BNGRAD_CACHE_DIR");
}

// Parameters in the order of the data, in which the sums are not: they are
// row-major, so that no ready kernel computes them.
TEST(Halves, SumsInAnotherOrder) {
  setenv("BNGRAD_CACHE_DIR", "", 1);
  Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
  const int64_t shape[] = {2, 3, 4}, strides[] = {12, 1, 3};
  const int64_t sumsShape[] = {2, 3, 4};
  bngradTensorDescriptor_t data, mean, sums;
  ASSERT_EQ(
      bngradCreateTensorDescriptor(&data, BNGRAD_DTYPE_F32, 3, shape, strides),
      BNGRAD_SUCCESS);
  ASSERT_EQ(bngradCreateTensorDescriptor(&mean, BNGRAD_DTYPE_F32, 2, shape + 1,
                                         strides + 1),
            BNGRAD_SUCCESS);
  ASSERT_EQ(bngradCreateTensorDescriptor(&sums, BNGRAD_DTYPE_F32, 3, sumsShape,
                                         nullptr),
            BNGRAD_SUCCESS);
  bngradBatchNormBackwardOptions_t options = {};
  options.struct_size = sizeof(options);
  options.num_feature_dims = 2;
  options.feature_dims[0] = 1;
  options.feature_dims[1] = 2;
  bngradBatchNormBackwardDescriptor_t reduce = nullptr;
  ASSERT_EQ(bngradCreateBatchNormBackwardReduceDescriptor(
                handle, &reduce, &options, sums, data, data, mean, nullptr),
            BNGRAD_SUCCESS)
      << bngradGetLastError();
  // Integers, whose sums are exact.
  float gradOutput[24], input[24], means[12], results[24];
  for (int i = 0; i < 24; ++i) {
    gradOutput[i] = static_cast<float>(i * 5 % 7 + 1);
    input[i] = static_cast<float>(i * 3 % 11);
    means[i % 12] = static_cast<float>(i % 12 - 4);
  }
  size_t size = 0;
  ASSERT_EQ(bngradGetBatchNormBackwardWorkspaceSize(reduce, &size),
            BNGRAD_SUCCESS);
  std::vector<char> workspace(size);
  ASSERT_EQ(bngradBatchNormBackwardReduce(reduce, workspace.data(), size,
                                          results, gradOutput, input, means,
                                          nullptr, nullptr),
            BNGRAD_SUCCESS)
      << bngradGetLastError();
  for (int c = 0; c < 12; ++c) {
    // From the place among the sums to that among the data.
    int place = c / 4 + c % 4 * 3;
    float sum = 0, product = 0;
    for (int i = place; i < 24; i += 12) {
      sum += gradOutput[i];
      product += gradOutput[i] * (input[i] - means[place]);
    }
    EXPECT_EQ(results[c], sum) << c;
    EXPECT_EQ(results[12 + c], product) << c;
  }
  bngradDestroyBatchNormBackwardDescriptor(reduce);
  for (bngradTensorDescriptor_t tensor : {data, mean, sums})
    bngradDestroyTensorDescriptor(tensor);
  unsetenv("BNGRAD_CACHE_DIR");
}

// Of so many elements that loops are shared among threads.
TEST(Halves, Large) {
  Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
  Spec spec;
  for (const auto &[shape, order] :
       {std::pair(std::vector<int64_t>{8, 16, 40, 40}, std::vector<int>{}),
        std::pair(std::vector<int64_t>{8, 16, 40, 40},
                  std::vector<int>{0, 2, 3, 1}),
        std::pair(std::vector<int64_t>{64, 512, 7}, std::vector<int>{}),
        std::pair(std::vector<int64_t>{3, 1, 70000}, std::vector<int>{}),
        std::pair(std::vector<int64_t>{70000, 3}, std::vector<int>{})})
    for (bngradDtype_t type : {BNGRAD_DTYPE_F32, BNGRAD_DTYPE_BF16}) {
      spec.shape = shape;
      spec.order = order;
      spec.dataType = type;
      spec.seed++;
      runHalves(handle, spec);
    }
}

// Rows of a batch in three calls, of which one is empty, add up to the whole.
TEST(Halves, Shards) {
  Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
  Spec spec;
  spec.shape = {6, 3, 35};
  spec.wants[GradScale] = spec.wants[GradOffset] = false;
  Gradient whole(spec);
  ASSERT_EQ(whole.createHalves(handle), BNGRAD_SUCCESS) << bngradGetLastError();
  ASSERT_EQ(whole.runHalves(), BNGRAD_SUCCESS);
  ASSERT_EQ(whole.checkHalves(), "");
  whole.arrays[GradInput].store(std::vector<double>(size_t(6 * 3 * 35), -77));

  const int64_t rows[] = {2, 0, 4};
  const int64_t row = 3 * 35, count = 6 * 35;
  std::vector<float> total(6), part(6);
  for (bool isElemt : {false, true}) {
    int64_t first = 0;
    for (int64_t size : rows) {
      const int64_t shape[] = {size, 3, 35}, sumsShape[] = {2, 3};
      bngradTensorDescriptor_t data, sums;
      ASSERT_EQ(bngradCreateTensorDescriptor(&data, BNGRAD_DTYPE_F32, 3, shape,
                                             nullptr),
                BNGRAD_SUCCESS);
      ASSERT_EQ(bngradCreateTensorDescriptor(&sums, BNGRAD_DTYPE_F32, 2,
                                             sumsShape, nullptr),
                BNGRAD_SUCCESS);
      auto at = [&](Operand operand) {
        return static_cast<float *>(whole.data(operand)) + first * row;
      };
      auto &t = whole.tensors;
      bngradBatchNormBackwardDescriptor_t half = nullptr;
      size_t bytes = 0;
      if (isElemt) {
        ASSERT_EQ(bngradCreateBatchNormBackwardElemtDescriptor(
                      handle, &half, &whole.options, data, data, data, t[Scale],
                      t[Mean], t[Statistic], sums, nullptr),
                  BNGRAD_SUCCESS);
      } else {
        ASSERT_EQ(bngradCreateBatchNormBackwardReduceDescriptor(
                      handle, &half, &whole.options, sums, data, data, t[Mean],
                      nullptr),
                  BNGRAD_SUCCESS);
      }
      ASSERT_EQ(bngradGetBatchNormBackwardWorkspaceSize(half, &bytes),
                BNGRAD_SUCCESS);
      std::vector<char> workspace(bytes);
      if (isElemt) {
        EXPECT_EQ(bngradBatchNormBackwardElemt(
                      half, workspace.data(), bytes, at(GradInput),
                      at(GradOutput), at(Input), whole.data(Scale),
                      whole.data(Mean), whole.data(Statistic), total.data(),
                      &count, nullptr, nullptr),
                  BNGRAD_SUCCESS)
            << bngradGetLastError();
      } else {
        EXPECT_EQ(bngradBatchNormBackwardReduce(half, workspace.data(), bytes,
                                                part.data(), at(GradOutput),
                                                at(Input), whole.data(Mean),
                                                nullptr, nullptr),
                  BNGRAD_SUCCESS)
            << bngradGetLastError();
        for (size_t i = 0; i < 6; ++i) {
          EXPECT_TRUE(size != 0 || part[i] == 0);
          total[i] += part[i];
        }
      }
      first += size;
      bngradDestroyBatchNormBackwardDescriptor(half);
      bngradDestroyTensorDescriptor(data);
      bngradDestroyTensorDescriptor(sums);
    }
  }
  EXPECT_EQ(whole.checkHalves(), "");
}

namespace {
/// The halves of a gradient, and errors of them.
class HalvesMisuse : public testing::Test {
protected:
  void SetUp() override {
    gradient.options.epsilon = 1e-3;
    ASSERT_EQ(gradient.createHalves(handle), BNGRAD_SUCCESS);
    ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS);
    gradient.workspace = Memory(1 << 16);
  }

  /// Checks the status of a call, and the start of its error.
  void expect(bngradStatus_t status, bngradStatus_t expected,
              const std::string &text) {
    EXPECT_EQ(status, expected) << text;
    std::string error = bngradGetLastError();
    EXPECT_EQ(error.substr(0, text.size()), text) << error;
  }

  /// Creates both halves with other sums.
  void expectSums(bngradDtype_t dtype, std::vector<int64_t> shape,
                  std::vector<int64_t> strides, bngradStatus_t expected,
                  const std::string &text) {
    bngradTensorDescriptor_t sums = nullptr;
    ASSERT_EQ(bngradCreateTensorDescriptor(
                  &sums, dtype, static_cast<int>(shape.size()), shape.data(),
                  strides.empty() ? nullptr : strides.data()),
              BNGRAD_SUCCESS);
    expectCreate(sums, expected, text);
    bngradDestroyTensorDescriptor(sums);
  }

  void expectCreate(bngradTensorDescriptor_t sums, bngradStatus_t expected,
                    const std::string &text) {
    auto &t = gradient.tensors;
    bngradBatchNormBackwardDescriptor_t half = nullptr;
    expect(bngradCreateBatchNormBackwardReduceDescriptor(
               handle, &half, &gradient.options, sums, t[GradOutput], t[Input],
               t[Mean], nullptr),
           expected, text);
    expect(bngradCreateBatchNormBackwardElemtDescriptor(
               handle, &half, &gradient.options, t[GradInput], t[GradOutput],
               t[Input], t[Scale], t[Mean], t[Statistic], sums, nullptr),
           expected, text);
    EXPECT_EQ(half, nullptr);
  }

  bngradStatus_t reduce(bngradBatchNormBackwardDescriptor_t descriptor,
                        void *sums) {
    Gradient &g = gradient;
    return bngradBatchNormBackwardReduce(
        descriptor, g.workspace.data(), g.workspace.size(), sums,
        g.data(GradOutput), g.data(Input), g.data(Mean), nullptr, nullptr);
  }

  bngradStatus_t elemt(bngradBatchNormBackwardDescriptor_t descriptor,
                       void *gradInput, const int64_t *count) {
    Gradient &g = gradient;
    return bngradBatchNormBackwardElemt(
        descriptor, g.workspace.data(), g.workspace.size(), gradInput,
        g.data(GradOutput), g.data(Input), g.data(Scale), g.data(Mean),
        g.data(Statistic), g.sums.memory.data(), count, nullptr, nullptr);
  }

  Handle handle;
  Gradient gradient{Spec()};
};
} // namespace

TEST_F(HalvesMisuse, Create) {
  expectCreate(nullptr, BNGRAD_NULL_POINTER,
               "sums: expected a tensor descriptor, got null");
  expectSums(BNGRAD_DTYPE_F64, {2, 3}, {}, BNGRAD_BAD_DTYPE,
             "sums: expected the accumulator type, f32, got f64");
  expectSums(BNGRAD_DTYPE_BOOL, {2, 3}, {}, BNGRAD_BAD_DTYPE,
             "sums: expected the accumulator type, f32, got bool");
  expectSums(BNGRAD_DTYPE_F32, {6}, {}, BNGRAD_BAD_SHAPE,
             "sums: expected rank 2, the number of feature dims and 1, got 1");
  expectSums(BNGRAD_DTYPE_F32, {3, 3}, {}, BNGRAD_BAD_SHAPE,
             "sums: expected size of dim 0 to be 2, got 3");
  expectSums(BNGRAD_DTYPE_F32, {2, 4}, {}, BNGRAD_BAD_SHAPE,
             "sums: expected dim 1 to have the size of dim 1 of input, 3, "
             "got 4");
  expectSums(BNGRAD_DTYPE_F32, {2, 3}, {1, 2}, BNGRAD_BAD_STRIDES,
             "sums: expected row-major strides, 1 for dim 1, got 2");
  expectSums(BNGRAD_DTYPE_F32, {2, 3}, {4, 1}, BNGRAD_BAD_STRIDES,
             "sums: expected row-major strides, 3 for dim 0, got 4");
  gradient.options.statistics = BNGRAD_STATISTICS_GLOBAL;
  auto &t = gradient.tensors;
  bngradBatchNormBackwardDescriptor_t half = nullptr;
  expect(bngradCreateBatchNormBackwardReduceDescriptor(
             handle, &half, &gradient.options, gradient.sumsTensor,
             t[GradOutput], t[Input], t[Mean], nullptr),
         BNGRAD_BAD_PARAM,
         "options: expected statistics to be 0 for batch_norm_backward_reduce, "
         "got 1");
  gradient.options.statistics = BNGRAD_STATISTICS_BATCH;
  expect(bngradCreateBatchNormBackwardElemtDescriptor(
             handle, &half, &gradient.options, nullptr, t[GradOutput], t[Input],
             t[Scale], t[Mean], t[Statistic], gradient.sumsTensor, nullptr),
         BNGRAD_NULL_POINTER,
         "grad_input: expected a tensor descriptor, got null");
  expect(
      bngradCreateBatchNormBackwardElemtDescriptor(
          handle, &half, &gradient.options, t[GradInput], t[GradOutput],
          t[Input], t[Scale], t[Mean], nullptr, gradient.sumsTensor, nullptr),
      BNGRAD_NULL_POINTER, "statistic: expected a tensor descriptor, got null");
}

TEST_F(HalvesMisuse, Calls) {
  Gradient &g = gradient;
  char *sums = g.sums.memory.data();
  int64_t count = 8, less = 0;
  alignas(8) char bytes[16] = {};
  auto *odd = reinterpret_cast<int64_t *>(bytes + 4);
  expect(reduce(g.elemt, sums), BNGRAD_BAD_PARAM,
         "descriptor: expected a descriptor of batch_norm_backward_reduce, got "
         "one of batch_norm_backward_elemt");
  expect(elemt(g.reduce, g.data(GradInput), &count), BNGRAD_BAD_PARAM,
         "descriptor: expected a descriptor of batch_norm_backward_elemt, got "
         "one of batch_norm_backward_reduce");
  expect(reduce(g.descriptor, sums), BNGRAD_BAD_PARAM,
         "descriptor: expected a descriptor of batch_norm_backward_reduce, got "
         "one of batch_norm_backward");
  std::swap(g.descriptor, g.elemt);
  expect(g.run(), BNGRAD_BAD_PARAM,
         "descriptor: expected a descriptor of batch_norm_backward, got one of "
         "batch_norm_backward_elemt");
  expect(g.runAsync(nullptr, nullptr), BNGRAD_BAD_PARAM,
         "descriptor: expected a descriptor of batch_norm_backward, got one of "
         "batch_norm_backward_elemt");
  std::swap(g.descriptor, g.elemt);
  expect(reduce(nullptr, sums), BNGRAD_NULL_POINTER,
         "descriptor: expected a descriptor, got null");
  expect(reduce(g.reduce, nullptr), BNGRAD_NULL_POINTER,
         "sums: expected data, got null");
  expect(reduce(g.reduce, sums + 1), BNGRAD_BAD_PARAM,
         "sums: expected an address that is a multiple of 4, got a remainder "
         "of 1");
  expect(reduce(g.reduce, g.data(Input)), BNGRAD_BAD_PARAM,
         "sums: expected memory apart from that of input, got an overlap");
  expect(elemt(g.elemt, sums, &count), BNGRAD_BAD_PARAM,
         "grad_input: expected memory apart from that of sums, got an overlap");
  expect(elemt(g.elemt, g.data(GradInput), nullptr), BNGRAD_NULL_POINTER,
         "count: expected data, got null");
  expect(elemt(g.elemt, g.data(GradInput), odd), BNGRAD_BAD_PARAM,
         "count: expected an address that is a multiple of 8, got a remainder "
         "of 4");
  expect(elemt(g.elemt, g.data(GradInput), &less), BNGRAD_BAD_PARAM,
         "count: expected at least 1, got 0");
  // Nothing was written.
  for (float value :
       std::vector<float>(static_cast<float *>(g.data(GradInput)),
                          static_cast<float *>(g.data(GradInput)) + 24))
    EXPECT_EQ(value, -77);
  EXPECT_EQ(elemt(g.elemt, g.data(GradInput), &count), BNGRAD_SUCCESS);
  g.workspace = Memory(0);
  EXPECT_EQ(reduce(g.reduce, sums), BNGRAD_INSUFFICIENT_WORKSPACE);
}
