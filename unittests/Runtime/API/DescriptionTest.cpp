//===- DescriptionTest.cpp - descriptions of gradients --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gradient.h"
#include "Specs.h"

#include "gtest/gtest.h"

#include <map>
#include <sstream>

using namespace bngrad::test;

namespace {
using Lines = std::map<std::string, std::string>;

/// Gradients on a handle with threads of their own.
class DescriptionTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
    setThreads(4);
  }

  void setThreads(int count) {
    bngrad_threads_t threads = makeReversedThreads(count);
    ASSERT_EQ(bngradSetThreads(handle, &threads), BNGRAD_SUCCESS);
  }

  static Lines split(const std::string &text) {
    Lines lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      size_t equals = line.find('=');
      EXPECT_NE(equals, std::string::npos) << line;
      EXPECT_TRUE(
          lines.emplace(line.substr(0, equals), line.substr(equals + 1)).second)
          << line;
    }
    return lines;
  }

  static Lines describe(bngradBatchNormBackwardDescriptor_t descriptor) {
    char text[BNGRAD_DESCRIPTION_SIZE];
    EXPECT_EQ(bngradDescribeBatchNormBackward(descriptor, text, sizeof(text)),
              BNGRAD_SUCCESS)
        << bngradGetLastError();
    return split(text);
  }

  /// The lines of a gradient that needs no data.
  Lines describe(const std::vector<int64_t> &shape, bngradDtype_t dtype,
                 bool hasMask = false) {
    bngradTensorDescriptor_t data = nullptr, mask = nullptr, vector = nullptr;
    bngradBatchNormBackwardDescriptor_t descriptor = nullptr;
    auto create = [&](bngradTensorDescriptor_t &tensor, bngradDtype_t type,
                      size_t rank, const int64_t *sizes) {
      EXPECT_EQ(bngradCreateTensorDescriptor(
                    &tensor, type, static_cast<int>(rank), sizes, nullptr),
                BNGRAD_SUCCESS);
    };
    create(data, dtype, shape.size(), shape.data());
    create(mask, BNGRAD_DTYPE_BOOL, shape.size(), shape.data());
    create(vector, BNGRAD_DTYPE_F32, 1, &shape[1]);
    EXPECT_EQ(bngradCreateBatchNormBackwardDescriptor(
                  handle, &descriptor, nullptr, data, vector, vector, data,
                  data, nullptr, vector, vector, hasMask ? mask : nullptr),
              BNGRAD_SUCCESS)
        << bngradGetLastError();
    Lines lines = describe(descriptor);
    bngradDestroyBatchNormBackwardDescriptor(descriptor);
    for (bngradTensorDescriptor_t tensor : {data, mask, vector})
      bngradDestroyTensorDescriptor(tensor);
    return lines;
  }

  Handle handle;
};
} // namespace

TEST_F(DescriptionTest, Planes) {
  Lines lines = describe({32, 64, 56, 56}, BNGRAD_DTYPE_F32);
  EXPECT_NE(lines["isa"], "");
  lines.erase("isa");
  int64_t channel = 2 * 4 * int64_t(32) * 56 * 56;
  Lines expected = {{"part", "whole"},
                    {"kernel", "ready"},
                    {"data", "f32"},
                    {"form", "planes"},
                    {"outer", "32"},
                    {"channels", "64"},
                    {"inner", "3136"},
                    {"schedule", "channels"},
                    {"threads", "4"},
                    {"passes.grad_output", "2"},
                    {"passes.input", "2"},
                    {"passes.grad_input", "1"},
                    {"reuse_bytes", std::to_string(4 * channel)},
                    {"streaming", "1"}};
  EXPECT_EQ(lines, expected);
}

