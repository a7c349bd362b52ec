//===- MisuseTest.cpp - errors of the C library ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gradient.h"
#include "Specs.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace bngrad::test;

namespace {
/// Creates gradients whose arguments may be changed, and counts the errors that
/// were as expected.
class MisuseTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(bngradCreateHandle(&handle, BNGRAD_DEVICE_CPU, 0),
              BNGRAD_SUCCESS);
  }
  void TearDown() override { bngradDestroyHandle(handle); }

  /// Checks the status of a call, and that the error starts with `text`.
  void expect(bngradStatus_t status, bngradStatus_t expected,
              const std::string &text) {
    EXPECT_EQ(status, expected) << text << ": " << bngradGetLastError();
    std::string error = bngradGetLastError();
    EXPECT_EQ(error.substr(0, text.size()), text) << error;
    EXPECT_NE(error.find(", got"), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    ++count;
  }

  /// Creates the descriptor of `gradient`, in which a tensor differs.
  void expectTensor(Gradient &gradient, Operand operand, bngradDtype_t dtype,
                    std::vector<int64_t> shape, std::vector<int64_t> strides,
                    bngradStatus_t expected, const std::string &text) {
    bngradTensorDescriptor_t tensor = nullptr;
    ASSERT_EQ(bngradCreateTensorDescriptor(
                  &tensor, dtype, static_cast<int>(shape.size()), shape.data(),
                  strides.empty() ? nullptr : strides.data()),
              BNGRAD_SUCCESS);
    bngradTensorDescriptor_t before = gradient.tensors[operand];
    gradient.tensors[operand] = tensor;
    expectCreate(gradient, expected, text);
    gradient.tensors[operand] = before;
    bngradDestroyTensorDescriptor(tensor);
  }

  void expectCreate(Gradient &gradient, bngradStatus_t expected,
                    const std::string &text) {
    auto *untouched =
        reinterpret_cast<bngradBatchNormBackwardDescriptor_t>(&count);
    bngradBatchNormBackwardDescriptor_t descriptor = untouched;
    auto &t = gradient.tensors;
    expect(bngradCreateBatchNormBackwardDescriptor(
               handle, &descriptor, &gradient.options, t[GradInput],
               t[GradScale], t[GradOffset], t[GradOutput], t[Input], t[Scale],
               t[Mean], t[Statistic], t[Mask]),
           expected, text);
    EXPECT_EQ(descriptor, untouched);
  }

  bngradHandle_t handle = nullptr;
  int count = 0;
};

/// The arguments of a call.
struct Call {
  explicit Call(Gradient &gradient)
      : descriptor(gradient.descriptor), workspace(gradient.workspace.data()),
        size(gradient.workspace.size()) {
    for (int i = 0; i < kNumOperands; ++i)
      data[i] = static_cast<char *>(gradient.data(static_cast<Operand>(i)));
  }

  bngradStatus_t run(bool isAsync) const {
    if (isAsync)
      return bngradBatchNormBackwardAsync(descriptor, workspace, size, data[0],
                                          data[1], data[2], data[3], data[4],
                                          data[5], data[6], data[7], data[8],
                                          nullptr, nullptr, nullptr);
    return bngradBatchNormBackward(descriptor, workspace, size, data[0],
                                   data[1], data[2], data[3], data[4], data[5],
                                   data[6], data[7], data[8], nullptr);
  }

  bngradBatchNormBackwardDescriptor_t descriptor;
  char *workspace;
  size_t size;
  char *data[kNumOperands];
};
} // namespace

/// Gradients whose arguments the tests change.
static std::vector<Spec> makeMisuseSpecs() {
  Spec all;
  all.shape = {3, 4, 5, 2};
  all.hasMask = true;
  Spec features = all;
  features.shape = {2, 3, 4};
  features.featureDims = {0, 1};
  features.dataType = BNGRAD_DTYPE_BF16;
  features.hasScale = false;
  features.isGlobal = true;
  Spec wide = all;
  wide.dataType = wide.parameterType = BNGRAD_DTYPE_F64;
  wide.order = {0, 2, 3, 1};
  wide.hasMask = false;
  wide.isInvStd = true;
  wide.wants[GradInput] = false;
  return {all, features, wide};
}

