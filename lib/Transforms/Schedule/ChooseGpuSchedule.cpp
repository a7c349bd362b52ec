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

/// Left free for static shared memory of a block and what the system keeps.
static constexpr int64_t kReservedBytes = 12 << 10;

namespace {
/// How much of a group a block holds.
struct Tile {
  int64_t cluster, channels, bytes, threads;
};
} // namespace

/// The least number of channels whose runs of memory start at multiples of 16
/// bytes, as bulk copies must, and that divides all channels; 1 if there is
/// none.
static int64_t countAlignedChannels(const OnePassLayout &layout) {
  for (int64_t count : llvm::seq_inclusive<int64_t>(1, 16))
    if (layout.channels % count == 0 &&
        llvm::all_of(layout.widths, [&](int64_t width) {
          return count * layout.length * width % 16 == 0;
        }))
      return count;
  return 1;
}

/// Channels of a tile that are worth trying, best first.
static SmallVector<int64_t> getTileChannels(const OnePassLayout &layout) {
  if (!layout.channelsRunFastest) {
    int64_t aligned = countAlignedChannels(layout);
    return aligned == 1 ? SmallVector<int64_t>{1}
                        : SmallVector<int64_t>{aligned, 1};
  }
  // A row of a tile is a run of memory: 128 bytes of it are whole lines on
  // every device, 64 are still two sectors.
  int64_t width = *llvm::min_element(layout.widths);
  if (layout.channels * width <= 128)
    return {layout.channels};
  return {128 / width, 64 / width};
}

/// A tile that leaves room for a second block on the multiprocessor, which
/// loads while the first computes, or else one that fills it; nothing if no
/// cluster can hold a tile.
static std::optional<Tile> chooseTile(const OnePassLayout &layout,
                                      const CudaChip &chip) {
  std::pair<int64_t, int64_t> rooms[] = {{chip.sharedBytes / 2, 256},
                                         {chip.sharedBytes, 512}};
  for (auto [room, threads] : rooms)
    for (int64_t channels : getTileChannels(layout)) {
      int64_t staticBytes = layout.getStaticBytes(threads, channels);
      if (staticBytes > OnePassLayout::kMostStaticBytes)
        continue;
      int64_t most = room - std::max(staticBytes + OnePassLayout::kSystemBytes,
                                     kReservedBytes);
      for (int64_t cluster : {1, 2, 4, 8})
        if (int64_t bytes = layout.getSharedBytes(cluster, channels);
            bytes <= most && cluster <= layout.rows)
          return Tile{cluster, channels, bytes, threads};
    }
  return std::nullopt;
}

/// More short channels in one block, while there is a block for each
/// multiprocessor.
static void joinChannels(const OnePassLayout &layout, const CudaChip &chip,
                         Tile &tile) {
  int64_t room = chip.sharedBytes / 4 - kReservedBytes;
  int64_t step = tile.channels;
  for (int64_t count = 2 * step; count <= 64; count += step) {
    int64_t bytes = layout.getSharedBytes(1, count);
    if (layout.channels % count != 0 || bytes > room ||
        layout.channels / count < chip.multiprocessors)
      continue;
    tile.channels = count;
    tile.bytes = bytes;
  }
}

GpuSchedule mlir::bngrad::getTwoPassInstead(const GpuSchedule &onePass) {
  GpuSchedule schedule;
  schedule.fma = onePass.fma;
  return schedule;
}

ScheduleAttr mlir::bngrad::chooseGpuSchedule(const ScheduledGroup &group,
                                             const CudaChip &chip) {
  MLIRContext *context = group.getMembers().front().getContext();
  GpuSchedule schedule;
  schedule.fma = true;
  std::string reason;
  std::optional<OnePassLayout> layout = OnePassLayout::get(group, reason);
  std::optional<Tile> tile;
  if (layout && chip.hasClusters() && !layout->operands.empty())
    tile = chooseTile(*layout, chip);
  if (!tile) {
    LDBG() << "two passes: " << (layout ? "no cluster holds the data" : reason);
    // Eight blocks fill a multiprocessor.
    schedule.sumBlocks = chip.multiprocessors * 8;
    return ScheduleAttr::get(context, ScheduleKind::TwoPass, schedule);
  }
  if (!layout->channelsRunFastest && tile->cluster == 1)
    joinChannels(*layout, chip, *tile);
  schedule.blockThreads = tile->threads;
  // A warp for each of several channels.
  if (!layout->channelsRunFastest && tile->channels > 1)
    schedule.blockThreads =
        std::clamp<int64_t>(tile->channels * CudaChip::kWarpSize, 128, 256);
  schedule.blockChannels = tile->channels;
  schedule.clusterBlocks = tile->cluster;
  return ScheduleAttr::get(context, ScheduleKind::OnePass, schedule);
}
