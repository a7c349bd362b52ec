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

#include "BNGrad/Dialect/Schedule.h"

namespace mlir::bngrad {

/// How `one_pass` lays a group out over blocks. Its loops, with adjacent ones
/// of a kind merged, are [N, C, S] or [C, S], or [N, C] where channels run
/// fastest.
struct OnePassLayout {
  bool channelsRunFastest;
  int64_t rows;     // N, or 1
  int64_t channels; // C
  int64_t length;   // S, or 1
  /// Operands that the sums and the elements both read: they are kept on chip.
  SmallVector<Value> operands;
  SmallVector<int64_t> widths; // bytes of an element, by operand
  int64_t sumBytes;            // of all sums of a channel
  int64_t lanes;               // elements of an access, at most

  /// The layout of `group`, on tensors or memrefs, or a `reason` why there is
  /// none.
  static std::optional<OnePassLayout> get(const ScheduledGroup &group,
                                          std::string &reason);

  /// Rows of a block at most, if `cluster` blocks share them.
  int64_t getRowsOfBlock(int64_t cluster) const {
    return llvm::divideCeil(rows, cluster);
  }
  /// Shared memory for `operands` of a block with `tile` channels, in bytes;
  /// each begins at a multiple of kAlignment.
  int64_t getSharedBytes(int64_t cluster, int64_t tile) const;
  /// Where operand `i` begins in it.
  int64_t getOffset(int64_t cluster, int64_t tile, unsigned i) const;

  /// Static shared memory for the sums of a block at most, in bytes.
  int64_t getStaticBytes(int64_t threads, int64_t tile) const;

  static constexpr int64_t kAlignment = 128;
  /// Static shared memory that a block can have, in bytes.
  static constexpr int64_t kMostStaticBytes = 48 << 10;
  /// Shared memory of a block that the system keeps, in bytes.
  static constexpr int64_t kSystemBytes = 1 << 10;
};

/// True if `one_pass` can be used on `group`, on buffers of the device, as
/// `schedule` says, with blocks that have up to `sharedBytes` of shared memory;
/// or else a `reason`.
bool fitsOnePass(const ScheduledGroup &group, const GpuSchedule &schedule,
                 int64_t sharedBytes, std::string &reason);

/// Elements that one step of a thread takes of the data of `generics`: accesses
/// of `vectorBits` of the narrowest type, but two of the widest at most.
int64_t getMostLanes(ArrayRef<linalg::GenericOp> generics, int64_t vectorBits);

/// Elements of shared memory for a sum of `rows` x `columns` threads, with
/// `lanes` elements each, along the rows: in each step the upper half of the
/// rows hands its sums to the lower half.
int64_t getScratchSize(int64_t rows, int64_t columns, int64_t lanes);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_SCHEDULE_ONEPASSLAYOUT_H
