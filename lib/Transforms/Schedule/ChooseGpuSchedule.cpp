//===- ChooseGpuSchedule.cpp - the schedule of a group on a GPU -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChooseGpuSchedule.h"
#include "OnePassLayout.h"

#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-group"

using namespace mlir;
using namespace mlir::bngrad;

/// Shared memory that the choice leaves to the sums of a block and the driver,
/// in bytes.
static constexpr int64_t kReservedBytes = 12 << 10;
/// The most channels of a block that has several short ones.
static constexpr int64_t kMostShortChannels = 64;
/// The most blocks of 256 threads, with 64 registers each, that a
/// multiprocessor runs at a time. A second wave of blocks would read its data
/// only after the end of the data was read.
static constexpr int64_t kBlocksOfMultiprocessor = 4;
/// Threads of a multiprocessor that keep its schedulers busy.
static constexpr int64_t kBusyThreads = 512;
/// Pieces for each of kBusyThreads threads, at least.
static constexpr int64_t kLeastPieces = 4;
/// A thread's setup costs about as many instructions as this many pieces.
static constexpr int64_t kPiecesOfThread = 10;
/// The most lanes of a piece whose lanes are different channels: with more,
/// registers limit the blocks of a multiprocessor.
static constexpr int64_t kMostChannelLanes = 4;
/// Blocks of the largest cluster that every chip with clusters supports.
static constexpr int64_t kPortableCluster = 8;
/// Blocks of a cluster that fits into every processing cluster next to others.
static constexpr int64_t kSmallCluster = 4;
/// If the last wave of large clusters lengthens a launch by this factor,
/// narrower tiles in small clusters win, though their rows are sectors, not
/// lines.
static constexpr double kMostRounding = 1.25;
/// Bytes of the smallest efficient access to memory.
static constexpr int64_t kSectorBytes = 32;
/// Slices of a tile of channels, per multiprocessor. The number is small
/// because the sums of all slices are read again.
static constexpr int64_t kSlicesOfMultiprocessor = 2;

/// Whether the runs of memory of `count` channels start at multiples of
/// kCopyBytes, as bulk copies require.
static bool areAligned(const OnePassLayout &layout, int64_t count) {
  return llvm::all_of(layout.widths, [&](int64_t width) {
    return count * layout.length * width % CudaChip::kCopyBytes == 0;
  });
}

/// The least number of channels that is aligned and divides their total; 1 if
/// there is none.
static int64_t countAlignedChannels(const OnePassLayout &layout) {
  for (int64_t count : llvm::seq_inclusive<int64_t>(1, 16))
    if (layout.channels % count == 0 && areAligned(layout, count))
      return count;
  return 1;
}

/// Numbers of channels per tile that are worth trying, best first.
static SmallVector<int64_t> getTileChannels(const OnePassLayout &layout) {
  if (!layout.channelsInnermost) {
    int64_t aligned = countAlignedChannels(layout);
    return aligned == 1 ? SmallVector<int64_t>{1}
                        : SmallVector<int64_t>{aligned, 1};
  }
  // A row of a tile is a run of memory: 128 bytes are whole lines on every
  // device, 64 bytes are two sectors.
  int64_t width = *llvm::min_element(layout.widths);
  if (layout.channels * width <= 128)
    return {layout.channels};
  return {128 / width, 64 / width};
}

/// Whether a block of `schedule` takes at most `mostBytes` of shared memory.
static bool fits(const OnePassLayout &layout, const GpuSchedule &schedule,
                 int64_t mostBytes) {
  int64_t reserved = kReservedBytes;
  // For rows, static memory is small, or the threads are chosen to fit.
  if (layout.channelsInnermost) {
    int64_t staticBytes = layout.getStaticBytes(schedule);
    if (staticBytes > CudaChip::kStaticSharedBytes)
      return false;
    reserved = std::max(staticBytes + CudaChip::kDriverSharedBytes, reserved);
  }
  return layout.getSharedBytes(schedule) <= mostBytes - reserved;
}

