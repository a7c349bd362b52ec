//===- OnePassLayout.h - a group in shared memory ------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_SCHEDULE_ONEPASSLAYOUT_H
#define BNGRAD_LIB_TRANSFORMS_SCHEDULE_ONEPASSLAYOUT_H

#include "ScheduledGroup.h"

#include "BNGrad/Transforms/Schedule/CudaChip.h"

#include "BNGrad/Dialect/Schedule.h"

namespace mlir::bngrad {

/// Pieces of a chunk for each thread.
inline constexpr int64_t kUnroll = 4;
/// Stages in which the data of a block get into shared memory, at most.
inline constexpr int64_t kMostStages = 32;
/// Bytes of an mbarrier.
inline constexpr int64_t kMbarrierBytes = 8;

/// The threads of a block beside each other for the pieces of flat rows.
struct FlatRows {
  int64_t lanes;   // elements of a piece, of two channels at most
  int64_t columns; // pieces of a flat row
  int64_t rows;    // flat rows that the threads take at a time
  int64_t pieces;  // of a channel in a flat row, at most
};

/// How `one_pass` lays a group out over blocks. Its loops, with adjacent ones
/// of a kind merged, are [N, C, S] or [C, S], or [N, C] where channels are
/// innermost.
struct OnePassLayout {
  bool channelsInnermost;
  int64_t rows;     // N, or 1
  int64_t channels; // C
  int64_t length;   // S, or 1
  /// Operands that the sums and the elements both read: they are kept on chip.
  SmallVector<Value> operands;
  SmallVector<int64_t> widths; // bytes of an element, by operand
  int64_t sumBytes;            // of all sums of a channel
  int64_t resultBytes;         // of all results of a channel
  int64_t lanes;               // elements of an access, at most

  /// The layout of `group`, on tensors or memrefs, or a `reason` why there is
  /// none.
  static std::optional<OnePassLayout> get(const ScheduledGroup &group,
                                          std::string &reason);

  /// Rows of a block at most.
  int64_t getRowsOfBlock(const GpuSchedule &schedule) const {
    return llvm::divideCeil(rows, schedule.clusterBlocks);
  }
  /// How a block of `schedule` takes the rows of its channels in one sample,
  /// which are adjacent, as one *flat row*; nothing if each row is divided into
  /// pieces by itself.
  std::optional<FlatRows> getFlatRows(const GpuSchedule &schedule) const;
  /// Shared memory for the first `numOperands` of `operands`, of a block, in
  /// bytes; each begins at a multiple of 128.
  int64_t getSharedBytes(const GpuSchedule &schedule,
                         unsigned numOperands) const;
  /// That of all operands.
  int64_t getSharedBytes(const GpuSchedule &schedule) const {
    return getSharedBytes(schedule, widths.size());
  }
  /// Static shared memory of a block at most, in bytes: sums, the results of
  /// its channels, and mbarriers.
  int64_t getStaticBytes(const GpuSchedule &schedule) const;

  /// Checks that a block of `schedule`, whose loops are allowed, has the shared
  /// memory that it needs on `chip`.
  ///
  /// Errors: failure and a `reason`.
  LogicalResult verifySharedMemory(const GpuSchedule &schedule,
                                   const CudaChip &chip,
                                   std::string &reason) const;
};

/// The layout of `group`, on buffers of the device, for `one_pass` with the
/// parameters of `schedule`.
///
/// Errors: failure and a `reason`.
FailureOr<OnePassLayout> getOnePassLayout(const ScheduledGroup &group,
                                          const GpuSchedule &schedule,
                                          std::string &reason);

/// Bytes of the sums that `reduction` computes for a channel. Sums that are
/// neither integers nor floats do not count.
int64_t getSumBytes(linalg::GenericOp reduction);

/// Elements of a piece of the data of `generics`, at most: accesses of
/// `accessBits` of the narrowest type, but two of the widest at most. 1 for
/// types that are neither integers nor floats.
int64_t getMostLanes(ArrayRef<linalg::GenericOp> generics, int64_t accessBits);

/// Rows of `columns` threads that are in one warp, which exchange their sums
/// without shared memory.
int64_t getRowsOfWarp(int64_t columns);

/// Elements of shared memory for a sum of `rows` x `columns` threads, with
/// `lanes` elements each, along the rows.
int64_t getScratchSize(int64_t rows, int64_t columns, int64_t lanes);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_SCHEDULE_ONEPASSLAYOUT_H
