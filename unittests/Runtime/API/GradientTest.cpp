//===- GradientTest.cpp - results of the C library ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gradient.h"
#include "Specs.h"

#include "gtest/gtest.h"

#include <cstdlib>

using namespace bngrad;
using namespace bngrad::test;

/// Runs random gradients by the kernels of `isa`, `count` of them in the long
/// tests and else half; 0: this CPU has none.
static int runRandom(const char *isa, unsigned seed, int count) {
  if (!isLongTest())
    count /= 2;
  Handle handle(isa);
  if (handle.status != BNGRAD_SUCCESS)
    return 0;
  Specs specs(seed);
  for (int i = 0; i < count; ++i) {
    Gradient gradient(specs.next());
    SCOPED_TRACE(std::string(isa) + " " + gradient.spec.print());
    EXPECT_EQ(gradient.create(handle), BNGRAD_SUCCESS) << bngradGetLastError();
    EXPECT_EQ(gradient.run(), BNGRAD_SUCCESS) << bngradGetLastError();
    EXPECT_EQ(gradient.check(), "");
    std::vector<char> results = gradient.results();
    // Bit for bit the same with other threads.
    for (int threads : {1, 3, 64}) {
      bngrad_threads_t reversed = makeReversedThreads(threads);
      EXPECT_EQ(bngradSetThreads(handle, &reversed), BNGRAD_SUCCESS);
      EXPECT_EQ(gradient.run(), BNGRAD_SUCCESS) << bngradGetLastError();
      EXPECT_EQ(gradient.results(), results) << threads << " threads";
    }
    EXPECT_EQ(gradient.runAsync(nullptr, nullptr), BNGRAD_SUCCESS)
        << bngradGetLastError();
    EXPECT_EQ(gradient.check(), "") << "in steps";
    EXPECT_EQ(bngradSetThreads(handle, nullptr), BNGRAD_SUCCESS);
    if (testing::Test::HasFailure())
      break;
  }
  return count;
}

TEST(Gradient, Best) { EXPECT_GT(runRandom("", 1, 400), 0); }

// Those that this CPU lacks are tested where it has them.
TEST(Gradient, X86V2) { runRandom("x86-64-v2", 2, 200); }
TEST(Gradient, X86V3) { runRandom("x86-64-v3", 3, 200); }
TEST(Gradient, X86V4) { runRandom("x86-64-v4", 4, 200); }
TEST(Gradient, X86V4Bf16) { runRandom("x86-64-v4+avx512bf16", 5, 200); }

// Without masks for elements of 16 bits, the rest of a row is a vector that
// overlaps the one before, which may have been written over its operands.
TEST(Gradient, Rests) {
  for (const char *isa : {"x86-64-v2", "x86-64-v3"}) {
    Handle handle(isa);
    if (handle.status != BNGRAD_SUCCESS)
      continue;
    for (bngradDtype_t type : {BNGRAD_DTYPE_BF16, BNGRAD_DTYPE_F16})
      for (Operand inPlaceOf : {GradInput, GradOutput, Input})
        for (int64_t length :
             {1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 49, 67}) {
          Spec spec;
          spec.shape = {2, 5, length};
          spec.dataType = type;
          spec.inPlaceOf = inPlaceOf;
          spec.seed = length;
          SCOPED_TRACE(std::string(isa) + " " + spec.print());
          Gradient gradient(spec);
          ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS)
              << bngradGetLastError();
          ASSERT_EQ(gradient.run(), BNGRAD_SUCCESS) << bngradGetLastError();
          ASSERT_EQ(gradient.check(), "");
        }
  }
}

// Compiled by libBNGradCompiler.so.
TEST(Gradient, Compiled) {
  setenv("BNGRAD_CACHE_DIR", "", 1);
  Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
  int number = 0;
  for (Spec spec : makeUncoveredSpecs())
    for (int variant = 0; variant < 3; ++variant) {
      // The variants take turns, unless there is time for all.
      if (number++ / 3 % 3 != variant && !isLongTest())
        continue;
      spec.isGlobal = variant == 1;
      spec.wants[GradInput] = variant != 2;
      spec.inPlaceOf = variant == 1 ? GradOutput : GradInput;
      spec.parameterStride = 1 + variant % 2;
      spec.seed++;
      SCOPED_TRACE(spec.print());
      Gradient gradient(spec);
      ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS)
          << bngradGetLastError();
      ASSERT_EQ(gradient.run(), BNGRAD_SUCCESS) << bngradGetLastError();
      ASSERT_EQ(gradient.check(), "");
      std::vector<char> results = gradient.results();
      bngrad_threads_t reversed = makeReversedThreads(3);
      ASSERT_EQ(bngradSetThreads(handle, &reversed), BNGRAD_SUCCESS);
      ASSERT_EQ(gradient.runAsync(nullptr, nullptr), BNGRAD_SUCCESS);
      ASSERT_EQ(gradient.results(), results);
      ASSERT_EQ(bngradSetThreads(handle, nullptr), BNGRAD_SUCCESS);
    }
  unsetenv("BNGRAD_CACHE_DIR");
}

// Of so many elements that loops are shared among threads, with every schedule.
TEST(Gradient, Large) {
  Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS);
  Spec spec;
  for (const auto &[shape, order] :
       {std::pair(std::vector<int64_t>{8, 16, 40, 40}, std::vector<int>{}),
        std::pair(std::vector<int64_t>{8, 16, 40, 40},
                  std::vector<int>{0, 2, 3, 1}),
        std::pair(std::vector<int64_t>{64, 512, 7}, std::vector<int>{}),
        std::pair(std::vector<int64_t>{3, 1, 70000}, std::vector<int>{}),
        std::pair(std::vector<int64_t>{5, 3, 20000}, std::vector<int>{}),
        std::pair(std::vector<int64_t>{70000, 3}, std::vector<int>{}),
        std::pair(std::vector<int64_t>{40, 5000}, std::vector<int>{})})
    for (bngradDtype_t type : {BNGRAD_DTYPE_F32, BNGRAD_DTYPE_BF16})
      for (bool isGlobal : {false, true}) {
        spec.shape = shape;
        spec.order = order;
        spec.dataType = type;
        spec.isGlobal = isGlobal;
        spec.seed++;
        Gradient gradient(spec);
        SCOPED_TRACE(spec.print());
        ASSERT_EQ(gradient.create(handle), BNGRAD_SUCCESS);
        ASSERT_EQ(gradient.run(), BNGRAD_SUCCESS);
        ASSERT_EQ(gradient.check(), "");
        std::vector<char> results = gradient.results();
        bngrad_threads_t reversed = makeReversedThreads(5);
        ASSERT_EQ(bngradSetThreads(handle, &reversed), BNGRAD_SUCCESS);
        ASSERT_EQ(gradient.run(), BNGRAD_SUCCESS);
        ASSERT_EQ(gradient.results(), results);
        ASSERT_EQ(gradient.runAsync(nullptr, nullptr), BNGRAD_SUCCESS);
        ASSERT_EQ(gradient.check(), "") << "in steps";
        ASSERT_EQ(bngradSetThreads(handle, nullptr), BNGRAD_SUCCESS);
      }
}
