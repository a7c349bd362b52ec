//===- ChooseGpuScheduleTest.cpp - thresholds of the choice ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule/ChooseGpuSchedule.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::bngrad;

/// [rows, channels, length] of two operands with elements of `width` bytes.
static OnePassLayout makeLayout(int64_t rows, int64_t channels, int64_t length,
                                int64_t width = 4) {
  OnePassLayout layout;
  layout.channelsInnermost = false;
  layout.rows = rows;
  layout.channels = channels;
  layout.length = length;
  layout.widths = {width, width};
  layout.sumBytes = layout.exchangedBytes = 8;
  layout.resultBytes = 20;
  layout.lanes = 16 / width;
  return layout;
}

static OnePassLayout makeRowMajor(int64_t rows, int64_t channels,
                                  int64_t width = 4) {
  OnePassLayout layout = makeLayout(rows, channels, 1, width);
  layout.channelsInnermost = true;
  return layout;
}

static std::optional<GpuSchedule> choose(const OnePassLayout &layout,
                                         StringRef chip = "sm_90") {
  return chooseOnePass(layout, *CudaChip::find(chip));
}

TEST(ChooseGpuScheduleTest, ClusterGrowsWithTheRows) {
  // Half of 227 KB less 12 KB: 104,000 bytes, so 13,000 elements of two
  // operands. A row is a multiple of 128 bytes here.
  auto cluster = [](int64_t rows) {
    std::optional<GpuSchedule> schedule = choose(makeLayout(rows, 200, 32));
    return schedule ? schedule->clusterBlocks : 0;
  };
  EXPECT_EQ(cluster(406), 1);
  EXPECT_EQ(cluster(407), 2);
  EXPECT_EQ(cluster(812), 2);
  EXPECT_EQ(cluster(813), 4);
  EXPECT_EQ(cluster(1625), 8);
  EXPECT_EQ(cluster(3248), 8);
  EXPECT_EQ(cluster(3249), 16);
  EXPECT_EQ(cluster(6496), 16);
}

TEST(ChooseGpuScheduleTest, ClusterIsAllowedOnTheChip) {
  // Half of 99 KB less 12 KB: 150 rows. More do not share a multiprocessor.
  EXPECT_EQ(choose(makeLayout(1200, 200, 32), "sm_120")->clusterBlocks, 8);
  EXPECT_EQ(choose(makeLayout(1200, 200, 32), "sm_120")->blockThreads, 256);
  EXPECT_EQ(choose(makeLayout(1201, 200, 32), "sm_120")->blockThreads, 512);
  std::string reason;
  auto isSupported = [&](StringRef chip, int64_t cluster) {
    MLIRContext context;
    context.loadDialect<BNGradDialect>();
    GpuSchedule schedule;
    schedule.clusterBlocks = cluster;
    reason.clear();
    return succeeded(CudaChip::find(chip)->verifySupport(
        ScheduleAttr::get(&context, ScheduleKind::OnePass, schedule), reason));
  };
  EXPECT_TRUE(isSupported("sm_90", 16));
  EXPECT_TRUE(isSupported("sm_120", 8));
  EXPECT_FALSE(isSupported("sm_120", 16));
  EXPECT_EQ(reason,
            "expected cluster_blocks of at most 8 for the given chips, got 16");
  EXPECT_FALSE(isSupported("sm_89", 1));
}

TEST(ChooseGpuScheduleTest, TwoBlocksShareAMultiprocessor) {
  // Half of 227 KB less 12 KB, of sixteen blocks.
  EXPECT_EQ(choose(makeLayout(6496, 200, 32))->blockThreads, 256);
}

