//===- GpuSchedule.h - the choice of a schedule for a GPU ------- -*- C++
//-*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_GPUSCHEDULE_H
#define BNGRAD_LIB_TRANSFORMS_GPUSCHEDULE_H

#include "ScheduledGroup.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/CudaChip.h"

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

  static constexpr int64_t kAlignment = 128;
};

/// The schedule of `group`, on tensors or memrefs, on `chip`.
ScheduleAttr chooseGpuSchedule(const ScheduledGroup &group,
                               const CudaChip &chip);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_GPUSCHEDULE_H
