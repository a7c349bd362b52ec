//===- TargetTest.cpp - features and caches of a CPU ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Schedule/Target.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/TargetParser/Triple.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

using mlir::bngrad::Target;

static Target getTarget(llvm::StringRef triple,
                        const llvm::StringSet<> &features) {
  Target target;
  target.setFeatures(llvm::Triple(triple), [&](llvm::StringRef feature) {
    return features.contains(feature);
  });
  return target;
}

TEST(TargetTest, LengthOfVectors) {
  EXPECT_EQ(getTarget("x86_64", {}).vectorBits, 128);
  EXPECT_EQ(getTarget("x86_64", {"avx2"}).vectorBits, 256);
  EXPECT_EQ(getTarget("x86_64", {"avx2", "avx512f"}).vectorBits, 512);
  EXPECT_EQ(getTarget("aarch64", {"neon"}).vectorBits, 128);
}

TEST(TargetTest, FusedMultiplyAdd) {
  EXPECT_FALSE(getTarget("x86_64", {"avx2"}).fma);
  EXPECT_TRUE(getTarget("x86_64", {"avx2", "fma"}).fma);
  EXPECT_TRUE(getTarget("aarch64", {}).fma);
}

// Both features are needed.
TEST(TargetTest, ConversionToBF16) {
  EXPECT_FALSE(getTarget("x86_64", {"avx512f"}).bf16Conversion);
  EXPECT_FALSE(getTarget("x86_64", {"avx512bf16"}).bf16Conversion);
  EXPECT_TRUE(getTarget("x86_64", {"avx512f", "avx512bf16"}).bf16Conversion);
}

namespace {
/// A folder like /sys/devices/system/cpu/cpu0/cache.
class CachesTest : public ::testing::Test {
protected:
  void SetUp() override { std::filesystem::remove_all(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  void addCache(const std::string &level, const std::string &type,
                const std::string &size) {
    auto path = folder / ("index" + std::to_string(count++));
    std::filesystem::create_directories(path);
    std::ofstream(path / "level") << level << '\n';
    std::ofstream(path / "type") << type << '\n';
    std::ofstream(path / "size") << size << '\n';
  }
  Target read() {
    Target target;
    target.l1Bytes = 1;
    target.lastLevelBytes = 2;
    target.setCaches(folder.string());
    return target;
  }

  std::filesystem::path folder =
      std::string("caches-") +
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  int count = 0;
};
} // namespace

TEST_F(CachesTest, ThreeLevels) {
  addCache("1", "Instruction", "64K");
  addCache("1", "Data", "32K");
  addCache("2", "Unified", "1024K");
  addCache("3", "Unified", "32768K");
  EXPECT_EQ(read().l1Bytes, 32 << 10);
  EXPECT_EQ(read().lastLevelBytes, 32 << 20);
}

TEST_F(CachesTest, TwoLevels) {
  addCache("1", "Data", "48K");
  addCache("1", "Instruction", "64K");
  addCache("2", "Unified", "2048K");
  EXPECT_EQ(read().l1Bytes, 48 << 10);
  EXPECT_EQ(read().lastLevelBytes, 2 << 20);
}

TEST_F(CachesTest, AsManyAsEight) {
  for (int i = 0; i < 6; ++i)
    addCache("1", "Instruction", "64K");
  addCache("1", "Data", "16K");
  addCache("2", "Unified", "512K");
  EXPECT_EQ(read().l1Bytes, 16 << 10);
  EXPECT_EQ(read().lastLevelBytes, 512 << 10);
}

// A machine may list no caches, or say nothing of their size.
TEST_F(CachesTest, NothingIsKnown) {
  EXPECT_EQ(read().l1Bytes, 1);
  EXPECT_EQ(read().lastLevelBytes, 2);
  addCache("1", "Data", "");
  addCache("2", "Unified", "unknown");
  EXPECT_EQ(read().l1Bytes, 1);
  EXPECT_EQ(read().lastLevelBytes, 2);
}