TEST(ChooseGpuScheduleTest, OneBlockFillsAMultiprocessor) {
  // 227 KB less 12 KB are 860 rows, of eight blocks or of sixteen.
  std::optional<GpuSchedule> schedule = choose(makeLayout(6497, 200, 32));
  EXPECT_EQ(schedule->blockThreads, 512);
  EXPECT_EQ(schedule->clusterBlocks, 8);
  EXPECT_EQ(choose(makeLayout(13760, 200, 32))->clusterBlocks, 16);
  EXPECT_FALSE(choose(makeLayout(13761, 200, 32)));
  // Rows that are not aligned, and rows of two channels that are not flat.
  EXPECT_FALSE(choose(makeLayout(2, 400, 14002)));
  EXPECT_FALSE(choose(makeLayout(208, 400, 1026)));
  EXPECT_EQ(choose(makeLayout(208, 400, 1028))->blockThreads, 512);
  // 1720 rows of 16 innermost channels. Rows that are not aligned.
  schedule = choose(makeRowMajor(27520, 1024));
  EXPECT_EQ(schedule->blockThreads, 512);
  EXPECT_EQ(schedule->blockChannels, 16);
  EXPECT_EQ(schedule->clusterBlocks, 16);
  EXPECT_FALSE(choose(makeRowMajor(27521, 1024)));
  EXPECT_FALSE(choose(makeRowMajor(27520, 1026)));
}

TEST(ChooseGpuScheduleTest, OneWaveNeedsNoCluster) {
  // Where more than three quarters of 132 multiprocessors have a block.
  EXPECT_EQ(choose(makeLayout(407, 100, 32))->clusterBlocks, 1);
  EXPECT_EQ(choose(makeLayout(407, 132, 32))->blockThreads, 512);
  EXPECT_EQ(choose(makeLayout(407, 99, 32))->clusterBlocks, 2);
  EXPECT_EQ(choose(makeLayout(407, 133, 32))->clusterBlocks, 2);
  // Two fit on one as well.
  EXPECT_EQ(choose(makeLayout(400, 132, 32))->blockThreads, 512);
  EXPECT_EQ(choose(makeRowMajor(407, 3200))->clusterBlocks, 1);
  EXPECT_EQ(choose(makeRowMajor(407, 3168))->clusterBlocks, 2);
}

TEST(ChooseGpuScheduleTest, OneWaveNeedsNoLargeCluster) {
  // Of 8 blocks that fill a multiprocessor each instead of 16 smaller ones.
  EXPECT_EQ(choose(makeRowMajor(6272, 416))->clusterBlocks, 8);
  EXPECT_EQ(choose(makeRowMajor(6272, 416))->blockThreads, 512);
  EXPECT_EQ(choose(makeRowMajor(6272, 384))->clusterBlocks, 16);
  // 15 clusters of 8 blocks run at once, not 16.
  EXPECT_EQ(choose(makeRowMajor(6272, 480))->clusterBlocks, 8);
  EXPECT_EQ(choose(makeRowMajor(6272, 512))->clusterBlocks, 4);
  EXPECT_EQ(choose(makeRowMajor(6272, 544))->clusterBlocks, 16);
}

TEST(ChooseGpuScheduleTest, SmallClustersHaveRoom) {
  // 15 clusters of 16 blocks run at once, two blocks on a multiprocessor, and
  // 66 of 4 with a quarter of the channels.
  std::optional<GpuSchedule> schedule = choose(makeRowMajor(6272, 1024));
  EXPECT_EQ(schedule->clusterBlocks, 4);
  EXPECT_EQ(schedule->blockChannels, 8);
  EXPECT_EQ(choose(makeRowMajor(6272, 960))->clusterBlocks, 16);
  // As long as five waves.
  EXPECT_EQ(choose(makeRowMajor(6272, 1952))->clusterBlocks, 16);
  // Rows of a quarter would be less than a sector.
  EXPECT_EQ(choose(makeRowMajor(12544, 512))->clusterBlocks, 16);
  // A device that runs 16.
  CudaChip chip = *CudaChip::find("sm_90");
  std::string reason;
  ASSERT_TRUE(succeeded(chip.setActiveClusters("16:8:16", reason)));
  EXPECT_EQ(chooseOnePass(makeRowMajor(6272, 1024), chip)->clusterBlocks, 16);
}

TEST(ChooseGpuScheduleTest, ClustersThatADeviceCannotRun) {
  CudaChip chip = *CudaChip::find("sm_90");
  std::string reason;
  ASSERT_TRUE(succeeded(chip.setActiveClusters("16:0:0", reason)));
  EXPECT_EQ(chooseOnePass(makeLayout(6496, 200, 32), chip)->clusterBlocks, 8);
  EXPECT_FALSE(chooseOnePass(makeLayout(13760, 200, 32), chip));
}

