//===- GpuSchedule.cpp - the choice of a schedule for a GPU ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuSchedule.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::bngrad;

bool mlir::bngrad::isGpuKind(ScheduleKind kind) {
  return kind == ScheduleKind::TwoPass || kind == ScheduleKind::OnePass;
}

//===----------------------------------------------------------------------===//
// OnePassLayout
//===----------------------------------------------------------------------===//

/// The data that the reduction and an element-wise generic both read.
static SmallVector<Value> findShared(const ScheduledGroup &group) {
  auto collect = [](linalg::GenericOp generic) {
    SmallVector<Value> data;
    for (OpOperand *operand : generic.getDpsInputOperands())
      if (generic.getMatchingIndexingMap(operand).isIdentity() &&
          !generic.getMatchingBlockArgument(operand).use_empty() &&
          !llvm::is_contained(data, operand->get()))
        data.push_back(operand->get());
    return data;
  };
  SmallVector<Value> elementwise, shared;
  for (linalg::GenericOp generic : group.elementwise)
    llvm::append_range(elementwise, collect(generic));
  for (Value value : collect(group.reduction))
    if (llvm::is_contained(elementwise, value))
      shared.push_back(value);
  return shared;
}

std::optional<OnePassLayout> OnePassLayout::get(const ScheduledGroup &group,
                                                std::string &reason) {
  if (!group.reduction || group.elementwise.empty()) {
    reason = "expected sums, and elements that depend on them";
    return std::nullopt;
  }
  SmallVector<int64_t> sizes = group.getLoopSizes();
  if (ShapedType::isDynamicShape(sizes) || llvm::is_contained(sizes, 0)) {
    reason = "expected static sizes, none of them 0";
    return std::nullopt;
  }
  // Over memrefs, what can be merged has been: a loop is a run.
  SmallVector<ReassociationIndices> runs;
  linalg::GenericOp reduction = group.reduction;
  if (reduction.hasPureTensorSemantics())
    runs = group.getMergeableLoops();
  else
    for (int64_t loop : llvm::seq<int64_t>(group.numLoops))
      runs.push_back({loop});
  SmallVector<bool> isFeature;
  SmallVector<int64_t> lengths;
  for (const ReassociationIndices &run : runs) {
    isFeature.push_back(group.isFeature(run.front()));
    int64_t length = 1;
    for (int64_t loop : run)
      length *= sizes[loop];
    lengths.push_back(length);
  }
  OnePassLayout layout;
  layout.channelsRunFastest = isFeature.back();
  bool fits = true;
  if (runs.size() == 3 && !isFeature[0] && isFeature[1] && !isFeature[2])
    std::tie(layout.rows, layout.channels, layout.length) =
        std::tuple(lengths[0], lengths[1], lengths[2]);
  else if (runs.size() == 2 && isFeature[0])
    std::tie(layout.rows, layout.channels, layout.length) =
        std::tuple(1, lengths[0], lengths[1]);
  else if (runs.size() == 2)
    std::tie(layout.rows, layout.channels, layout.length) =
        std::tuple(lengths[0], lengths[1], 1);
  else
    fits = false;
  if (!fits) {
    reason = "expected loops [N, C, S], [C, S] or [N, C] over dense data";
    return std::nullopt;
  }
  layout.sumBytes = 0;
  for (OpOperand &init : reduction.getDpsInitsMutable())
    if (!isDataMap(reduction.getMatchingIndexingMap(&init)))
      layout.sumBytes += llvm::divideCeil(
          getElementTypeOrSelf(init.get()).getIntOrFloatBitWidth(), 8);
  layout.lanes = getMostLanes(group.getDataGenerics(), /*vectorBits=*/128);
  layout.operands = findShared(group);
  for (Value operand : layout.operands)
    layout.widths.push_back(llvm::divideCeil(
        getElementTypeOrSelf(operand).getIntOrFloatBitWidth(), 8));
  return layout;
}

int64_t OnePassLayout::getOffset(int64_t cluster, int64_t tile,
                                 unsigned end) const {
  int64_t offset = 0;
  for (int64_t width : ArrayRef(widths).take_front(end))
    offset += llvm::alignTo(getRowsOfBlock(cluster) * tile * length * width,
                            kAlignment);
  return offset;
}

int64_t OnePassLayout::getSharedBytes(int64_t cluster, int64_t tile) const {
  return getOffset(cluster, tile, widths.size());
}

int64_t OnePassLayout::getStaticBytes(int64_t threads, int64_t tile) const {
  // A slot for each channel; then what the threads exchange.
  constexpr int64_t kWarp = 32;
  int64_t exchanged = threads / kWarp;
  if (channelsRunFastest)
    for (int64_t count = lanes; count > 0; count /= 2) {
      int64_t columns = llvm::divideCeil(tile, count);
      int64_t rows = std::max<int64_t>(threads / columns, 1);
      exchanged = std::max(exchanged, getScratchSize(rows, columns, count));
    }
  return (tile + exchanged) * sumBytes;
}

