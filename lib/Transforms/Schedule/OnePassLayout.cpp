//===- OnePassLayout.cpp - a group in shared memory -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnePassLayout.h"
#include "Moments.h"

#include "mlir/IR/TypeUtilities.h"
#include "mlir/Support/DebugStringHelper.h"

#include <numeric>

using namespace mlir;
using namespace mlir::bngrad;

ExchangedSums::ExchangedSums(const ScheduledGroup &group) {
  if (std::optional<MomentStages> moments =
          MomentStages::getAboutFirst(group)) {
    types.assign(2, Float64Type::get(group.getMembers().front().getContext()));
    buffers.resize(group.stages.size());
    buffers[moments->sum + 1] = {0, 1};
    return;
  }
  for (const Stage &stage : group.stages) {
    SmallVector<unsigned> &ofStage = buffers.emplace_back();
    if (!stage.reduction)
      continue;
    for (auto [result, term] : getReductionValues(stage.reduction)->terms) {
      unsigned buffer = 0;
      while (buffer < types.size() && (types[buffer] != term.getType() ||
                                       llvm::is_contained(ofStage, buffer)))
        ++buffer;
      if (buffer == types.size())
        types.push_back(term.getType());
      ofStage.push_back(buffer);
    }
  }
}

/// The data that the first reduction reads, and that a later reduction or an
/// element-wise generic reads again.
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
  SmallVector<linalg::GenericOp> generics = group.getDataGenerics();
  SmallVector<Value> later, shared;
  for (linalg::GenericOp generic : ArrayRef(generics).drop_front())
    llvm::append_range(later, collect(generic));
  for (Value value : collect(generics.front()))
    if (llvm::is_contained(later, value))
      shared.push_back(value);
  return shared;
}

/// Bytes of an element of `value`, of an integer or float.
static int64_t getWidth(Value value) {
  return llvm::divideCeil(getElementTypeOrSelf(value).getIntOrFloatBitWidth(),
                          8);
}

/// Why per-channel results cannot be in shared memory; empty if they can.
static std::string findUnsuitableResult(const ScheduledGroup &group) {
  SmallVector<Value> results, inputs;
  for (linalg::GenericOp generic : group.getChannelwise()) {
    llvm::append_range(results, generic.getDpsInits());
    llvm::append_range(inputs, generic.getDpsInputs());
  }
  for (Value result : results)
    if (Type type = getElementTypeOrSelf(result); !type.isIntOrFloat())
      return "expected per-channel results of integers or floats, got '" +
             debugString(type) + "'";
  for (linalg::GenericOp reduction : group.getReductions())
    for (OpOperand &init : reduction.getDpsInitsMutable())
      if (!isDataMap(reduction.getMatchingIndexingMap(&init)))
        results.push_back(init.get());
  // The first of these generics reads no result.
  SmallVector<linalg::GenericOp> readers = group.getDataGenerics();
  if (group.stages.front().reduction)
    readers.erase(readers.begin());
  for (linalg::GenericOp generic : readers)
    llvm::append_range(inputs, generic.getDpsInputs());
  // Readers of shared memory are identified by the memref.
  for (Value input : inputs)
    for (Value result : results)
      if (isa<MemRefType>(input.getType()) &&
          getViewed(input) != getViewed(result) &&
          getMemory(input) == getMemory(result) && !areDisjoint(input, result))
        return "expected per-channel results to be read without views, got '" +
               debugString(input.getType()) + "'";
  return "";
}

/// Whether `input` of a generic may read data that `producer` writes at other
/// indices or through another view, that is, in another thread or block.
static bool readsOthersData(linalg::GenericOp generic, OpOperand &input,
                            linalg::GenericOp producer) {
  Value read = input.get();
  AffineMap map = generic.getMatchingIndexingMap(&input);
  return llvm::any_of(producer.getDpsInitsMutable(), [&](OpOperand &init) {
    AffineMap written = producer.getMatchingIndexingMap(&init);
    if (!isDataMap(written))
      return false;
    if (!isa<MemRefType>(read.getType()))
      return read == producer.getTiedOpResult(&init) && map != written;
    bool isSame = getViewed(read) == getViewed(init.get()) && map == written;
    return !isSame && getMemory(read) == getMemory(init.get()) &&
           !areDisjoint(read, init.get());
  });
}

/// Why the data cannot be in shared memory, or why a thread cannot compute the
/// elements one after another; empty if neither.
static std::string findUnsuitableData(const ScheduledGroup &group) {
  for (linalg::GenericOp generic : group.getDataGenerics())
    for (Value operand : generic->getOperands())
      if (Type type = getElementTypeOrSelf(operand); !type.isIntOrFloat())
        return "expected data of integers or floats, got '" +
               debugString(type) + "'";
  SmallVector<linalg::GenericOp> producers;
  for (linalg::GenericOp generic : group.getDataGenerics()) {
    for (OpOperand *input : generic.getDpsInputOperands())
      for (linalg::GenericOp producer : producers)
        if (!generic.getMatchingBlockArgument(input).use_empty() &&
            readsOthersData(generic, *input, producer))
          return "expected data of the group to be read where they are written";
    producers.push_back(generic);
  }
  return "";
}