TEST_F(MisuseTest, Tensors) {
  for (const Spec &spec : makeMisuseSpecs()) {
    Gradient gradient(spec);
    ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS) << bngradGetLastError();
    for (int i = 0; i < kNumOperands; ++i) {
      auto operand = static_cast<Operand>(i);
      const Array &array = gradient.arrays[i];
      if (!array.isPresent)
        continue;
      SCOPED_TRACE(spec.print() + " " + kOperandNames[i]);
      std::string name = std::string(kOperandNames[i]) + ": ";
      // Another size of each dim; of input, all others are wrong.
      for (size_t dim = 0; dim < array.shape.size(); ++dim)
        for (int64_t size :
             {array.shape[dim] + 1, array.shape[dim] - 1, int64_t(0)}) {
          std::vector<int64_t> shape = array.shape;
          shape[dim] = size;
          expectTensor(gradient, operand, array.dtype, shape, {},
                       BNGRAD_BAD_SHAPE, operand == Input ? "" : name);
        }
      std::vector<int64_t> more = array.shape, fewer = array.shape;
      more.push_back(1);
      fewer.pop_back();
      expectTensor(gradient, operand, array.dtype, more, {}, BNGRAD_BAD_SHAPE,
                   operand == Input ? "" : name);
      if (operand != Input)
        expectTensor(gradient, operand, array.dtype, fewer, {},
                     BNGRAD_BAD_SHAPE, name);
      // Another type. Outputs may be of any float type.
      for (int type = 0; type <= BNGRAD_DTYPE_BOOL; ++type) {
        auto dtype = static_cast<bngradDtype_t>(type);
        bool isOutput = i < GradOutput;
        if (dtype == array.dtype || (isOutput && dtype != BNGRAD_DTYPE_BOOL))
          continue;
        // Of mean, those that must have its type are wrong, too.
        bool isOther = operand == Input || operand == Mean;
        expectTensor(gradient, operand, dtype, array.shape, {},
                     BNGRAD_BAD_DTYPE, isOther ? "" : name);
      }
      // Elements of an output at one address.
      if (i < GradOutput)
        for (size_t dim = 0; dim < array.shape.size(); ++dim)
          for (int64_t stride : {0, 1}) {
            std::vector<int64_t> strides(array.shape.size());
            int64_t product = 1;
            for (size_t d = array.shape.size(); d-- > 0;) {
              strides[d] = product;
              product *= array.shape[d];
            }
            if (strides[dim] == stride)
              continue;
            strides[dim] = stride;
            expectTensor(gradient, operand, array.dtype, array.shape, strides,
                         BNGRAD_BAD_STRIDES, name);
          }
    }
    for (Operand operand : {GradOutput, Input, Mean, Statistic}) {
      bngradTensorDescriptor_t tensor = gradient.tensors[operand];
      gradient.tensors[operand] = nullptr;
      expectCreate(gradient, BNGRAD_NULL_POINTER,
                   std::string(kOperandNames[operand]) + ": ");
      gradient.tensors[operand] = tensor;
    }
  }
  RecordProperty("misuses", count);
  EXPECT_GE(count, 300);
}