bool mlir::bngrad::fitsOnePass(const ScheduledGroup &group,
                               ScheduleAttr schedule, std::string &reason) {
  std::optional<OnePassLayout> layout = OnePassLayout::get(group, reason);
  if (!layout)
    return false;
  int64_t cluster = schedule.getCluster(), tile = schedule.getColumns();
  // Blocks of a cluster share the rows.
  if (cluster > 1 && layout->rows == 1) {
    reason = "expected cluster to be 1, as channels are one row each, got " +
             std::to_string(cluster);
    return false;
  }
  if (tile > layout->channels ||
      (!layout->channelsRunFastest && layout->channels % tile != 0)) {
    reason = "expected columns to divide the number of channels, " +
             std::to_string(layout->channels) + ", got " + std::to_string(tile);
    return false;
  }
  int64_t threads = schedule.getThreads();
  if (layout->channelsRunFastest && tile > threads) {
    reason = "expected columns to be at most threads, " +
             std::to_string(threads) + ", got " + std::to_string(tile);
    return false;
  }
  int64_t staticBytes = layout->getStaticBytes(threads, tile);
  if (staticBytes > OnePassLayout::kMostStaticBytes) {
    reason = "expected sums of a block to take at most " +
             std::to_string(OnePassLayout::kMostStaticBytes) + " bytes, got " +
             std::to_string(staticBytes);
    return false;
  }
  // What a block can have, but 1 KB for the rest.
  constexpr int64_t kMostBytes = 226 << 10;
  if (int64_t bytes = layout->getSharedBytes(cluster, tile) + staticBytes;
      bytes > kMostBytes) {
    reason = "expected tiles and sums of at most " +
             std::to_string(kMostBytes) + " bytes, got " +
             std::to_string(bytes);
    return false;
  }
  return true;
}

int64_t mlir::bngrad::getMostLanes(ArrayRef<linalg::GenericOp> generics,
                                   int64_t vectorBits) {
  int64_t narrowest = 64, widest = 16;
  for (linalg::GenericOp generic : generics)
    for (OpOperand &operand : generic->getOpOperands())
      if (auto type = dyn_cast<FloatType>(getElementTypeOrSelf(operand.get()));
          type && isDataMap(generic.getMatchingIndexingMap(&operand))) {
        narrowest = std::min<int64_t>(narrowest, type.getWidth());
        widest = std::max<int64_t>(widest, type.getWidth());
      }
  return std::min(vectorBits / narrowest, 2 * vectorBits / widest);
}

int64_t mlir::bngrad::getScratchSize(int64_t rows, int64_t columns,
                                     int64_t lanes) {
  return std::max<int64_t>(llvm::PowerOf2Ceil(rows) / 2, 1) * columns * lanes;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

/// Left free for static shared memory of a block and what the system keeps.
static constexpr int64_t kReservedBytes = 12 << 10;
static constexpr int64_t kSystemBytes = 1 << 10;

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
      int64_t most =
          room - std::max(staticBytes + kSystemBytes, kReservedBytes);
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

ScheduleAttr mlir::bngrad::getTwoPassSchedule(MLIRContext *context,
                                              int64_t blocks, bool fma) {
  return ScheduleAttr::get(context, ScheduleKind::TwoPass, /*threads=*/256,
                           /*vector_bits=*/128, /*streaming_bytes=*/0,
                           /*columns=*/32, blocks, fma, /*cluster=*/1);
}

ScheduleAttr mlir::bngrad::getTwoPassInstead(ScheduleAttr onePass) {
  return getTwoPassSchedule(onePass.getContext(), /*blocks=*/1024,
                            onePass.getFma());
}

ScheduleAttr mlir::bngrad::chooseGpuSchedule(const ScheduledGroup &group,
                                             const CudaChip &chip) {
  MLIRContext *context = group.getMembers().front().getContext();
  std::string reason;
  std::optional<OnePassLayout> layout = OnePassLayout::get(group, reason);
  std::optional<Tile> tile;
  if (layout && chip.hasClusters() && !layout->operands.empty())
    tile = chooseTile(*layout, chip);
  if (tile) {
    if (!layout->channelsRunFastest && tile->cluster == 1)
      joinChannels(*layout, chip, *tile);
    // A warp for each of several channels.
    int64_t threads = tile->threads;
    if (!layout->channelsRunFastest && tile->channels > 1)
      threads = std::clamp<int64_t>(tile->channels * 32, 128, 256);
    return ScheduleAttr::get(context, ScheduleKind::OnePass, threads,
                             /*vector_bits=*/128, /*streaming_bytes=*/0,
                             /*columns=*/tile->channels, /*blocks=*/16,
                             /*fma=*/true, tile->cluster);
  }
  // Eight blocks fill a multiprocessor.
  return getTwoPassSchedule(context, /*blocks=*/chip.multiprocessors * 8,
                            /*fma=*/true);
}
