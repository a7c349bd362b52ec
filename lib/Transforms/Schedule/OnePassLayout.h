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
/// The most stages in which the data of a block are loaded to shared memory.
inline constexpr int64_t kMostStages = 32;
/// Bytes of an mbarrier.
inline constexpr int64_t kMbarrierBytes = 8;

/// How the threads of a block divide flat rows into pieces.
struct FlatRows {
  int64_t lanes;   // elements of a piece, of two channels at most
  int64_t columns; // pieces of a flat row
  int64_t rows;    // flat rows that the threads take at a time
  int64_t pieces;  // the most pieces of a channel in a flat row
};

/// Buffers in which threads exchange the sums of a channel. The stages of a
/// group share them. If a stage computes a mean and the next one squares about
/// it, only the stage of the squares has buffers, in f64.
struct ExchangedSums {
  explicit ExchangedSums(const ScheduledGroup &group);

  SmallVector<Type> types;                    // by buffer
  SmallVector<SmallVector<unsigned>> buffers; // by stage and sum
};

/// How `one_pass` lays a group out over blocks. Its merged loops are [N, C, S]
/// or [C, S], or [N, C] if channels are innermost.
struct OnePassLayout {
  bool channelsInnermost;
  int64_t rows;     // N, or 1
  int64_t channels; // C
  int64_t length;   // S, or 1
  /// Operands that the first sums read and that later sums or the elements read
  /// again. They stay on chip.
  SmallVector<Value> operands;
  SmallVector<int64_t> widths; // bytes of an element, by operand
  int64_t sumBytes;            // for all sums of a channel
  int64_t exchangedBytes;      // for those that threads exchange at a time
  int64_t resultBytes;         // for all results of a channel
  int64_t lanes;               // the most elements of an access

  /// The layout of `group`, on tensors or memrefs, or a `reason` why there is
  /// none.
  static std::optional<OnePassLayout> get(const ScheduledGroup &group,
                                          std::string &reason);

  /// The most rows of a block.
  int64_t getRowsOfBlock(const GpuSchedule &schedule) const {
    return llvm::divideCeil(rows, schedule.clusterBlocks);
  }
  /// How a block of `schedule` takes the adjacent rows of its channels in one
  /// sample as one *flat row*; nothing if each row is divided into pieces on
  /// its own.
  std::optional<FlatRows> getFlatRows(const GpuSchedule &schedule) const;
  /// The shared memory of a block for the first `numOperands` of `operands`, in
  /// bytes; each begins at a multiple of 128.
  int64_t getSharedBytes(const GpuSchedule &schedule,
                         unsigned numOperands) const;
  /// The shared memory of a block for all operands.
  int64_t getSharedBytes(const GpuSchedule &schedule) const {
    return getSharedBytes(schedule, widths.size());
  }
  /// The most static shared memory of a block, in bytes: sums, the results of
  /// its channels, and mbarriers.
  int64_t getStaticBytes(const GpuSchedule &schedule) const;

  /// Checks that `chip` has the shared memory that a block of `schedule` needs.
  /// The loops were already checked.
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

/// The most elements of a piece of the data of `generics`: one access of
/// `accessBits` of the narrowest type, but at most two of the widest. 1 for
/// types that are neither integers nor floats.
int64_t getMostLanes(ArrayRef<linalg::GenericOp> generics, int64_t accessBits);

/// The rows of `columns` threads in one warp. They exchange their sums without
/// shared memory.
int64_t getRowsOfWarp(int64_t columns);

/// The number of elements of shared memory needed to add up `lanes` elements of
/// each of `rows` x `columns` threads along the rows.
int64_t getScratchSize(int64_t rows, int64_t columns, int64_t lanes);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_SCHEDULE_ONEPASSLAYOUT_H