/// Chooses blocks of `threads` for `resident` blocks per multiprocessor;
/// nothing if no cluster can hold the rows of a tile.
static std::optional<GpuSchedule> chooseBlocks(const OnePassLayout &layout,
                                               const CudaChip &chip,
                                               int64_t threads,
                                               int64_t resident) {
  GpuSchedule schedule;
  schedule.fma = true;
  schedule.blockThreads = threads;
  if (layout.lanes > kMostChannelLanes &&
      (layout.channelsInnermost || layout.length % layout.lanes != 0))
    schedule.accessBits =
        std::max<int64_t>(128 / layout.lanes * kMostChannelLanes, 64);
  int64_t room = chip.sharedBytes / resident;
  for (int64_t channels : getTileChannels(layout))
    for (int64_t cluster = 1; cluster <= chip.clusterBlocks; cluster *= 2) {
      schedule.blockChannels = channels;
      schedule.clusterBlocks = cluster;
      if (cluster <= layout.rows &&
          chip.countBlocksAtOnce(cluster, resident) > 0 &&
          fits(layout, schedule, room))
        return schedule;
      LDBG() << "a cluster of " << cluster << " blocks of " << channels
             << " channels does not hold the data in " << room << " bytes";
    }
  return std::nullopt;
}

/// The number of blocks of `schedule`.
static int64_t countBlocks(const OnePassLayout &layout,
                           const GpuSchedule &schedule) {
  return llvm::divideCeil(layout.channels, schedule.blockChannels) *
         schedule.clusterBlocks;
}

/// Chooses blocks that fill a multiprocessor each, if two do not fit. They add
/// while they load, but nothing overlaps their stores. By calculation, this
/// beats a second pass for rows that come in stages
/// (bench/results/gpu-model.md).
static std::optional<GpuSchedule>
chooseWholeMultiprocessor(const OnePassLayout &layout, const CudaChip &chip) {
  std::optional<GpuSchedule> schedule =
      chooseBlocks(layout, chip, kBusyThreads, /*resident=*/1);
  if (!schedule || !areAligned(layout, schedule->blockChannels) ||
      !areAligned(layout, layout.channels))
    return std::nullopt;
  bool comesInStages = layout.channelsInnermost ||
                       schedule->blockChannels == 1 ||
                       layout.getFlatRows(*schedule);
  return comesInStages ? schedule : std::nullopt;
}

/// Whether blocks that fill a multiprocessor each are better than the smaller
/// ones of `shared`: they need at most a portable cluster, all blocks start at
/// once in either case, and more than three quarters of the multiprocessors
/// have one. With fewer, their sums would take longer than they save.
static bool isBetterWave(const OnePassLayout &layout, const CudaChip &chip,
                         const GpuSchedule &whole, const GpuSchedule &shared) {
  int64_t blocks = countBlocks(layout, whole);
  auto needsLess = [&](int64_t cluster) {
    return whole.clusterBlocks <= cluster && shared.clusterBlocks > cluster;
  };
  return (needsLess(1) || needsLess(kPortableCluster)) &&
         blocks <=
             chip.countBlocksAtOnce(whole.clusterBlocks, /*resident=*/1) &&
         4 * blocks > 3 * chip.multiprocessors;
}

/// Narrows tiles of innermost channels, down to a sector of memory, if half of
/// the multiprocessors would have no block.
static void narrowTiles(const OnePassLayout &layout, const CudaChip &chip,
                        GpuSchedule &schedule) {
  int64_t least = kSectorBytes / *llvm::min_element(layout.widths);
  int64_t lanes = layout.lanes * schedule.accessBits / 128;
  for (int64_t channels = schedule.blockChannels / 2;
       channels >= least && channels % lanes == 0 &&
       areAligned(layout, channels) &&
       2 * countBlocks(layout, schedule) <= chip.multiprocessors;
       channels /= 2)
    schedule.blockChannels = channels;
}

