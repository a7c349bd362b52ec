//===- HalvesMisuseTest.cpp - errors of the halves in the C library -------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../FailingNew.h"
#include "Gradient.h"
#include "Specs.h"

#include "gtest/gtest.h"

#include <algorithm>

using namespace bngrad::test;

namespace {
/// The sums follow the operands of the whole gradient.
constexpr int kSums = kNumOperands, kNumHalfOperands = kNumOperands + 1;

std::string getName(int operand) {
  return operand == kSums ? "sums" : kOperandNames[operand];
}

/// One half of a gradient, whose arguments may be changed.
struct Half {
  Half(Gradient &gradient, bool isElemt)
      : gradient(&gradient), isElemt(isElemt),
        descriptor(isElemt ? gradient.elemt : gradient.reduce),
        workspace(gradient.workspace.data()) {
    bngradGetBatchNormBackwardWorkspaceSize(descriptor, &size);
    for (int i = 0; i < kNumOperands; ++i) {
      tensors[i] = gradient.tensors[i];
      data[i] = static_cast<char *>(gradient.data(static_cast<Operand>(i)));
    }
    tensors[kSums] = gradient.sumsTensor;
    data[kSums] = gradient.sums.memory.data();
  }

  bool has(int i) const {
    if (!data[i])
      return false;
    return isElemt ? i != GradScale && i != GradOffset
                   : i != GradInput && i != GradScale && i != GradOffset &&
                         i != Scale && i != Statistic;
  }
  int getOutput() const { return isElemt ? int(GradInput) : kSums; }
  Array &array(int i) const {
    return i == kSums ? gradient->sums : gradient->arrays[i];
  }

  bngradStatus_t create(bngradHandle_t handle,
                        bngradBatchNormBackwardDescriptor_t *created) const {
    auto &t = tensors;
    if (isElemt)
      return bngradCreateBatchNormBackwardElemtDescriptor(
          handle, created, &gradient->options, t[GradInput], t[GradOutput],
          t[Input], t[Scale], t[Mean], t[Statistic], t[kSums], t[Mask]);
    return bngradCreateBatchNormBackwardReduceDescriptor(
        handle, created, &gradient->options, t[kSums], t[GradOutput], t[Input],
        t[Mean], t[Mask]);
  }

  bngradStatus_t run() const {
    if (isElemt)
      return bngradBatchNormBackwardElemt(
          descriptor, workspace, size, data[GradInput], data[GradOutput],
          data[Input], data[Scale], data[Mean], data[Statistic], data[kSums],
          count, data[Mask], nullptr);
    return bngradBatchNormBackwardReduce(
        descriptor, workspace, size, data[kSums], data[GradOutput], data[Input],
        data[Mean], data[Mask], nullptr);
  }

