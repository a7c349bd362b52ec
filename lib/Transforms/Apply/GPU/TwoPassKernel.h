//===- TwoPassKernel.h - the kernels of two_pass ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GPU_TWOPASSKERNEL_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GPU_TWOPASSKERNEL_H

#include "GpuChannels.h"
#include "GpuMoments.h"
#include "GpuSums.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace mlir::bngrad {

/// Emits the kernels of `#bngrad.schedule<two_pass>`.
class TwoPass : public GpuGroup {
public:
  TwoPass(OpBuilder &b, const ScheduledGroup &group, const CudaChip &chip,
          const GpuSchedule &schedule, DeviceBuffers &buffers)
      : GpuGroup(b, group, schedule, buffers),
        overlaps(chip.canOverlapLaunches()) {}

  void emit(OpBuilder &b);

private:
  // A mean and squares about it (TwoPassMoments.cpp).
  /// The values that stage 0 computes for a channel, by viewed memref.
  DenseMap<Value, Value> computeFirst(OpBuilder &b,
                                      const Indices &indices) const;
  /// The first element of the channel of each of `lanes` lanes.
  Value loadFirst(OpBuilder &b, const Indices &indices, int64_t lanes) const;
  /// Loads the inputs of a channel in the stages of the moments.
  DenseMap<OpOperand *, Value> loadMomentInputs(OpBuilder &b,
                                                const Indices &indices) const;
  /// Computes and stores the results of a channel from the sums of emitMoments,
  /// `totals`, and what is already `known` of stage 0.
  void finishMoments(OpBuilder &b, const Indices &indices, ValueRange totals,
                     const DenseMap<OpOperand *, Value> &loaded,
                     DenseMap<Value, Value> known) const;

  /// The reductions for which the current kernels read the data.
  SmallVector<linalg::GenericOp> getReductions() const;
  /// The sums of a thread over its pieces.
  Accumulators emitThreadSums(OpBuilder &b, int64_t lanes, const Walk &walk,
                              const Indices &indices,
                              const ThreadPieces &threadPieces) const;

  /// Emits the kernels of the current stage. Appends the memory of partial sums
  /// to `scratch`.
  void emitStage(OpBuilder &b, SmallVectorImpl<Value> &scratch);

  using LanesBody = function_ref<void(OpBuilder &, int64_t)>;

  /// Emits `body` for vectors if `generics` can be read in vectors, else for
  /// single elements. Unknown sizes and alignments are tested at run time.
  void emitByLanes(OpBuilder &b, ArrayRef<linalg::GenericOp> generics,
                   LanesBody body);

  /// Partial sums, as [sum][slice][channel].
  struct Partials {
    SmallVector<Value> memrefs; // by sum
    Value slices;
  };
  Partials createPartials(OpBuilder &b, Value slices);
  void storePartials(OpBuilder &b, ValueRange totals, const Partials &partials,
                     ValueRange indices) const;
  /// The number of slices that the elements of a channel are cut into. A block
  /// takes a tile of channels, and `elementsOfBlock` of each at a time.
  Value countSlices(OpBuilder &b, Value tiles, Value elementsOfBlock);
  /// The pieces of slices. Slices alternate, so that all blocks move together
  /// towards the end of memory. If that would take too many registers, slices
  /// are contiguous: if their number is known only at run time, and for 64-bit
  /// sums in several loops.
  struct Slicing {
    int64_t width; // adjacent threads
    Value stride;  // of the walk
    Walk walk;     // of a thread
    Value pieces;  // of all slices
    Value length;  // of a contiguous slice
  };
  bool alternates(const Partials &partials) const {
    bool isWide = llvm::any_of(llvm::seq(numSums()), [&](unsigned i) {
      return sumType(i).getWidth() > 32;
    });
    return getConstantIntValue(partials.slices).has_value() &&
           (reduced.size() == 1 || !isWide);
  }
  Slicing planSlices(OpBuilder &b, const Partials &partials, int64_t width,
                     int64_t lanes) const;
  ThreadPieces getSlice(OpBuilder &b, const Slicing &slicing, Value number,
                        Value thread) const;
  /// Emits sums with adjacent threads in one channel.
  void emitChannelSums(OpBuilder &b, const Partials &partials, int64_t lanes);

  /// The columns of a row, `lanes` channels each, divided into tiles for
  /// blocks.
  struct ColumnTiles {
    int64_t rows, columns;               // of threads
    SmallVector<unsigned> outerFeatures; // features other than `inner`
    Value columnsOfRow, tilesOfRow;
    Value count; // of tiles
    Slicing slicing;
  };
  ColumnTiles planColumns(OpBuilder &b, const Partials &partials,
                          int64_t lanes);
  /// Emits sums with adjacent threads in different channels.
  void emitColumnSums(OpBuilder &b, const Partials &partials, int64_t lanes);
  /// Emits the kernel that adds up a slice of the pieces of each column of a
  /// tile.
  void emitSumsOfTile(OpBuilder &b, const Kernel &kernel,
                      const Partials &partials, const ColumnTiles &tiles,
                      int64_t lanes);

  /// The threads of a block of the kernel that finishes: a column of threads
  /// for each channel shares its slices.
  struct FinishGrid {
    int64_t rows, columns;
  };
  FinishGrid planFinish(const Partials &partials) const;
  /// The sums of every `rows`-th slice of `channel`, from `row` on.
  Accumulators addSlices(OpBuilder &b, const Partials &partials, int64_t rows,
                         Value row, Value channel) const;
  void emitFinish(OpBuilder &b, const Partials &partials);
  /// Emits the kernel that computes the totals of a tile of channels and their
  /// results.
  void emitFinishOfTile(OpBuilder &b, const Kernel &kernel,
                        const Partials &partials, const FinishGrid &grid);

  // Elements (TwoPassElements.cpp).
  /// Emits a kernel that computes the elements of `generic`.
  void emitElementwise(OpBuilder &b, linalg::GenericOp generic,
                       const Pieces &pieces) const;
  /// The number of a block, counted from the end of `blocks`: the end of the
  /// data is still in the cache.
  Value getNumberFromEnd(OpBuilder &b, const Kernel &kernel,
                         Value blocks) const;
  /// Whether a block computes elements of one row. Without vectors, walking
  /// from one channel to the next would take longer than the memory accesses.
  bool takesRows(int64_t lanes) const;
  /// Like emitElementwise, with a part of a row in each block.
  void emitRows(OpBuilder &b, linalg::GenericOp generic,
                const Pieces &pieces) const;
  /// Whether a thread computes elements of one innermost channel, for the same
  /// reason.
  bool takesColumns(int64_t lanes) const;
  /// Like emitElementwise, with rows of threads in each block; a row of threads
  /// has an element of each channel.
  void emitColumns(OpBuilder &b, linalg::GenericOp generic,
                   const Pieces &pieces) const;

  /// Whether a kernel lets the blocks of the next one start. The last kernel
  /// does not, as kernels of other programs could then run during the group.
  bool overlaps;
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_TWOPASSKERNEL_H