/// How much longer the last wave makes the launch: the number of waves of
/// `schedule`, rounded up, divided by the same number not rounded.
static double getRounding(const OnePassLayout &layout, const CudaChip &chip,
                          const GpuSchedule &schedule) {
  int64_t bytes = layout.getSharedBytes(schedule) +
                  layout.getStaticBytes(schedule) +
                  CudaChip::kDriverSharedBytes;
  int64_t resident =
      std::min(chip.sharedBytes / bytes,
               kBlocksOfMultiprocessor * 256 / schedule.blockThreads);
  int64_t atOnce =
      std::max<int64_t>(chip.countBlocksAtOnce(schedule.clusterBlocks,
                                               std::max<int64_t>(resident, 1)),
                        1);
  int64_t blocks = countBlocks(layout, schedule);
  return static_cast<double>(llvm::alignTo(blocks, atOnce)) / blocks;
}

/// If a few large clusters would run after all others, narrows tiles, down to a
/// sector of memory, in clusters of at most kSmallCluster blocks with as much
/// data: devices run fewer large clusters at once.
static void avoidLargeClusters(const OnePassLayout &layout,
                               const CudaChip &chip, GpuSchedule &schedule) {
  int64_t least = kSectorBytes / *llvm::min_element(layout.widths);
  int64_t lanes = layout.lanes * schedule.accessBits / 128;
  GpuSchedule narrow = schedule;
  while (narrow.clusterBlocks > kSmallCluster) {
    narrow.clusterBlocks /= 2;
    narrow.blockChannels /= 2;
  }
  if (narrow.blockChannels >= least && narrow.blockChannels % lanes == 0 &&
      layout.channels % narrow.blockChannels == 0 &&
      areAligned(layout, narrow.blockChannels) &&
      fits(layout, narrow, chip.sharedBytes / 2) &&
      kMostRounding * getRounding(layout, chip, narrow) <
          getRounding(layout, chip, schedule))
    schedule = narrow;
}

/// Takes more threads if their blocks, two per multiprocessor, fill the last of
/// several waves better.
static void evenWaves(const OnePassLayout &layout, const CudaChip &chip,
                      GpuSchedule &schedule) {
  GpuSchedule larger = schedule;
  larger.blockThreads = kBusyThreads;
  if (countBlocks(layout, schedule) >
          chip.countBlocksAtOnce(schedule.clusterBlocks, /*resident=*/2) &&
      fits(layout, larger, chip.sharedBytes / 2) &&
      getRounding(layout, chip, larger) < getRounding(layout, chip, schedule))
    schedule = larger;
}

/// Enlarges clusters, if there are any, while at most two blocks share a
/// multiprocessor: more threads and smaller tiles for the same barrier. A
/// device that was not asked may have room for one cluster less than assumed,
/// and that cluster would take as long as all others.
static void enlargeCluster(const OnePassLayout &layout, const CudaChip &chip,
                           GpuSchedule &schedule) {
  if (schedule.clusterBlocks == 1)
    return;
  int64_t most = std::min(kPortableCluster, layout.rows);
  GpuSchedule larger = schedule;
  while ((larger.clusterBlocks *= 2) <= most) {
    int64_t spare =
        chip.isAssumed(larger.clusterBlocks) ? larger.clusterBlocks : 0;
    if (countBlocks(layout, larger) + spare >
        chip.countBlocksAtOnce(larger.clusterBlocks, /*resident=*/2))
      return;
    schedule = larger;
  }
}

/// Takes more threads if a multiprocessor has at most one block, and enough
/// data for them.
static void enlargeBlocks(const OnePassLayout &layout, const CudaChip &chip,
                          GpuSchedule &schedule) {
  int64_t pieces = layout.getRowsOfBlock(schedule) * schedule.blockChannels *
                   layout.length * 128 / schedule.accessBits / layout.lanes;
  if (countBlocks(layout, schedule) <= chip.multiprocessors &&
      pieces >= kLeastPieces * kBusyThreads)
    schedule.blockThreads = kBusyThreads;
}

/// Whether the rows of the channels of a block of `schedule` can be flat.
static bool canBeFlat(const OnePassLayout &layout, GpuSchedule schedule) {
  schedule.blockThreads = kBusyThreads;
  return layout.getFlatRows(schedule).has_value();
}