std::optional<OnePassLayout> OnePassLayout::get(const ScheduledGroup &group,
                                                std::string &reason) {
  if (group.getReductions().empty() || group.elementwise.empty()) {
    reason = "expected sums, and elements that depend on them";
    return std::nullopt;
  }
  SmallVector<int64_t> sizes = group.getLoopSizes();
  if (ShapedType::isDynamicShape(sizes) || llvm::is_contained(sizes, 0)) {
    reason = "expected static sizes, none of them 0";
    return std::nullopt;
  }
  SmallVector<ReassociationIndices> mergedLoops = group.getMergedLoops();
  SmallVector<bool> isFeature;
  SmallVector<int64_t> lengths;
  for (const ReassociationIndices &mergedLoop : mergedLoops) {
    isFeature.push_back(group.isFeature(mergedLoop.front()));
    int64_t length = 1;
    for (int64_t loop : mergedLoop)
      length *= sizes[loop];
    lengths.push_back(length);
  }
  reason = findUnsuitableResult(group);
  if (reason.empty())
    reason = findUnsuitableData(group);
  if (!reason.empty())
    return std::nullopt;
  OnePassLayout layout;
  layout.channelsInnermost = isFeature.back();
  bool fits = true;
  if (mergedLoops.size() == 3 && !isFeature[0] && isFeature[1] && !isFeature[2])
    std::tie(layout.rows, layout.channels, layout.length) =
        std::tuple(lengths[0], lengths[1], lengths[2]);
  else if (mergedLoops.size() == 2 && isFeature[0])
    std::tie(layout.rows, layout.channels, layout.length) =
        std::tuple(1, lengths[0], lengths[1]);
  else if (mergedLoops.size() == 2)
    std::tie(layout.rows, layout.channels, layout.length) =
        std::tuple(lengths[0], lengths[1], 1);
  else
    fits = false;
  if (!fits) {
    reason = "expected loops [N, C, S], [C, S] or [N, C] over dense data";
    return std::nullopt;
  }
  ExchangedSums exchanged(group);
  auto getBytes = [&](unsigned buffer) {
    return exchanged.types[buffer].getIntOrFloatBitWidth() / 8;
  };
  layout.sumBytes = layout.exchangedBytes = 0;
  for (const SmallVector<unsigned> &ofStage : exchanged.buffers)
    for (unsigned buffer : ofStage)
      layout.sumBytes += getBytes(buffer);
  for (unsigned buffer : llvm::seq(exchanged.types.size()))
    layout.exchangedBytes += getBytes(buffer);
  layout.resultBytes = 0;
  for (linalg::GenericOp reduction : group.getReductions())
    layout.resultBytes += getSumBytes(reduction);
  for (linalg::GenericOp generic : group.getChannelwise())
    for (Value init : generic.getDpsInits())
      layout.resultBytes += getWidth(init);
  layout.lanes = getMostLanes(group.getDataGenerics(), /*accessBits=*/128);
  layout.operands = findShared(group);
  for (Value operand : layout.operands)
    layout.widths.push_back(getWidth(operand));
  return layout;
}

std::optional<FlatRows>
OnePassLayout::getFlatRows(const GpuSchedule &schedule) const {
  FlatRows flat;
  flat.lanes = lanes * schedule.accessBits / 128;
  int64_t elements = schedule.blockChannels * length;
  if (channelsInnermost || rows == 1 || flat.lanes < 2 || length % lanes == 0 ||
      length < flat.lanes || elements % flat.lanes != 0)
    return std::nullopt;
  flat.columns = elements / flat.lanes;
  if (flat.columns > schedule.blockThreads)
    return std::nullopt;
  flat.rows =
      std::min(schedule.blockThreads / flat.columns, getRowsOfBlock(schedule));
  // Within a piece, a channel starts at a multiple of the common divisor.
  int64_t mostBefore = flat.lanes - std::gcd(length, flat.lanes);
  flat.pieces = llvm::divideCeil(mostBefore + length, flat.lanes);
  return flat;
}

int64_t OnePassLayout::getSharedBytes(const GpuSchedule &schedule,
                                      unsigned numOperands) const {
  constexpr int64_t alignment = 128;
  int64_t elements = getRowsOfBlock(schedule) * schedule.blockChannels * length;
  int64_t bytes = 0;
  for (int64_t width : ArrayRef(widths).take_front(numOperands))
    bytes += llvm::alignTo(elements * width, alignment);
  return bytes;
}