TEST(ChooseGpuScheduleTest, LastWaveIsFull) {
  // 512 blocks: two at a time of each multiprocessor, in three waves. 368 are
  // one wave of three.
  EXPECT_EQ(choose(makeRowMajor(8192, 1024, 2))->blockThreads, 512);
  EXPECT_EQ(choose(makeRowMajor(8192, 736, 2))->blockThreads, 256);
  // Three waves of three instead of five of two.
  EXPECT_EQ(choose(makeRowMajor(8192, 1024))->blockThreads, 256);
}

TEST(ChooseGpuScheduleTest, ClusterHasARowForEachBlock) {
  EXPECT_EQ(choose(makeLayout(2, 200, 12000))->clusterBlocks, 2);
  EXPECT_EQ(choose(makeLayout(1, 200, 14000))->blockThreads, 512);
  EXPECT_FALSE(choose(makeLayout(1, 200, 30000)));
}

TEST(ChooseGpuScheduleTest, ChannelsOfABlockAreAligned) {
  // Runs of 49 * 4 bytes: four of them are a multiple of 16.
  EXPECT_EQ(choose(makeLayout(128, 512, 49))->blockChannels, 4);
  EXPECT_EQ(choose(makeLayout(128, 512, 49, 2))->blockChannels, 8);
  // No number of channels up to 16 divides all of them.
  EXPECT_EQ(choose(makeLayout(128, 509, 49))->blockChannels, 1);
}

TEST(ChooseGpuScheduleTest, ShortChannelsAreJoined) {
  // While there is a block for each of 132 multiprocessors.
  EXPECT_EQ(choose(makeLayout(2, 264, 16))->blockChannels, 2);
  EXPECT_EQ(choose(makeLayout(2, 262, 16))->blockChannels, 1);
  // Up to 64, with a warp for each, of at least 4 and at most 8 warps.
  EXPECT_EQ(choose(makeLayout(2, 65536, 16))->blockChannels, 64);
  EXPECT_EQ(choose(makeLayout(2, 264, 16))->blockThreads, 128);
  EXPECT_EQ(choose(makeLayout(2, 65536, 16))->blockThreads, 256);
}

TEST(ChooseGpuScheduleTest, FlatRows) {
  auto find = [](const OnePassLayout &layout, int64_t channels, int64_t threads,
                 int64_t bits = 128) {
    GpuSchedule schedule;
    schedule.blockChannels = channels;
    schedule.blockThreads = threads;
    schedule.accessBits = bits;
    return layout.getFlatRows(schedule);
  };
  // 4 * 49 elements of 4 bytes are 49 vectors. One of a channel starts in a
  // piece of the one before, so that it has elements of 13.
  std::optional<FlatRows> flat = find(makeLayout(128, 512, 49), 4, 256);
  ASSERT_TRUE(flat);
  EXPECT_EQ(flat->lanes, 4);
  EXPECT_EQ(flat->columns, 49);
  EXPECT_EQ(flat->rows, 5);
  EXPECT_EQ(flat->pieces, 13);
  EXPECT_EQ(find(makeLayout(128, 512, 49, 2), 8, 256)->pieces, 7);
  // Channels that start at half a vector, of 25 or 24 whole ones.
  EXPECT_EQ(find(makeLayout(64, 512, 196, 2), 2, 256)->pieces, 25);
  EXPECT_EQ(find(makeLayout(64, 512, 50), 2, 256)->pieces, 13);
  // No more rows than the block has.
  EXPECT_EQ(find(makeLayout(3, 512, 49), 4, 256)->rows, 3);
  // A thread for each piece.
  EXPECT_TRUE(find(makeLayout(128, 512, 49), 4, 64));
  EXPECT_FALSE(find(makeLayout(128, 512, 49), 4, 32));
  // Rows of whole vectors, rows that are no vectors together, one row, rows
  // shorter than a piece, innermost channels.
  EXPECT_FALSE(find(makeLayout(128, 512, 48), 4, 256));
  EXPECT_FALSE(find(makeLayout(128, 512, 49), 2, 256));
  EXPECT_FALSE(find(makeLayout(1, 512, 49), 4, 256));
  EXPECT_FALSE(find(makeLayout(128, 512, 3), 4, 256));
  EXPECT_TRUE(find(makeLayout(128, 512, 5), 4, 256));
  EXPECT_FALSE(find(makeRowMajor(128, 49), 4, 256));
  // Half a vector, of which every row has whole ones or not.
  EXPECT_EQ(find(makeLayout(64, 512, 196, 2), 2, 256, 64)->columns, 98);
  EXPECT_EQ(find(makeLayout(64, 512, 49), 4, 256, 64)->columns, 98);
  EXPECT_FALSE(find(makeLayout(64, 512, 49, 8), 4, 256, 64));
}

