//===- ChooseCpuScheduleTest.cpp - thresholds of the choice ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule/ChooseCpuSchedule.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::bngrad;

constexpr int64_t kDynamic = ShapedType::kDynamic;

/// Reduced and feature loops take turns, the last of them of the kind given.
static DataShape makeShape(ArrayRef<int64_t> sizes, bool endsInFeature) {
  DataShape shape;
  shape.sizes.assign(sizes.begin(), sizes.end());
  for (size_t i = 0; i < sizes.size(); ++i)
    shape.isFeature.push_back(((sizes.size() - 1 - i) % 2 == 0) ==
                              endsInFeature);
  return shape;
}

/// Sizes [N, C, S] or [C, S].
static ScheduleKind chooseNchw(ArrayRef<int64_t> sizes,
                               int64_t elementBytes = 4) {
  DataShape shape = makeShape(sizes, /*endsInFeature=*/false);
  shape.elementBytes = elementBytes;
  return chooseCpuKind(shape);
}

TEST(ChooseCpuScheduleTest, RowsWhereChannelsAreInnermost) {
  EXPECT_EQ(chooseCpuKind(makeShape({32, 64}, true)), ScheduleKind::Rows);
  EXPECT_EQ(chooseCpuKind(makeShape({kDynamic, kDynamic}, true)),
            ScheduleKind::Rows);
  // [C] alone, and [C, N, C].
  EXPECT_EQ(chooseCpuKind(makeShape({64}, true)), ScheduleKind::Loops);
  EXPECT_EQ(chooseCpuKind(makeShape({4, 32, 64}, true)), ScheduleKind::Loops);
}

TEST(ChooseCpuScheduleTest, LoopsWithoutElements) {
  EXPECT_EQ(chooseNchw({0, 64, 49}), ScheduleKind::Loops);
  EXPECT_EQ(chooseNchw({kDynamic, 64, 0}), ScheduleKind::Loops);
  EXPECT_EQ(chooseCpuKind(makeShape({0, 64}, true)), ScheduleKind::Loops);
}

TEST(ChooseCpuScheduleTest, SizesWhereOneIsDynamic) {
  EXPECT_EQ(chooseNchw({kDynamic, 64, 49}), ScheduleKind::Sizes);
  EXPECT_EQ(chooseNchw({32, 64, kDynamic}), ScheduleKind::Sizes);
}

TEST(ChooseCpuScheduleTest, SplitForFewChannels) {
  EXPECT_EQ(chooseNchw({32, 7, 1024}), ScheduleKind::Split);
  EXPECT_EQ(chooseNchw({32, 8, 1024}), ScheduleKind::Channels);
  // 16384 elements, and fewer.
  EXPECT_EQ(chooseNchw({8, 1, 2048}), ScheduleKind::Split);
  EXPECT_EQ(chooseNchw({8, 1, 2047}), ScheduleKind::Channels);
}

TEST(ChooseCpuScheduleTest, TilesForManyShortRows) {
  EXPECT_EQ(chooseNchw({128, 64, 255}), ScheduleKind::Tiles);
  EXPECT_EQ(chooseNchw({128, 64, 256}), ScheduleKind::Channels);
  // 8192 rows, and fewer.
  EXPECT_EQ(chooseNchw({128, 64, 16}), ScheduleKind::Tiles);
  EXPECT_EQ(chooseNchw({128, 63, 16}), ScheduleKind::Channels);
  EXPECT_EQ(chooseNchw({8191, 1, 16}), ScheduleKind::Split);
  // Rows of less than a vector: 64, and fewer.
  EXPECT_EQ(chooseNchw({16, 4, 15}), ScheduleKind::Tiles);
  EXPECT_EQ(chooseNchw({16, 3, 15}), ScheduleKind::Channels);
}

TEST(ChooseCpuScheduleTest, TilesForManySamples) {
  EXPECT_EQ(chooseNchw({32, 512, 40}), ScheduleKind::Tiles);
  EXPECT_EQ(chooseNchw({31, 512, 40}), ScheduleKind::Channels);
  EXPECT_EQ(chooseNchw({16, 1024, 15}), ScheduleKind::Tiles);
  EXPECT_EQ(chooseNchw({15, 1024, 15}), ScheduleKind::Channels);
  // Fewer where tensors have at least a third of 8 MiB.
  EXPECT_EQ(chooseNchw({16, 1024, 196}), ScheduleKind::Tiles);
  EXPECT_EQ(chooseNchw({15, 2048, 196}), ScheduleKind::Channels);
  EXPECT_EQ(chooseNchw({16, 512, 85}), ScheduleKind::Channels);
  EXPECT_EQ(chooseNchw({16, 512, 86}), ScheduleKind::Tiles);
  EXPECT_EQ(chooseNchw({16, 512, 170}, 2), ScheduleKind::Channels);
  EXPECT_EQ(chooseNchw({16, 512, 171}, 2), ScheduleKind::Tiles);
  // A single sample.
  EXPECT_EQ(chooseNchw({65536, 196}), ScheduleKind::Channels);
}

TEST(ChooseCpuScheduleTest, NoTilesOfSeveralFeatureLoops) {
  EXPECT_EQ(chooseNchw({8, 4, 64, 64, 15}), ScheduleKind::Channels);
  EXPECT_EQ(chooseNchw({64, 64, 64, 15}), ScheduleKind::Channels);
}

TEST(ChooseCpuScheduleTest, HugeSizes) {
  int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(chooseNchw({most, most, most}), ScheduleKind::Channels);
  EXPECT_EQ(chooseNchw({most, 1, most}), ScheduleKind::Split);
}

TEST(ChooseCpuScheduleTest, Parameters) {
  Target target;
  target.threads = 3;
  target.vectorBits = 256;
  target.l1Bytes = 48 << 10;
  target.lastLevelBytes = 1000;
  target.fma = true;
  DataShape shape = makeShape({128, 64, 49}, false);
  shape.elementBytes = 4;
  CpuSchedule tiles = chooseCpuSchedule(ScheduleKind::Tiles, shape, target);
  EXPECT_EQ(tiles.threads, 3);
  EXPECT_EQ(tiles.vectorBits, 256);
  EXPECT_EQ(tiles.streamingBytes, 1000);
  EXPECT_EQ(tiles.columns, 1024);
  EXPECT_EQ(tiles.rowBlocks, 32);
  EXPECT_TRUE(tiles.fma);
  // As many bytes per row of a tile for every type; the tables of `rows` have
  // the type of the sums.
  shape.elementBytes = 2;
  EXPECT_EQ(chooseCpuSchedule(ScheduleKind::Tiles, shape, target).columns,
            2048);
  EXPECT_EQ(chooseCpuSchedule(ScheduleKind::Rows, shape, target).columns, 1024);
  // At least 64, whatever the cache.
  target.l1Bytes = 0;
  EXPECT_EQ(chooseCpuSchedule(ScheduleKind::Rows, shape, target).columns, 64);
  EXPECT_EQ(chooseCpuSchedule(ScheduleKind::Loops, shape, target),
            CpuSchedule());
}