int64_t OnePassLayout::getStaticBytes(const GpuSchedule &schedule) const {
  // A slot per channel, and the sums that the threads exchange.
  int64_t threads = schedule.blockThreads, tile = schedule.blockChannels;
  int64_t exchanged = threads / CudaChip::kWarpSize;
  if (std::optional<FlatRows> flat = getFlatRows(schedule))
    exchanged = std::max(exchanged, flat->rows * tile * flat->pieces);
  if (channelsInnermost)
    for (int64_t count = lanes * schedule.accessBits / 128; count > 0;
         count /= 2) {
      int64_t columns = llvm::divideCeil(tile, count);
      int64_t rows = std::max<int64_t>(threads / columns, 1);
      exchanged = std::max(exchanged, getScratchSize(rows, columns, count));
    }
  return tile * (sumBytes + resultBytes) + exchanged * exchangedBytes +
         kMostStages * kMbarrierBytes;
}

FailureOr<OnePassLayout>
mlir::bngrad::getOnePassLayout(const ScheduledGroup &group,
                               const GpuSchedule &schedule,
                               std::string &reason) {
  std::optional<OnePassLayout> layout = OnePassLayout::get(group, reason);
  if (!layout)
    return failure();
  int64_t cluster = schedule.clusterBlocks, tile = schedule.blockChannels;
  // Blocks of a cluster share the rows.
  if (cluster > 1 && layout->rows == 1) {
    reason =
        "expected cluster_blocks to be 1, as channels are one row each, got " +
        std::to_string(cluster);
    return failure();
  }
  if (tile > layout->channels ||
      (!layout->channelsInnermost && layout->channels % tile != 0)) {
    reason = std::string("expected block_channels to ") +
             (layout->channelsInnermost ? "be at most" : "divide") +
             " the number of channels, " + std::to_string(layout->channels) +
             ", got " + std::to_string(tile);
    return failure();
  }
  int64_t threads = schedule.blockThreads;
  if (layout->channelsInnermost && tile > threads) {
    reason = "expected block_channels to be at most block_threads, " +
             std::to_string(threads) + ", got " + std::to_string(tile);
    return failure();
  }
  return *layout;
}

LogicalResult OnePassLayout::verifySharedMemory(const GpuSchedule &schedule,
                                                const CudaChip &chip,
                                                std::string &reason) const {
  int64_t staticBytes = getStaticBytes(schedule);
  if (staticBytes > CudaChip::kStaticSharedBytes) {
    reason = "expected sums of a block of at most " +
             std::to_string(CudaChip::kStaticSharedBytes) +
             " bytes of static shared memory, got " +
             std::to_string(staticBytes);
    return failure();
  }
  int64_t mostBytes = chip.sharedBytes - CudaChip::kDriverSharedBytes;
  if (int64_t bytes = getSharedBytes(schedule) + staticBytes;
      bytes > mostBytes) {
    reason = "expected tiles and sums of a block of at most " +
             std::to_string(mostBytes) + " bytes of shared memory, got " +
             std::to_string(bytes);
    return failure();
  }
  return success();
}

int64_t mlir::bngrad::getSumBytes(linalg::GenericOp reduction) {
  int64_t bytes = 0;
  for (OpOperand &init : reduction.getDpsInitsMutable())
    if (getElementTypeOrSelf(init.get()).isIntOrFloat() &&
        !isDataMap(reduction.getMatchingIndexingMap(&init)))
      bytes += getWidth(init.get());
  return bytes;
}

int64_t mlir::bngrad::getMostLanes(ArrayRef<linalg::GenericOp> generics,
                                   int64_t accessBits) {
  int64_t narrowest = 64, widest = 16;
  for (linalg::GenericOp generic : generics)
    for (OpOperand &operand : generic->getOpOperands()) {
      Type type = getElementTypeOrSelf(operand.get());
      if (!isDataMap(generic.getMatchingIndexingMap(&operand)))
        continue;
      if (!type.isIntOrFloat())
        return 1;
      if (auto real = dyn_cast<FloatType>(type)) {
        narrowest = std::min<int64_t>(narrowest, real.getWidth());
        widest = std::max<int64_t>(widest, real.getWidth());
      }
    }
  return std::min(accessBits / narrowest, 2 * accessBits / widest);
}

int64_t mlir::bngrad::getRowsOfWarp(int64_t columns) {
  bool arePart = columns < CudaChip::kWarpSize && llvm::isPowerOf2_64(columns);
  return arePart ? CudaChip::kWarpSize / columns : 1;
}

int64_t mlir::bngrad::getScratchSize(int64_t rows, int64_t columns,
                                     int64_t lanes) {
  return llvm::divideCeil(rows, getRowsOfWarp(columns)) * columns * lanes;
}
