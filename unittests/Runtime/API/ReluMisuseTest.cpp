//===- ReluMisuseTest.cpp - errors of batch norms with a ReLU -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Specs.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <vector>

using namespace bngrad;

namespace {
/// Tensors of 2x3 elements and of 3 channels.
class ReluMisuse : public testing::Test {
protected:
  void SetUp() override {
    setenv("BNGRAD_CACHE_DIR", "", 1);
    const int64_t shape[] = {2, 3};
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(bngradCreateTensorDescriptor(i == 0 ? &data : &other,
                                             i == 0 ? BNGRAD_DTYPE_F32
                                                    : BNGRAD_DTYPE_F16,
                                             2, shape, nullptr),
                BNGRAD_SUCCESS);
    }
    ASSERT_EQ(bngradCreateTensorDescriptor(&channels, BNGRAD_DTYPE_F32, 1,
                                           shape + 1, nullptr),
              BNGRAD_SUCCESS);
    options.struct_size = sizeof(options);
    options.statistic = BNGRAD_STATISTIC_INV_STD;
  }
  void TearDown() override {
    for (bngradTensorDescriptor_t tensor : {data, other, channels})
      bngradDestroyTensorDescriptor(tensor);
    bngradDestroyBatchNormBackwardDescriptor(backward);
    bngradDestroyBatchNormTrainingDescriptor(training);
    unsetenv("BNGRAD_CACHE_DIR");
  }

  bngradStatus_t createTraining(bngradTensorDescriptor_t output,
                                bngradTensorDescriptor_t residual) {
    return bngradCreateBatchNormTrainingReluDescriptor(
        handle, &training, nullptr, output, nullptr, nullptr, nullptr, nullptr,
        nullptr, data, nullptr, nullptr, residual);
  }

  bngradStatus_t createBackward(bngradTensorDescriptor_t gradInput,
                                bngradTensorDescriptor_t gradResidual,
                                bngradTensorDescriptor_t output) {
    return bngradCreateBatchNormBackwardReluDescriptor(
        handle, &backward, &options, gradInput, nullptr, nullptr, gradResidual,
        data, data, nullptr, channels, channels, output);
  }

  void expect(bngradStatus_t status, bngradStatus_t expected,
              const char *text) {
    EXPECT_EQ(status, expected);
    EXPECT_STREQ(bngradGetLastError(), text);
  }

  test::Handle handle;
  bngradTensorDescriptor_t data = nullptr, other = nullptr, channels = nullptr;
  bngradBatchNormBackwardOptions_t options = {};
  bngradBatchNormTrainingDescriptor_t training = nullptr;
  bngradBatchNormBackwardDescriptor_t backward = nullptr;
};
} // namespace

TEST_F(ReluMisuse, Descriptors) {
  expect(createTraining(nullptr, nullptr), BNGRAD_NULL_POINTER,
         "output: expected a tensor descriptor, got null");
  expect(createTraining(other, nullptr), BNGRAD_BAD_DTYPE,
         "output: expected the dtype of input, f32, got f16");
  expect(createTraining(data, other), BNGRAD_BAD_DTYPE,
         "residual: expected the dtype of input, f32, got f16");
  expect(createTraining(data, channels), BNGRAD_BAD_SHAPE,
         "residual: expected rank 2, that of input, got 1");
  expect(createBackward(nullptr, data, data), BNGRAD_BAD_PARAM,
         "expected grad_input, grad_scale or grad_offset to be wanted, got "
         "none");
  expect(createBackward(data, other, data), BNGRAD_BAD_DTYPE,
         "grad_residual: expected the dtype of input, f32, got f16");
  expect(createBackward(data, nullptr, nullptr), BNGRAD_NULL_POINTER,
         "output: expected a tensor descriptor, got null");
  expect(createBackward(data, nullptr, other), BNGRAD_BAD_DTYPE,
         "output: expected the dtype of input, f32, got f16");
  options.process_group = reinterpret_cast<bngradProcessGroup_t>(this);
  expect(createBackward(data, nullptr, data), BNGRAD_BAD_PARAM,
         "options: expected process_group to be null for "
         "batch_norm_backward_relu, got one");
}

TEST_F(ReluMisuse, Memory) {
  ASSERT_EQ(createBackward(data, data, data), BNGRAD_SUCCESS)
      << bngradGetLastError();
  size_t size = 0;
  ASSERT_EQ(bngradGetBatchNormBackwardWorkspaceSize(backward, &size),
            BNGRAD_SUCCESS);
  std::vector<char> workspace(size);
  float gradOutput[6] = {}, input[6] = {}, output[6] = {}, gradInput[6];
  float statistics[3] = {1, 1, 1}, gradResidual[6];
  auto call = [&](float *toInput, float *toResidual) {
    return bngradBatchNormBackwardRelu(
        backward, workspace.data(), size, toInput, nullptr, nullptr, toResidual,
        gradOutput, input, nullptr, statistics, statistics, output, nullptr);
  };
  EXPECT_EQ(call(gradInput, gradResidual), BNGRAD_SUCCESS);
  // The gradient reads input and output again after it stores grad_residual.
  expect(call(gradInput, input), BNGRAD_BAD_PARAM,
         "grad_residual: expected memory apart from that of input, got an "
         "overlap");
  expect(call(gradInput, output), BNGRAD_BAD_PARAM,
         "grad_residual: expected memory apart from that of output, got an "
         "overlap");
  expect(call(gradInput, gradInput), BNGRAD_BAD_PARAM,
         "grad_input: expected memory apart from that of grad_residual, got "
         "an overlap");
  // A descriptor of another op.
  expect(bngradBatchNormBackward(backward, workspace.data(), size, gradInput,
                                 nullptr, nullptr, gradOutput, input, nullptr,
                                 statistics, statistics, nullptr, nullptr),
         BNGRAD_BAD_PARAM,
         "descriptor: expected a descriptor of batch_norm_backward, got one of "
         "batch_norm_backward_relu");
}

TEST_F(ReluMisuse, WithoutCompiler) {
  setenv("BNGRAD_COMPILER", "", 1);
  options.statistics = BNGRAD_STATISTICS_GLOBAL; // as in no other test
  expect(createBackward(data, nullptr, data), BNGRAD_COMPILER_NOT_FOUND,
         "expected a ready kernel or libBNGradCompiler.so of the package "
         "bngrad-compiler: it has a ReLU, and BNGRAD_COMPILER is empty");
  unsetenv("BNGRAD_COMPILER");
}