TEST(ChooseGpuScheduleTest, FlatRowsShareSharedMemory) {
  // 13 slots for each of 4 channels and 5 rows, 4 for their totals, 20 bytes of
  // results of each, and 32 mbarriers.
  OnePassLayout layout = makeLayout(128, 512, 49);
  GpuSchedule schedule;
  schedule.blockChannels = 4;
  EXPECT_EQ(layout.getStaticBytes(schedule),
            (4 * 13 * 5 + 4) * 8 + 4 * 20 + 256);
}

TEST(ChooseGpuScheduleTest, ColumnsShareSharedMemory) {
  // Sums of 16 rows of 256 channels in pieces of 4, or of 32 in pieces of 8.
  OnePassLayout layout = makeRowMajor(64, 256, 2);
  GpuSchedule schedule;
  schedule.blockThreads = 1024;
  schedule.blockChannels = 256;
  int64_t ofChannels = 256 * (8 + 20) + 256;
  EXPECT_EQ(layout.getStaticBytes(schedule), 32 * 256 * 8 + ofChannels);
  schedule.accessBits = 64;
  EXPECT_EQ(layout.getStaticBytes(schedule), 16 * 256 * 8 + ofChannels);
  // A warp adds the sums of 4 rows of 8 threads.
  schedule.blockThreads = 256;
  schedule.blockChannels = 32;
  EXPECT_EQ(layout.getStaticBytes(schedule), 8 * 32 * 8 + 32 * (8 + 20) + 256);
}

TEST(ChooseGpuScheduleTest, ThreadsOfFlatRows) {
  auto threads = [](const OnePassLayout &layout) {
    return choose(layout)->blockThreads;
  };
  // 49 pieces of a row: two blocks on a multiprocessor, four, one. Of four, 128
  // threads take 16 pieces each, 160 threads 11, which are 12 in whole chunks.
  EXPECT_EQ(threads(makeLayout(256, 2048, 49)), 256);
  EXPECT_EQ(threads(makeLayout(32, 2048, 49)), 128);
  EXPECT_EQ(threads(makeLayout(32, 512, 49)), 512);
  EXPECT_EQ(threads(makeLayout(256, 2048, 49, 2)), 256);
  // Three, as four fit without their sums alone.
  EXPECT_EQ(threads(makeLayout(36, 4096, 49)), 192);
  // 221 of 224, where three blocks fit and four would without their sums.
  EXPECT_EQ(threads(makeLayout(64, 512, 221)), 224);
  // 500 pieces, and too many.
  EXPECT_EQ(threads(makeLayout(16, 512, 500, 2)), 256);
  EXPECT_EQ(threads(makeLayout(16, 512, 501)), 512);
  EXPECT_EQ(threads(makeLayout(16, 512, 513)), 128);
}

TEST(ChooseGpuScheduleTest, LanesOfManyChannelsAreFew) {
  auto bits = [](const OnePassLayout &layout) {
    return choose(layout)->accessBits;
  };
  EXPECT_EQ(bits(makeLayout(32, 1024, 196, 2)), 64);
  EXPECT_EQ(bits(makeLayout(32, 1024, 200, 2)), 128);
  EXPECT_EQ(bits(makeLayout(32, 1024, 198)), 128);
  EXPECT_EQ(bits(makeRowMajor(300, 1024, 2)), 64);
  EXPECT_EQ(bits(makeRowMajor(300, 1024)), 128);
}