TEST_F(DescriptionTest, RowsReadAllBeforeTheyReadAgain) {
  Lines lines = describe({128, 64}, BNGRAD_DTYPE_BF16, /*hasMask=*/true);
  EXPECT_EQ(lines["data"], "bf16");
  EXPECT_EQ(lines["form"], "rows");
  EXPECT_EQ(lines["schedule"], "rows");
  EXPECT_EQ(lines["threads"], "1");
  EXPECT_EQ(lines["passes.mask"], "2");
  EXPECT_EQ(lines["reuse_bytes"], std::to_string(128 * 64 * (2 + 2 + 1)));
  EXPECT_EQ(lines["streaming"], "0");
}

// Both sides of the rules, whose limits ChooseCpuScheduleTest checks.
TEST_F(DescriptionTest, SchedulesBySizes) {
  auto get = [&](const std::vector<int64_t> &shape,
                 bngradDtype_t type = BNGRAD_DTYPE_F32) {
    return describe(shape, type)["schedule"];
  };
  EXPECT_EQ(get({8, 7, 300}), "split");
  EXPECT_EQ(get({8, 8, 300}), "channels");
  EXPECT_EQ(get({8, 7, 200}), "channels");
  EXPECT_EQ(get({16, 4, 15}), "tiles");
  EXPECT_EQ(get({16, 3, 15}), "channels");
  EXPECT_EQ(get({15, 64, 15}), "channels");
  EXPECT_EQ(get({128, 64, 255}), "tiles");
  EXPECT_EQ(get({128, 64, 256}), "channels");
  EXPECT_EQ(get({31, 512, 40}), "channels");
  EXPECT_EQ(get({16, 512, 86}), "tiles");
  EXPECT_EQ(get({16, 512, 86}, BNGRAD_DTYPE_BF16), "channels");
}

TEST_F(DescriptionTest, TilesReadTheirChannelsAgain) {
  // 1024 elements hold 4 rows.
  Lines lines = describe({128, 64, 255}, BNGRAD_DTYPE_F32);
  EXPECT_EQ(lines["reuse_bytes"],
            std::to_string(2 * 4 * int64_t(128) * 255 * 4 * 4));
  setThreads(100);
  lines = describe({128, 64, 255}, BNGRAD_DTYPE_F32);
  EXPECT_EQ(lines["threads"], "100");
  EXPECT_EQ(lines["reuse_bytes"],
            std::to_string(2 * 4 * int64_t(128) * 255 * 64));
}

TEST_F(DescriptionTest, ThreadsOfOpenMP) {
  ASSERT_EQ(bngradSetThreads(handle, nullptr), BNGRAD_SUCCESS);
  EXPECT_EQ(describe({8, 8, 256}, BNGRAD_DTYPE_F32)["threads"], "openmp");
  EXPECT_EQ(describe({8, 8, 255}, BNGRAD_DTYPE_F32)["threads"], "1");
}

// Data are read once for the sums, and once for grad_input.
TEST_F(DescriptionTest, PassesOfWantedGradients) {
  struct Case {
    bool isGlobal, input, scale, offset;
    const char *ofGradOutput, *ofInput, *ofGradInput; // empty: none
  };
  for (const Case &some :
       std::initializer_list<Case>{{false, true, false, false, "2", "2", "1"},
                                   {false, false, true, true, "1", "1", ""},
                                   {false, false, false, true, "1", "", ""},
                                   {true, true, true, true, "2", "1", "1"},
                                   {true, true, false, true, "2", "", "1"},
                                   {true, true, false, false, "1", "", "1"}}) {
    Spec spec;
    spec.isGlobal = some.isGlobal;
    spec.wants[GradInput] = some.input;
    spec.wants[GradScale] = some.scale;
    spec.wants[GradOffset] = some.offset;
    SCOPED_TRACE(spec.print());
    Gradient gradient(spec);
    ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS);
    Lines lines = describe(gradient.descriptor);
    EXPECT_EQ(lines["passes.grad_output"], some.ofGradOutput);
    EXPECT_EQ(lines["passes.input"], some.ofInput);
    EXPECT_EQ(lines["passes.grad_input"], some.ofGradInput);
    EXPECT_EQ(lines.count("streaming") > 0, some.input);
    if (some.ofGradOutput == std::string("1")) {
      EXPECT_EQ(lines["reuse_bytes"], "0");
    }
  }
}