TEST_F(MisuseTest, Options) {
  Gradient gradient((Spec()));
  ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS) << bngradGetLastError();
  bngradBatchNormBackwardOptions_t right = gradient.options;
  auto check = [&](bngradStatus_t status, const char *text) {
    expectCreate(gradient, status, text);
    gradient.options = right;
  };
  bngradBatchNormBackwardOptions_t &options = gradient.options;
  for (double epsilon :
       {-1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    options.epsilon = epsilon;
    check(BNGRAD_BAD_PARAM, "options: expected epsilon");
  }
  options.statistic = BNGRAD_STATISTIC_INV_STD;
  check(BNGRAD_BAD_PARAM, "options: expected epsilon to be 0");
  options.statistic = static_cast<bngradStatistic_t>(2);
  check(BNGRAD_BAD_PARAM, "options: expected statistic ");
  options.asynchronous = 2;
  check(BNGRAD_BAD_PARAM, "options: expected asynchronous to be 0 or 1, got 2");
  options.statistics = static_cast<bngradStatistics_t>(-1);
  check(BNGRAD_BAD_PARAM, "options: expected statistics ");
  options.struct_size = 8;
  check(BNGRAD_BAD_PARAM, "options: expected struct_size");
  for (int number : {-1, BNGRAD_MAX_FEATURE_DIMS + 1}) {
    options.num_feature_dims = number;
    check(BNGRAD_BAD_PARAM, "options: expected num_feature_dims");
  }
  for (int dim : {-1, 3}) {
    options.feature_dims[0] = dim;
    check(BNGRAD_BAD_PARAM, "options: expected feature dims to be dims");
  }
  options.num_feature_dims = 2;
  for (int dim : {0, 1}) {
    options.feature_dims[1] = dim;
    expectCreate(gradient, BNGRAD_BAD_PARAM,
                 "options: expected feature dims to be ascending");
  }
  options = right;

  // No output, no handle, no place.
  for (Operand operand : {GradInput, GradScale, GradOffset}) {
    bngradDestroyTensorDescriptor(gradient.tensors[operand]);
    gradient.tensors[operand] = nullptr;
  }
  expectCreate(gradient, BNGRAD_BAD_PARAM, "expected grad_input");
  bngradBatchNormBackwardDescriptor_t descriptor = nullptr;
  expect(bngradCreateBatchNormBackwardDescriptor(
             nullptr, &descriptor, nullptr, nullptr, nullptr, nullptr, nullptr,
             nullptr, nullptr, nullptr, nullptr, nullptr),
         BNGRAD_NULL_POINTER, "handle: ");
  expect(bngradCreateBatchNormBackwardDescriptor(
             handle, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
             nullptr, nullptr, nullptr, nullptr, nullptr),
         BNGRAD_NULL_POINTER, "descriptor: ");

  // Without options the feature dim is 1, which a vector has not.
  int64_t size = 3;
  bngradTensorDescriptor_t vector = nullptr;
  ASSERT_EQ(bngradCreateTensorDescriptor(&vector, BNGRAD_DTYPE_F32, 1, &size,
                                         nullptr),
            BNGRAD_SUCCESS);
  expect(bngradCreateBatchNormBackwardDescriptor(
             handle, &descriptor, nullptr, vector, nullptr, nullptr, vector,
             vector, nullptr, vector, vector, nullptr),
         BNGRAD_BAD_SHAPE, "input: ");
  bngradDestroyTensorDescriptor(vector);
}