/// Puts more short channels into one block while each multiprocessor has a
/// block and flat rows remain flat.
static void joinChannels(const OnePassLayout &layout, const CudaChip &chip,
                         GpuSchedule &schedule) {
  int64_t room = chip.sharedBytes / 4 - kReservedBytes;
  int64_t step = schedule.blockChannels;
  for (int64_t count = 2 * step; count <= kMostShortChannels; count += step) {
    GpuSchedule joined = schedule;
    joined.blockChannels = count;
    if (layout.channels % count == 0 && layout.getSharedBytes(joined) <= room &&
        layout.channels / count >= chip.multiprocessors &&
        canBeFlat(layout, joined) >= canBeFlat(layout, schedule))
      schedule = joined;
  }
}

/// Chooses the threads for flat rows with the fewest instructions, for
/// `resident` blocks per multiprocessor. Nothing if rows cannot be flat, or if
/// the sums that threads exchange do not fit.
static std::optional<GpuSchedule> chooseFlatThreads(const OnePassLayout &layout,
                                                    const CudaChip &chip,
                                                    const GpuSchedule &schedule,
                                                    int64_t resident) {
  std::optional<GpuSchedule> best;
  int64_t bestCost = 0;
  int64_t least = std::max<int64_t>(
      llvm::alignTo(kBusyThreads / resident, CudaChip::kWarpSize), 128);
  for (int64_t threads = least; threads <= kBusyThreads;
       threads += CudaChip::kWarpSize) {
    GpuSchedule next = schedule;
    next.blockThreads = threads;
    std::optional<FlatRows> flat = layout.getFlatRows(next);
    int64_t bytes = layout.getSharedBytes(next) + layout.getStaticBytes(next) +
                    CudaChip::kDriverSharedBytes;
    if (!flat || bytes * resident > chip.sharedBytes)
      continue;
    int64_t pieces = llvm::divideCeil(layout.getRowsOfBlock(next), flat->rows);
    int64_t cost = threads * (kPiecesOfThread + llvm::alignTo(pieces, kUnroll));
    if (!best || cost < bestCost) {
      best = next;
      bestCost = cost;
    }
  }
  return best;
}

/// Chooses threads for flat rows, for as many blocks per multiprocessor as
/// there are or as fit.
static std::optional<GpuSchedule> chooseFlat(const OnePassLayout &layout,
                                             const CudaChip &chip,
                                             const GpuSchedule &schedule) {
  int64_t blocks = countBlocks(layout, schedule);
  int64_t atOnce = std::max<int64_t>(
      chip.countBlocksAtOnce(schedule.clusterBlocks, /*resident=*/1), 1);
  int64_t bytes =
      layout.getSharedBytes(schedule) + CudaChip::kDriverSharedBytes;
  for (int64_t resident = std::min<int64_t>(llvm::divideCeil(blocks, atOnce),
                                            chip.sharedBytes / bytes);
       resident > 0; --resident)
    if (std::optional<GpuSchedule> flat =
            chooseFlatThreads(layout, chip, schedule, resident))
      return flat;
  return std::nullopt;
}

std::optional<GpuSchedule>
mlir::bngrad::chooseOnePass(const OnePassLayout &layout, const CudaChip &chip) {
  if (!chip.hasClusters() || layout.widths.empty())
    return std::nullopt;
  // With two blocks, one loads while the other computes.
  std::optional<GpuSchedule> schedule =
      chooseBlocks(layout, chip, /*threads=*/256, /*resident=*/2);
  std::optional<GpuSchedule> whole = chooseWholeMultiprocessor(layout, chip);
  bool isWhole =
      !schedule || (whole && isBetterWave(layout, chip, *whole, *schedule));
  if (isWhole)
    schedule = whole;
  if (schedule && layout.channelsInnermost)
    narrowTiles(layout, chip, *schedule);
  if (isWhole)
    return schedule;
  enlargeCluster(layout, chip, *schedule);
  enlargeBlocks(layout, chip, *schedule);
  if (layout.channelsInnermost) {
    evenWaves(layout, chip, *schedule);
    avoidLargeClusters(layout, chip, *schedule);
    return schedule;
  }
  if (schedule->clusterBlocks == 1)
    joinChannels(layout, chip, *schedule);
  if (std::optional<GpuSchedule> flat = chooseFlat(layout, chip, *schedule))
    return flat;
  // Each of several channels gets a warp.
  if (schedule->blockChannels > 1)
    schedule->blockThreads = std::clamp<int64_t>(
        schedule->blockChannels * CudaChip::kWarpSize, 128, 256);
  return schedule;
}