TEST_F(DescriptionTest, Halves) {
  Spec spec;
  Gradient gradient(spec);
  ASSERT_EQ(gradient.createHalves(handle), BNGRAD_SUCCESS);
  Lines reduce = describe(gradient.reduce), elemt = describe(gradient.elemt);
  EXPECT_EQ(reduce["part"], "reduce");
  EXPECT_EQ(elemt["part"], "elemt");
  for (Lines *lines : {&reduce, &elemt}) {
    EXPECT_EQ((*lines)["passes.grad_output"], "1");
    EXPECT_EQ((*lines)["passes.input"], "1");
    EXPECT_EQ((*lines)["reuse_bytes"], "0");
  }
  EXPECT_EQ(reduce["passes.grad_input"], "");
  EXPECT_EQ(elemt["passes.grad_input"], "1");
}

TEST_F(DescriptionTest, Compiled) {
  setenv("BNGRAD_CACHE_DIR", "", 1);
  std::vector<Spec> specs = makeUncoveredSpecs();
  if (!isLongTest())
    specs.resize(2);
  for (const Spec &spec : specs) {
    SCOPED_TRACE(spec.print());
    Gradient gradient(spec);
    ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS) << bngradGetLastError();
    Lines lines = describe(gradient.descriptor);
    EXPECT_EQ(lines["kernel"], "compiled");
    EXPECT_NE(lines["reason"], "");
    EXPECT_EQ(lines.count("schedule"), 0u);
  }
}

// Of every gradient that the ready kernels cover.
TEST_F(DescriptionTest, Random) {
  Specs specs(7);
  for (int i = 0; i < 100; ++i) {
    Gradient gradient(specs.next());
    SCOPED_TRACE(gradient.spec.print());
    ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS);
    Lines lines = describe(gradient.descriptor);
    EXPECT_EQ(lines["kernel"], "ready");
    EXPECT_EQ(lines.count("reason"), 0u);
    EXPECT_EQ(lines.count("passes.mask") > 0, gradient.spec.hasMask);
    int64_t elements = std::stoll(lines["outer"]) *
                       std::stoll(lines["channels"]) *
                       std::stoll(lines["inner"]);
    int64_t expected = 1;
    for (int64_t size : gradient.spec.shape)
      expected *= size;
    EXPECT_EQ(elements, expected);
  }
}

TEST_F(DescriptionTest, Errors) {
  Spec spec;
  Gradient gradient(spec);
  ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS);
  char text[BNGRAD_DESCRIPTION_SIZE] = "as it was";
  EXPECT_EQ(bngradDescribeBatchNormBackward(nullptr, text, sizeof(text)),
            BNGRAD_NULL_POINTER);
  EXPECT_STREQ(bngradGetLastError(),
               "descriptor: expected a descriptor, got null");
  EXPECT_EQ(bngradDescribeBatchNormBackward(gradient.descriptor, nullptr, 1024),
            BNGRAD_NULL_POINTER);
  EXPECT_STREQ(bngradGetLastError(), "text: expected memory, got null");
  EXPECT_EQ(bngradDescribeBatchNormBackward(gradient.descriptor, text, 0),
            BNGRAD_BAD_PARAM);
  std::string error = bngradGetLastError();
  EXPECT_STREQ(text, "as it was");
  // The size that the error names suffices, and one byte less does not.
  const std::string prefix = "size: expected at least ";
  ASSERT_EQ(error.rfind(prefix, 0), 0u) << error;
  size_t size = std::stoul(error.substr(prefix.size()));
  EXPECT_EQ(error, prefix + std::to_string(size) + ", got 0");
  EXPECT_EQ(
      bngradDescribeBatchNormBackward(gradient.descriptor, text, size - 1),
      BNGRAD_BAD_PARAM);
  EXPECT_EQ(bngradDescribeBatchNormBackward(gradient.descriptor, text, size),
            BNGRAD_SUCCESS);
  EXPECT_EQ(std::string(text).size(), size - 1);
}