  Gradient *gradient;
  bool isElemt;
  bngradBatchNormBackwardDescriptor_t descriptor;
  char *workspace;
  size_t size = 0;
  bngradTensorDescriptor_t tensors[kNumHalfOperands];
  char *data[kNumHalfOperands];
  const int64_t *count = nullptr;
};

/// Counts the errors of halves that were as expected.
class HalfArguments : public testing::Test {
protected:
  void expect(bngradStatus_t status, bngradStatus_t expected,
              const std::string &text) {
    EXPECT_EQ(status, expected) << text << ": " << bngradGetLastError();
    std::string error = bngradGetLastError();
    EXPECT_EQ(error.substr(0, text.size()), text) << error;
    EXPECT_NE(error.find(", got"), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    ++count;
  }

  void expectCreate(const Half &half, bngradStatus_t expected,
                    const std::string &text) {
    auto *untouched =
        reinterpret_cast<bngradBatchNormBackwardDescriptor_t>(&count);
    bngradBatchNormBackwardDescriptor_t descriptor = untouched;
    expect(half.create(handle, &descriptor), expected, text);
    EXPECT_EQ(descriptor, untouched);
  }

  /// Creates a half in which a tensor differs.
  void expectTensor(Half half, int operand, bngradDtype_t dtype,
                    const std::vector<int64_t> &shape, bngradStatus_t expected,
                    const std::string &text) {
    bngradTensorDescriptor_t tensor = nullptr;
    ASSERT_EQ(bngradCreateTensorDescriptor(&tensor, dtype,
                                           static_cast<int>(shape.size()),
                                           shape.data(), nullptr),
              BNGRAD_SUCCESS);
    half.tensors[operand] = tensor;
    expectCreate(half, expected, text);
    bngradDestroyTensorDescriptor(tensor);
  }

  void checkShapes(const Half &half, int operand);
  void checkTypes(const Half &half, int operand);
  void checkCall(const Half &half, bngradStatus_t status,
                 const std::string &text);
  void checkOperand(const Half &right, int operand);
  void checkCount(const Half &right);

  Handle handle;
  int count = 0;
};
} // namespace

/// Gradients whose arguments the tests change.
static std::vector<Spec> makeHalfSpecs() {
  Spec all;
  all.shape = {3, 4, 5, 2};
  all.hasMask = true;
  all.wants[GradScale] = all.wants[GradOffset] = false;
  Spec features = all;
  features.shape = {2, 3, 4};
  features.featureDims = {0, 1};
  features.dataType = BNGRAD_DTYPE_BF16;
  features.hasScale = false;
  Spec wide = all;
  wide.dataType = wide.parameterType = BNGRAD_DTYPE_F64;
  wide.order = {0, 2, 3, 1};
  wide.hasMask = false;
  wide.isInvStd = true;
  return {all, features, wide};
}

/// The elements of a channel.
static int64_t countElements(const Gradient &gradient) {
  int64_t elements = 1, channels = 1;
  for (int64_t size : gradient.arrays[Input].shape)
    elements *= size;
  for (int64_t size : gradient.arrays[Mean].shape)
    channels *= size;
  return elements / channels;
}

void HalfArguments::checkShapes(const Half &half, int operand) {
  const Array &array = half.array(operand);
  // All others are wrong for another input.
  std::string name = operand == Input ? "" : getName(operand) + ": ";
  for (size_t dim = 0; dim < array.shape.size(); ++dim)
    for (int64_t size :
         {array.shape[dim] + 1, array.shape[dim] - 1, int64_t(0)}) {
      std::vector<int64_t> shape = array.shape;
      shape[dim] = size;
      expectTensor(half, operand, array.dtype, shape, BNGRAD_BAD_SHAPE, name);
    }
  std::vector<int64_t> more = array.shape, fewer = array.shape;
  more.push_back(1);
  fewer.pop_back();
  expectTensor(half, operand, array.dtype, more, BNGRAD_BAD_SHAPE, name);
  if (operand != Input)
    expectTensor(half, operand, array.dtype, fewer, BNGRAD_BAD_SHAPE, name);
}

void HalfArguments::checkTypes(const Half &half, int operand) {
  const Array &array = half.array(operand);
  for (int type = 0; type <= BNGRAD_DTYPE_BOOL; ++type) {
    auto dtype = static_cast<bngradDtype_t>(type);
    // These may be of any float type.
    bool isFree = operand == GradInput || (operand == Mean && !half.isElemt);
    if (dtype == array.dtype || (isFree && dtype != BNGRAD_DTYPE_BOOL))
      continue;
    bool isOther = operand == Input || operand == Mean;
    expectTensor(half, operand, dtype, array.shape, BNGRAD_BAD_DTYPE,
                 isOther ? "" : getName(operand) + ": ");
  }
}

TEST_F(HalfArguments, Tensors) {
  for (const Spec &spec : makeHalfSpecs()) {
    Gradient gradient(spec);
    ASSERT_EQ(gradient.createHalves(handle), BNGRAD_SUCCESS);
    for (bool isElemt : {false, true}) {
      const Half right(gradient, isElemt);
      for (int i = 0; i < kNumHalfOperands; ++i) {
        if (!right.has(i))
          continue;
        SCOPED_TRACE(spec.print() + " " + getName(i));
        checkShapes(right, i);
        checkTypes(right, i);
        if (i == Scale || i == Mask)
          continue;
        Half half = right;
        half.tensors[i] = nullptr;
        expectCreate(half, BNGRAD_NULL_POINTER, getName(i) + ": ");
      }
      bngradBatchNormBackwardDescriptor_t created = nullptr;
      expect(right.create(nullptr, &created), BNGRAD_NULL_POINTER, "handle: ");
      expect(right.create(handle, nullptr), BNGRAD_NULL_POINTER,
             "descriptor: ");
      gradient.options.statistics = BNGRAD_STATISTICS_GLOBAL;
      expectCreate(right, BNGRAD_BAD_PARAM,
                   "options: expected statistics to be 0 for "
                   "batch_norm_backward_");
      gradient.options.statistics = BNGRAD_STATISTICS_BATCH;
    }
  }
  EXPECT_GE(count, 300);
}

/// Runs a call that is wrong, which must write nothing.
void HalfArguments::checkCall(const Half &half, bngradStatus_t status,
                              const std::string &text) {
  Gradient &gradient = *half.gradient;
  std::vector<char> results = gradient.results();
  std::vector<char> sums = gradient.sums.loadDense();
  expect(half.run(), status, text);
  EXPECT_EQ(gradient.results(), results) << text;
  EXPECT_EQ(gradient.sums.loadDense(), sums) << text;
  EXPECT_EQ(gradient.checkHalves(), "") << text;
}

void HalfArguments::checkOperand(const Half &right, int operand) {
  const Array &array = right.array(operand);
  std::string name = getName(operand) + ": ";
  Half half = right;
  half.data[operand] = nullptr;
  checkCall(half, BNGRAD_NULL_POINTER, name);
  if (array.dtype != BNGRAD_DTYPE_BOOL) {
    half = right;
    half.data[operand] += 1;
    checkCall(half, BNGRAD_BAD_PARAM, name);
  }
  for (char *workspace : {right.data[operand] - right.size + 1,
                          right.data[operand] + array.memory.size() - 1}) {
    half = right;
    half.workspace = workspace;
    checkCall(half, BNGRAD_BAD_PARAM, "workspace: ");
  }
  // The output over another tensor, by some bytes from either side.
  int output = right.getOutput();
  if (operand == output)
    return;
  auto bytes = static_cast<int64_t>(right.array(output).memory.size());
  // Out of reach of the output.
  int64_t margin = (bytes + 63) / 64 * 64;
  Memory workspace(right.size + 2 * static_cast<size_t>(margin));
  for (int64_t offset : {int64_t(array.memory.size()) - 8, 8 - bytes}) {
    half = right;
    auto address = reinterpret_cast<uintptr_t>(right.data[operand] + offset);
    half.data[output] = reinterpret_cast<char *>(address & ~uintptr_t(7));
    half.workspace = workspace.data() + margin;
    // Other tensors may lie there, too.
    checkCall(half, BNGRAD_BAD_PARAM,
              getName(output) + ": expected memory apart");
  }
}

void HalfArguments::checkCount(const Half &right) {
  Half half = right;
  half.count = nullptr;
  checkCall(half, BNGRAD_NULL_POINTER, "count: expected data");
  alignas(8) char bytes[16] = {};
  half.count = reinterpret_cast<int64_t *>(bytes + 4);
  checkCall(half, BNGRAD_BAD_PARAM,
            "count: expected an address that is a multiple of 8, got a "
            "remainder of 4");
  for (int64_t less : {int64_t(0), int64_t(-1), INT64_MIN}) {
    half.count = &less;
    checkCall(half, BNGRAD_BAD_PARAM,
              "count: expected at least 1, got " + std::to_string(less));
  }
  // Over the workspace and the output, at their first and last bytes.
  auto checkOver = [&](const char *data, size_t size, const char *text) {
    for (uintptr_t address : {reinterpret_cast<uintptr_t>(data),
                              reinterpret_cast<uintptr_t>(data) + size - 1}) {
      half.count = reinterpret_cast<int64_t *>(address & ~uintptr_t(7));
      checkCall(half, BNGRAD_BAD_PARAM, text);
    }
  };
  checkOver(right.workspace, right.size,
            "workspace: expected memory apart from that of count, got");
  checkOver(right.data[GradInput], right.array(GradInput).memory.size(),
            "grad_input: expected memory apart from that of count, got");
}

TEST_F(HalfArguments, Calls) {
  for (const Spec &spec : makeHalfSpecs()) {
    Gradient gradient(spec);
    ASSERT_EQ(gradient.createHalves(handle), BNGRAD_SUCCESS);
    ASSERT_EQ(gradient.runHalves(), BNGRAD_SUCCESS) << bngradGetLastError();
    int64_t elements = countElements(gradient);
    for (bool isElemt : {false, true}) {
      SCOPED_TRACE(spec.print() + (isElemt ? " elemt" : " reduce"));
      Half right(gradient, isElemt);
      right.count = &elements;
      Half half = right;
      half.descriptor = nullptr;
      checkCall(half, BNGRAD_NULL_POINTER, "descriptor: ");
      half.descriptor = isElemt ? gradient.reduce : gradient.elemt;
      checkCall(half, BNGRAD_BAD_PARAM,
                std::string("descriptor: expected a descriptor of ") +
                    (isElemt ? "batch_norm_backward_elemt, got one of "
                               "batch_norm_backward_reduce"
                             : "batch_norm_backward_reduce, got one of "
                               "batch_norm_backward_elemt"));
      for (size_t size :
           {size_t(0), size_t(1), right.size / 2, right.size - 1}) {
        half = right;
        half.size = size;
        checkCall(half, BNGRAD_INSUFFICIENT_WORKSPACE, "workspace_size: ");
      }
      half = right;
      half.workspace = nullptr;
      checkCall(half, BNGRAD_NULL_POINTER, "workspace: ");
      for (int i = 0; i < kNumHalfOperands; ++i)
        if (right.has(i))
          checkOperand(right, i);
      if (isElemt)
        checkCount(right);
      ASSERT_EQ(right.run(), BNGRAD_SUCCESS) << bngradGetLastError();
    }
  }
  EXPECT_GE(count, 200);
}

// Each allocation fails once.
TEST_F(HalfArguments, OutOfMemory) {
  Gradient gradient((Spec()));
  ASSERT_EQ(gradient.createHalves(handle), BNGRAD_SUCCESS);
  int64_t elements = countElements(gradient);
  for (bool isElemt : {false, true}) {
    Half half(gradient, isElemt);
    half.count = &elements;
    auto run = [&] {
      half.descriptor = nullptr;
      bngradStatus_t status = half.create(handle, &half.descriptor);
      if (!status)
        status = half.run();
      bngradDestroyBatchNormBackwardDescriptor(half.descriptor);
      return status;
    };
    int failures = 0;
    for (long number = 1;; ++number) {
      bngradStatus_t status = BNGRAD_SUCCESS;
      FailedNew failed =
          callWithFailingNew(number, false, [&] { status = run(); });
      EXPECT_EQ(failed.numLive, 0) << number;
      if (!failed.hasFailed) {
        EXPECT_EQ(status, BNGRAD_SUCCESS);
        break;
      }
      EXPECT_EQ(status, BNGRAD_INTERNAL_ERROR) << number;
      ++failures;
    }
    EXPECT_EQ(failures, 2);
  }
}