TEST_F(MisuseTest, HandlesAndTensors) {
  bngradHandle_t other = nullptr;
  expect(bngradCreateHandle(nullptr, BNGRAD_DEVICE_CPU, 0), BNGRAD_NULL_POINTER,
         "handle: ");
  for (int kind : {3, -1})
    expect(bngradCreateHandle(&other, static_cast<bngradDevice_t>(kind), 0),
           BNGRAD_DEVICE_NOT_SUPPORTED, "kind: ");
  for (int kind : {1, 2})
    expect(bngradCreateHandle(&other, static_cast<bngradDevice_t>(kind), -1),
           BNGRAD_BAD_PARAM, "device: ");
  expect(bngradCreateHandle(&other, BNGRAD_DEVICE_CPU, 1), BNGRAD_BAD_PARAM,
         "device: ");
  for (const char *isa : {"vax", "x86-64-v", "x86-64-v2 "}) {
    ScopedIsa scope(isa);
    expect(bngradCreateHandle(&other, BNGRAD_DEVICE_CPU, 0), BNGRAD_BAD_PARAM,
           "BNGRAD_ISA: expected an instruction set that this CPU has (");
  }
  EXPECT_EQ(other, nullptr);

  bngrad_threads_t threads = makeReversedThreads(2);
  expect(bngradSetThreads(nullptr, &threads), BNGRAD_NULL_POINTER, "handle: ");
  bngrad_threads_t changed = threads;
  changed.struct_size = 8;
  expect(bngradSetThreads(handle, &changed), BNGRAD_BAD_PARAM, "threads: ");
  changed = threads;
  changed.run = nullptr;
  expect(bngradSetThreads(handle, &changed), BNGRAD_NULL_POINTER,
         "threads: expected a function run");
  changed = threads;
  changed.count = nullptr;
  expect(bngradSetThreads(handle, &changed), BNGRAD_NULL_POINTER,
         "threads: expected a function count");

  bngradTensorDescriptor_t tensor = nullptr;
  const int64_t shape[] = {2, 3}, negative[] = {2, -3};
  const int64_t huge[] = {int64_t(1) << 60, int64_t(1) << 60};
  auto create = [&](int dtype, int rank, const int64_t *sizes,
                    const int64_t *strides) {
    return bngradCreateTensorDescriptor(
        &tensor, static_cast<bngradDtype_t>(dtype), rank, sizes, strides);
  };
  expect(bngradCreateTensorDescriptor(nullptr, BNGRAD_DTYPE_F32, 2, shape,
                                      nullptr),
         BNGRAD_NULL_POINTER, "descriptor: ");
  for (int dtype : {-1, 5})
    expect(create(dtype, 2, shape, nullptr), BNGRAD_BAD_DTYPE, "dtype: ");
  for (int rank : {-1, BNGRAD_MAX_RANK + 1})
    expect(create(2, rank, shape, nullptr), BNGRAD_BAD_SHAPE, "rank: ");
  expect(create(2, 2, nullptr, nullptr), BNGRAD_NULL_POINTER, "shape: ");
  expect(create(2, 2, negative, nullptr), BNGRAD_BAD_SHAPE, "shape: ");
  expect(create(2, 2, huge, nullptr), BNGRAD_BAD_SHAPE, "shape: ");
  expect(create(2, 2, shape, negative), BNGRAD_BAD_STRIDES, "strides: ");
  expect(create(2, 2, shape, huge), BNGRAD_BAD_STRIDES, "strides: ");
  EXPECT_EQ(tensor, nullptr);

  size_t size = 0;
  expect(bngradGetBatchNormBackwardWorkspaceSize(nullptr, &size),
         BNGRAD_NULL_POINTER, "descriptor: ");
  Gradient gradient((Spec()));
  ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS);
  expect(bngradGetBatchNormBackwardWorkspaceSize(gradient.descriptor, nullptr),
         BNGRAD_NULL_POINTER, "size: ");
  EXPECT_EQ(bngradDestroyHandle(nullptr), BNGRAD_SUCCESS);
  EXPECT_EQ(bngradDestroyTensorDescriptor(nullptr), BNGRAD_SUCCESS);
  EXPECT_EQ(bngradDestroyBatchNormBackwardDescriptor(nullptr), BNGRAD_SUCCESS);
  // The error stays.
  EXPECT_EQ(std::string(bngradGetLastError()).substr(0, 6), "size: ");
}

/// Bytes of an element of a float type.
static int64_t getWidth(bngradDtype_t dtype) {
  return dtype == BNGRAD_DTYPE_BF16 ? 2 : dtype == BNGRAD_DTYPE_F64 ? 8 : 4;
}