/// A lower bound for the tiles of channels of the first kernel of `two_pass`.
/// The number matters only while it is small.
static int64_t countTiles(const ScheduledGroup &group) {
  // Innermost channels may all be in one tile.
  if (group.isFeature(group.numLoops - 1))
    return 1;
  SmallVector<int64_t> sizes = group.getLoopSizes();
  int64_t tiles = 1;
  for (unsigned feature : group.features) {
    if (ShapedType::isDynamic(sizes[feature]))
      return kBlocksOfMultiprocessor;
    tiles =
        std::clamp<int64_t>(tiles * sizes[feature], 1, kBlocksOfMultiprocessor);
  }
  return tiles;
}

GpuSchedule mlir::bngrad::chooseTwoPass(int64_t tiles, int64_t lanes,
                                        const CudaChip &chip) {
  int64_t blocks =
      std::min(tiles * kSlicesOfMultiprocessor, kBlocksOfMultiprocessor);
  GpuSchedule schedule;
  schedule.fma = true;
  schedule.sumBlocks = chip.multiprocessors * blocks;
  // Use as many threads in fewer blocks, unless they need more registers.
  if (blocks < kBlocksOfMultiprocessor && lanes <= 4)
    schedule.blockThreads = 512;
  return schedule;
}

/// The size of the last merged loop over the data, static or dynamic; 1 without
/// loops.
static int64_t getRowLength(const ScheduledGroup &group) {
  SmallVector<int64_t> sizes = group.getLoopSizes();
  SmallVector<ReassociationIndices> mergedLoops = group.getMergedLoops();
  int64_t length = 1;
  if (mergedLoops.empty())
    return length;
  for (int64_t loop : mergedLoops.back()) {
    if (ShapedType::isDynamic(sizes[loop]))
      return ShapedType::kDynamic;
    length *= sizes[loop];
  }
  return length;
}

/// The parameters of `two_pass` for `group`.
static GpuSchedule chooseTwoPassOf(const ScheduledGroup &group,
                                   const CudaChip &chip) {
  int64_t lanes = getMostLanes(group.getDataGenerics(), /*accessBits=*/128);
  // Rows that are not a multiple of a vector are read element by element.
  int64_t length = getRowLength(group);
  if (!ShapedType::isDynamic(length) && length % lanes != 0)
    lanes = 1;
  return chooseTwoPass(countTiles(group), lanes, chip);
}

GpuSchedule mlir::bngrad::getTwoPassInstead(const ScheduledGroup &group,
                                            const GpuSchedule &onePass,
                                            const CudaChip &chip) {
  GpuSchedule schedule = chooseTwoPassOf(group, chip);
  schedule.fma = onePass.fma;
  return schedule;
}

ScheduleAttr mlir::bngrad::chooseGpuSchedule(const ScheduledGroup &group,
                                             const CudaChip &chip) {
  MLIRContext *context = group.getMembers().front().getContext();
  std::string reason = "no cluster holds the data";
  if (std::optional<OnePassLayout> layout = OnePassLayout::get(group, reason))
    if (std::optional<GpuSchedule> schedule = chooseOnePass(*layout, chip))
      return ScheduleAttr::get(context, ScheduleKind::OnePass, *schedule);
  LDBG() << "two passes: " << reason;
  return ScheduleAttr::get(context, ScheduleKind::TwoPass,
                           chooseTwoPassOf(group, chip));
}