TEST(ChooseGpuScheduleTest, BlocksFillTheDevice) {
  // 100 channels, a block each: 4 pieces for each of 512 threads, or fewer.
  EXPECT_EQ(choose(makeLayout(2, 100, 4096))->blockThreads, 512);
  EXPECT_EQ(choose(makeLayout(2, 100, 4092))->blockThreads, 256);
  EXPECT_EQ(choose(makeLayout(2, 133, 4096))->blockThreads, 256);
  // Clusters of two, unless 264 blocks have room for one more of four.
  EXPECT_EQ(choose(makeLayout(407, 66, 32))->clusterBlocks, 2);
  EXPECT_EQ(choose(makeLayout(407, 65, 32))->clusterBlocks, 4);
  EXPECT_EQ(choose(makeLayout(407, 31, 32))->clusterBlocks, 4);
  // 248 blocks in clusters of 8, and one more of these.
  EXPECT_EQ(choose(makeLayout(407, 30, 32))->clusterBlocks, 8);
}

TEST(ChooseGpuScheduleTest, JoinedChannelsStayFlat) {
  // 44 rows of 43 elements are 473 pieces, 48 would be 516.
  EXPECT_EQ(choose(makeLayout(2, 67584, 43))->blockChannels, 44);
  // Rows of whole vectors.
  EXPECT_EQ(choose(makeLayout(2, 67584, 40))->blockChannels, 64);
}

TEST(ChooseGpuScheduleTest, RowsOfATileAreWholeLines) {
  EXPECT_EQ(choose(makeRowMajor(300, 4096))->blockChannels, 32);
  EXPECT_EQ(choose(makeRowMajor(300, 8192, 2))->blockChannels, 64);
  // Half a line where a cluster does not hold the whole one.
  EXPECT_EQ(choose(makeRowMajor(6400, 960))->blockChannels, 32);
  EXPECT_EQ(choose(makeRowMajor(12800, 1024))->blockChannels, 16);
}

TEST(ChooseGpuScheduleTest, TilesAreNarrowWhereBlocksAreFew) {
  // Half a line for at most 66 blocks, and a sector for at most 66 of these.
  EXPECT_EQ(choose(makeRowMajor(300, 67 * 32))->blockChannels, 32);
  EXPECT_EQ(choose(makeRowMajor(300, 66 * 32))->blockChannels, 16);
  EXPECT_EQ(choose(makeRowMajor(300, 33 * 32))->blockChannels, 8);
  EXPECT_EQ(choose(makeRowMajor(300, 32))->blockChannels, 8);
  EXPECT_EQ(choose(makeRowMajor(300, 64, 2))->blockChannels, 16);
  // A quarter of 24 channels is not aligned.
  EXPECT_EQ(choose(makeRowMajor(300, 24))->blockChannels, 12);
}

TEST(ChooseGpuScheduleTest, ChipsWithoutClusters) {
  EXPECT_FALSE(choose(makeLayout(32, 64, 49), "sm_89"));
  EXPECT_TRUE(choose(makeLayout(32, 64, 49), "sm_120"));
  GpuSchedule twoPass =
      chooseTwoPass(/*tiles=*/64, /*lanes=*/4, *CudaChip::find("sm_80"));
  EXPECT_EQ(twoPass.sumBlocks, 4 * 108);
  EXPECT_EQ(twoPass.blockThreads, 256);
  EXPECT_TRUE(twoPass.fma);
}

TEST(ChooseGpuScheduleTest, SlicesOfATileAreFew) {
  const CudaChip &chip = *CudaChip::find("sm_90");
  for (int64_t tiles : {1, 2, 3, 8})
    for (int64_t lanes : {1, 4, 8}) {
      GpuSchedule twoPass = chooseTwoPass(tiles, lanes, chip);
      EXPECT_EQ(twoPass.sumBlocks, (tiles == 1 ? 2 : 4) * 132);
      EXPECT_EQ(twoPass.blockThreads, tiles == 1 && lanes < 8 ? 512 : 256);
    }
}