TEST_F(MisuseTest, Calls) {
  for (const Spec &spec : makeMisuseSpecs()) {
    Gradient gradient(spec);
    ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS) << bngradGetLastError();
    ASSERT_EQ(gradient.run(), BNGRAD_SUCCESS);
    std::vector<char> results = gradient.results();
    for (bool isAsync : {false, true}) {
      auto check = [&](const Call &call, bngradStatus_t status,
                       const std::string &text) {
        expect(call.run(isAsync), status, text);
        // Nothing was touched.
        EXPECT_EQ(gradient.results(), results) << text;
        EXPECT_EQ(gradient.check(), "") << text;
      };
      const Call right(gradient);
      Call call = right;
      call.descriptor = nullptr;
      check(call, BNGRAD_NULL_POINTER, "descriptor: ");
      for (size_t size :
           {size_t(0), size_t(1), right.size / 2, right.size - 1}) {
        call = right;
        call.size = size;
        check(call, BNGRAD_INSUFFICIENT_WORKSPACE, "workspace_size: ");
      }
      call = right;
      call.workspace = nullptr;
      check(call, BNGRAD_NULL_POINTER, "workspace: ");
      for (int i = 0; i < kNumOperands; ++i) {
        if (!right.data[i])
          continue;
        const Array &array = gradient.arrays[i];
        std::string name = std::string(kOperandNames[i]) + ": ";
        call = right;
        call.data[i] = nullptr;
        check(call, BNGRAD_NULL_POINTER, name);
        if (array.dtype != BNGRAD_DTYPE_BOOL) {
          call = right;
          call.data[i] += 1;
          check(call, BNGRAD_BAD_PARAM, name);
        }
        call = right;
        call.workspace = right.data[i] - right.size + 1;
        check(call, BNGRAD_BAD_PARAM, "workspace: ");
        call = right;
        call.workspace = right.data[i] + array.memory.size() - 1;
        check(call, BNGRAD_BAD_PARAM, "workspace: ");
        // An output over another tensor, by one element from either side.
        int64_t width = getWidth(array.dtype);
        for (int j = 0; j < GradOffset + 1; ++j) {
          if (j == i || !right.data[j] || array.dtype == BNGRAD_DTYPE_BOOL)
            continue;
          std::string first = kOperandNames[i < j ? i : j]; // of two outputs
          auto bytes = static_cast<int64_t>(gradient.arrays[j].memory.size());
          // Out of reach of the output.
          int64_t margin = (bytes + 63) / 64 * 64;
          Memory workspace(right.size + 2 * static_cast<size_t>(margin));
          for (int64_t offset : {int64_t(array.memory.size()) - 8, 8 - bytes}) {
            call = right;
            call.workspace = workspace.data() + margin;
            call.data[j] = right.data[i] + offset / width * width;
            check(call, BNGRAD_BAD_PARAM, first + ": expected memory apart");
          }
        }
      }
      if (isAsync) {
        bngradExecutor_t executor = {8, nullptr, nullptr};
        for (size_t size : {size_t(8), sizeof(executor)}) {
          executor.struct_size = size;
          expect(gradient.runAsync(&executor, nullptr),
                 size == 8 ? BNGRAD_BAD_PARAM : BNGRAD_NULL_POINTER,
                 "executor: ");
        }
        executor.submit = [](void *, void (*)(void *), void *) { return 7; };
        expect(gradient.runAsync(&executor, nullptr), BNGRAD_INTERNAL_ERROR,
               "executor: ");
        ASSERT_EQ(gradient.run(), BNGRAD_SUCCESS);
      }
    }
  }
  EXPECT_GE(count, 200);
}

