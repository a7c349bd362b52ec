//===- ChooseCpuSchedule.cpp - the schedule of a group on a CPU -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChooseCpuSchedule.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "bngrad-group"

using namespace mlir;
using namespace mlir::bngrad;

// The C library describes ready kernels, which are for an unknown CPU.
static_assert(Target().l1Bytes == limits::kL1Bytes &&
              Target().lastLevelBytes == limits::kLastLevelBytes);

/// The product of sizes, saturated; kDynamic if one of them is.
static int64_t multiply(ArrayRef<int64_t> sizes) {
  if (ShapedType::isDynamicShape(sizes))
    return ShapedType::kDynamic;
  uint64_t product = 1;
  for (int64_t size : sizes)
    product = llvm::SaturatingMultiply<uint64_t>(product, size);
  return std::min<uint64_t>(product, std::numeric_limits<int64_t>::max());
}

int64_t mlir::bngrad::getElementBytes(const ScheduledGroup &group) {
  int64_t bytes = 1;
  for (linalg::GenericOp generic : group.getDataGenerics())
    for (OpOperand &operand : generic->getOpOperands()) {
      Type type = getElementTypeOrSelf(operand.get());
      if (isDataMap(generic.getMatchingIndexingMap(&operand)) &&
          type.isIntOrFloat())
        bytes = std::max<int64_t>(
            bytes, llvm::divideCeil(type.getIntOrFloatBitWidth(), 8));
    }
  return bytes;
}

DataShape DataShape::get(const ScheduledGroup &group) {
  DataShape shape;
  SmallVector<int64_t> sizes = group.getLoopSizes();
  for (const ReassociationIndices &mergedLoop : group.getMergeableLoops()) {
    SmallVector<int64_t> merged;
    for (int64_t loop : mergedLoop)
      merged.push_back(sizes[loop]);
    shape.sizes.push_back(multiply(merged));
    shape.isFeature.push_back(group.isFeature(mergedLoop.front()));
  }
  // A size of 0 is known even if another of the same merged loop is not.
  if (llvm::is_contained(sizes, 0))
    shape.sizes.assign(shape.sizes.size(), 0);
  shape.elementBytes = getElementBytes(group);
  return shape;
}

bool mlir::bngrad::hasLoopsOf(ScheduleKind kind, ArrayRef<bool> isFeature) {
  size_t count = isFeature.size();
  switch (getInfo(kind).loops) {
  case ScheduleLoops::Any:
    return true;
  case ScheduleLoops::EndInReduced:
    return !isFeature.back();
  case ScheduleLoops::ChannelRows:
    return !isFeature.back() && count <= 3 &&
           llvm::count(isFeature, true) == 1 && isFeature[count - 2];
  case ScheduleLoops::RowsOfChannels:
    return count == 2 && isFeature.back();
  case ScheduleLoops::OfKernels:
    return false;
  }
  llvm_unreachable("unknown loops");
}

std::optional<ScheduleKind>
mlir::bngrad::chooseByLoops(function_ref<bool(ScheduleKind)> fits) {
  for (const ScheduleInfo &info : kSchedules)
    if (info.choice == ScheduleChoice::ByLoops && fits(info.kind))
      return info.kind;
  return std::nullopt;
}

ScheduleKind mlir::bngrad::chooseCpuKind(const DataShape &shape) {
  if (llvm::is_contained(shape.sizes, 0))
    return ScheduleKind::Loops;
  auto allows = [&](ScheduleKind kind) {
    return hasLoopsOf(kind, shape.isFeature);
  };
  ScheduleKind byLoops = chooseByLoops(allows).value_or(ScheduleKind::Loops);
  int64_t elements = multiply(shape.sizes), row = shape.sizes.back();
  if (byLoops != ScheduleKind::Sizes || ShapedType::isDynamic(elements))
    return byLoops;
  SmallVector<int64_t> features;
  for (auto [size, isFeature] : llvm::zip_equal(shape.sizes, shape.isFeature))
    if (isFeature)
      features.push_back(size);
  int64_t channels = multiply(features);
  int64_t rows = multiply(ArrayRef(shape.sizes).drop_back());
  LDBG() << channels << " channels, " << rows << " rows of " << row << " of "
         << elements << " elements";
  return chooseBySizes({channels, elements, row, rows, shape.elementBytes},
                       allows);
}

/// Columns of the tables of `kind`. If tables cover whole rows, a column takes
/// 48 bytes of the first-level cache: its entries in up to four tables of a
/// pass, and the lines of data that pass through.
static int64_t getColumns(ScheduleKind kind, int64_t elementBytes,
                          const Target &target) {
  if (getInfo(kind).tables != ScheduleTables::AllLoops)
    return getTileColumns(target.l1Bytes, elementBytes);
  return llvm::bit_floor(
      static_cast<uint64_t>(std::max<int64_t>(target.l1Bytes / 48, 64)));
}

CpuSchedule mlir::bngrad::chooseCpuSchedule(ScheduleKind kind,
                                            const DataShape &shape,
                                            const Target &target) {
  CpuSchedule schedule;
  if (!isCpuKind(kind))
    return schedule;
  schedule.threads = target.threads;
  schedule.vectorBits = target.vectorBits;
  schedule.streamingBytes = target.lastLevelBytes;
  schedule.columns = getColumns(kind, shape.elementBytes, target);
  // This is the same for any number of threads, so that sums do not depend on
  // it.
  schedule.rowBlocks = 32;
  schedule.fma = target.fma;
  return schedule;
}