// Elements of one output may lie between those of another, but not in them.
TEST_F(MisuseTest, Interleaved) {
  Gradient gradient((Spec()));
  ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS);
  ASSERT_EQ(gradient.run(), BNGRAD_SUCCESS);
  const int64_t size = 3, strides[] = {4, 2};
  bngradTensorDescriptor_t scale = nullptr, offset = nullptr;
  ASSERT_EQ(bngradCreateTensorDescriptor(&scale, BNGRAD_DTYPE_F32, 1, &size,
                                         &strides[0]),
            BNGRAD_SUCCESS);
  ASSERT_EQ(bngradCreateTensorDescriptor(&offset, BNGRAD_DTYPE_F64, 1, &size,
                                         &strides[1]),
            BNGRAD_SUCCESS);
  bngradBatchNormBackwardDescriptor_t descriptor = nullptr;
  auto &t = gradient.tensors;
  ASSERT_EQ(bngradCreateBatchNormBackwardDescriptor(
                handle, &descriptor, &gradient.options, t[GradInput], scale,
                offset, t[GradOutput], t[Input], t[Scale], t[Mean],
                t[Statistic], t[Mask]),
            BNGRAD_SUCCESS);
  size_t bytes = 0;
  ASSERT_EQ(bngradGetBatchNormBackwardWorkspaceSize(descriptor, &bytes),
            BNGRAD_SUCCESS);
  Memory workspace(bytes);
  // grad_offset has the first half of every 16 bytes.
  for (int start : {0, 4, 8, 12}) {
    double memory[8] = {};
    char *scaleData = reinterpret_cast<char *>(memory) + start;
    bngradStatus_t status = bngradBatchNormBackward(
        descriptor, workspace.data(), workspace.size(),
        gradient.data(GradInput), scaleData, memory, gradient.data(GradOutput),
        gradient.data(Input), gradient.data(Scale), gradient.data(Mean),
        gradient.data(Statistic), gradient.data(Mask), nullptr);
    if (start < 8) {
      expect(status, BNGRAD_BAD_PARAM, "grad_scale: expected memory apart");
      continue;
    }
    EXPECT_EQ(status, BNGRAD_SUCCESS) << bngradGetLastError();
    for (int c = 0; c < size; ++c) {
      float expected[2], actual;
      std::memcpy(&expected[0],
                  gradient.arrays[GradScale].memory.data() + 4 * c, 4);
      std::memcpy(&expected[1],
                  gradient.arrays[GradOffset].memory.data() + 4 * c, 4);
      std::memcpy(&actual, scaleData + 16 * c, 4);
      EXPECT_EQ(actual, expected[0]) << start;
      EXPECT_EQ(memory[2 * c], expected[1]) << start;
    }
  }
  bngradDestroyBatchNormBackwardDescriptor(descriptor);
  bngradDestroyTensorDescriptor(scale);
  bngradDestroyTensorDescriptor(offset);
}

// Gradients that no ready kernel covers, without a compiler.
TEST_F(MisuseTest, NeedsCompiler) {
  setenv("BNGRAD_COMPILER", "", 1);
  setenv("BNGRAD_CACHE_DIR", "", 1);
  auto check = [&](const Spec &spec, const char *reason) {
    Gradient gradient(spec);
    EXPECT_EQ(gradient.create(handle), BNGRAD_COMPILER_NOT_FOUND)
        << spec.print();
    EXPECT_NE(std::string(bngradGetLastError()).find(reason), std::string::npos)
        << bngradGetLastError();
    ++count;
  };
  Spec spec;
  spec.hasScale = false;
  spec.shape = {2, 3, 4};
  spec.featureDims = {0, 2};
  check(spec, "feature dims are apart");
  spec.featureDims = {1, 2};
  spec.order = {0, 2, 1};
  check(spec, "another order");
  spec = Spec();
  spec.parameterType = BNGRAD_DTYPE_F64;
  check(spec, "parameters are of f64");

  spec = Spec();
  spec.hasScale = false;
  spec.dataStride = 2;
  check(spec, "gaps");
  setenv("BNGRAD_COMPILER", "/none/libBNGradCompiler.so", 1);
  check(spec, "/none/libBNGradCompiler.so");

  Gradient gradient((Spec()));
  ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS);
  const int64_t shape[] = {2, 3, 4}, strides[] = {1, 2, 6};
  bngradTensorDescriptor_t tensor = nullptr;
  ASSERT_EQ(bngradCreateTensorDescriptor(&tensor, BNGRAD_DTYPE_F32, 3, shape,
                                         strides),
            BNGRAD_SUCCESS);
  std::swap(tensor, gradient.tensors[GradInput]);
  bngradBatchNormBackwardDescriptor_t descriptor = nullptr;
  auto &t = gradient.tensors;
  EXPECT_EQ(bngradCreateBatchNormBackwardDescriptor(
                handle, &descriptor, nullptr, t[GradInput], t[GradScale],
                t[GradOffset], t[GradOutput], t[Input], t[Scale], t[Mean],
                t[Statistic], t[Mask]),
            BNGRAD_COMPILER_NOT_FOUND);
  EXPECT_NE(std::string(bngradGetLastError()).find("several layouts"),
            std::string::npos);
  std::swap(tensor, gradient.tensors[GradInput]);
  bngradDestroyTensorDescriptor(tensor);
  unsetenv("BNGRAD_COMPILER");
  unsetenv("BNGRAD_CACHE_DIR");
}
