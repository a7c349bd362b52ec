//===- GpuKernels.h - base of the schedules for GPUs ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads *walk* over loops of the data, access the elements, and add up their
// terms. Schedules build their kernels from these steps.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUKERNELS_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUKERNELS_H

#include "Apply/GroupEmitter.h"
#include "DeviceBuffers.h"
#include "Schedule/OnePassLayout.h"

#include "BNGrad/Dialect/Schedule.h"
#include "BNGrad/Transforms/Schedule/CudaChip.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::bngrad {

/// The pieces that a thread visits in some loops of the data, numbered as one
/// sequence with the last loop innermost.
struct Walk {
  SmallVector<unsigned> loops;
  SmallVector<Value> sizes;   // by loop; the last one in pieces
  SmallVector<Value> strides; // by loop, from a piece of the thread to the next
};

/// Where a piece is: an index for every loop of the data, null until a walk
/// sets it. The last loop's index is that of the piece's first element.
using Indices = SmallVector<Value>;

/// The pieces of a walk that a thread visits: number `from + thread` and every
/// `stride`-th after it, before `to`.
struct ThreadPieces {
  Value from, thread, stride, to;
  bool isChunk = false; // known to be one whole chunk
  int64_t width = 0;    // bound of `thread` if it is not `stride`
};

/// The threads of a block as rows of columns. Adjacent threads are in adjacent
/// columns; left-over threads have rows past the last.
struct ThreadGrid {
  int64_t rows, columns;
  Value row, column; // of a thread
};

/// A memref whose dims are [row, element of a flat row], and the position of
/// the first element.
struct FlatView {
  Value memref, firstRow, firstElement;
};

/// The piece of a thread in a *flat row*: the rows of a tile's channels in one
/// sample, which are adjacent in memory. Its lanes belong to one channel, and
/// to the next channel if the row of the first ends within the piece.
struct FlatPiece {
  Value column;                    // its number in the flat row
  Value start;                     // its first lane, in the flat row
  Value channelOfTile;             // of the first lane
  Value firstChannel, lastChannel; // of the first and of the last lane
  SmallVector<Value> isFirst;      // by lane: if it is of the first channel
  SmallVector<Value> elements;     // by lane: index in its row
  DenseMap<Value, FlatView> views; // by memref

  /// The indices of the first lane in loops [N, C, S]; null for N.
  Indices getIndices() const {
    return {Value(), firstChannel, elements.front()};
  }
};

/// Rows of `length` elements, and the threads for them.
struct FlatLayout {
  FlatRows rows;
  int64_t length;
};

/// The threads of a kernel, and their memory.
struct LaunchShape {
  Value blocks;
  int64_t threads;                // of a block
  TypeRange shared = {};          // workgroup memory, by buffer
  int64_t dynamicSharedBytes = 0; // more workgroup memory
  int64_t cluster = 1;            // blocks of a cluster
  bool startsNext = false;        // lets the blocks of the next kernel start
};

/// The values of a kernel that all threads of a block use.
struct Kernel {
  Value block, thread; // their numbers in the grid and in the block
  int64_t threads;     // of a block
  ValueRange shared;   // workgroup memory
};

/// Emits launches, walks, elements and sums for one group. Each schedule is a
/// subclass.
///
/// Shapes: `sizes` in elements, by loop over the data, static or dynamic.
/// Units:  `threads` of a block; lanes in elements of a piece.
class GpuKernels : public GroupEmitter {
public:
  GpuKernels(OpBuilder &b, const ScheduledGroup &group,
             const GpuSchedule &schedule, DeviceBuffers &buffers);
  virtual ~GpuKernels() = default;

protected:
  // Launches.
  void launch(OpBuilder &b, StringRef name, const LaunchShape &shape,
              function_ref<void(OpBuilder &, Kernel)> body);
  MemRefType getSharedType(int64_t elements, Type type) const;
  void barrier(OpBuilder &b) const;

  // Walks.
  /// A walk over `loops` with a stride of `stride` pieces.
  Walk createWalk(OpBuilder &b, ArrayRef<unsigned> loops, Value stride,
                  int64_t lanes) const;
  Value countPieces(OpBuilder &b, const Walk &walk) const {
    return at(b).product(walk.sizes);
  }
  /// The pieces of a thread, as whole chunks of kUnroll pieces and a rest.
  struct Chunks {
    Value size;  // of a chunk, in pieces of all threads
    Value count; // of whole chunks
    Value start; // the first piece of the thread
    /// The first piece of the thread after the whole chunks.
    Value getRest(IndexBuilder index) const {
      return index.add(start, index.mul(count, size));
    }
  };
  Chunks planChunks(OpBuilder &b, const ThreadPieces &pieces) const;
  /// Keeps LLVM from unrolling a loop of chunks or of the rest further. More
  /// loads at a time help only if they wait for memory.
  void keepLoop(Operation *loop) const {
    if (hasDataOnChip)
      disableUnrolling(loop);
  }
  using GroupEmitter::delinearize;
  /// Position `index` of the walk as an index for each of its loops.
  SmallVector<Value> delinearize(OpBuilder &b, const Walk &walk,
                                 Value index) const;
  SmallVector<Value> advance(OpBuilder &b, const Walk &walk,
                             ValueRange position) const;
  /// `indices`, with the walk's loops set to `position`.
  Indices getIndices(OpBuilder &b, const Walk &walk, Indices indices,
                     ValueRange position, int64_t lanes) const;

  // Elements.
  /// Elements of a piece; 1 if a body in `generics` has no form on vectors.
  int64_t getLanes(ArrayRef<linalg::GenericOp> generics) const;
  /// True if the lanes of a piece are adjacent in `operand`.
  bool isContiguous(linalg::GenericOp generic, OpOperand &operand) const;
  Value loadPiece(OpBuilder &b, linalg::GenericOp generic, OpOperand &operand,
                  const Indices &indices, int64_t lanes) const;
  /// Loads a vector of adjacent elements; for i1, whether each byte is not 0.
  Value loadVector(OpBuilder &b, Value memref, ValueRange position,
                   int64_t lanes) const;
  /// The alignment of a piece of `lanes` elements of `memref`, in bytes.
  static llvm::MaybeAlign getAlignment(Value memref, int64_t lanes);
  void storePiece(OpBuilder &b, linalg::GenericOp generic, OpOperand &operand,
                  Value value, const Indices &indices, int64_t lanes) const;
  /// Loads the operands that do not depend on the null indices, except for
  /// those that are already `kept`.
  DenseMap<OpOperand *, Value> loadCommon(OpBuilder &b,
                                          linalg::GenericOp generic,
                                          const Indices &indices,
                                          int64_t lanes) const;
  IRMapping clonePiece(OpBuilder &b, linalg::GenericOp generic,
                       const DenseMap<OpOperand *, Value> &common,
                       const Indices &indices, int64_t lanes) const;
  /// Stores the results of `generic` that have one element per iteration.
  void storeResults(OpBuilder &b, linalg::GenericOp generic,
                    const IRMapping &mapping, const Indices &indices,
                    int64_t lanes) const;

  /// Emits the element-wise `generic` for `pieces` of a walk that starts at
  /// index `first` of each loop, or at 0.
  void emitElements(OpBuilder &b, linalg::GenericOp generic, const Walk &walk,
                    const Indices &first, const ThreadPieces &pieces,
                    int64_t lanes) const;

  // Flat rows (GpuFlatRows.cpp); their loops are [N, C, S].
  /// Piece `column` of a flat row whose first channel is `tileChannel`.
  FlatPiece getFlatPiece(OpBuilder &b, const FlatLayout &layout, Value column,
                         Value tileChannel) const;
  /// Like loadPiece, for `flat`.
  Value loadFlatPiece(OpBuilder &b, linalg::GenericOp generic,
                      OpOperand &operand, const Indices &indices,
                      int64_t lanes) const;
  /// The memref of the data, and the indices of `flat` in it.
  std::pair<Value, SmallVector<Value>>
  locateFlatPiece(OpBuilder &b, Value memref, const Indices &indices) const;
  /// The indices of the lanes of `flat` in `loop`.
  Value getFlatIndices(OpBuilder &b, unsigned loop) const;
  /// Stores the sums of the lanes of `flat` to `scratch`, by sum:
  /// [channel of the tile][row of the grid][piece of the channel].
  void storeFlatSums(OpBuilder &b, ArrayRef<Value> scratch,
                     const FlatLayout &layout, Value row,
                     ArrayRef<Accumulator> sums) const;
  /// The totals of a channel of the tile, in every lane of a warp.
  SmallVector<Value> addFlatSums(OpBuilder &b, ArrayRef<Value> scratch,
                                 const FlatLayout &layout, Value channelOfTile,
                                 Value lane) const;

  // Sums.
  /// As the base's; scalars for one lane.
  Accumulators zeroSums(OpBuilder &b, int64_t lanes = 1) const {
    return lanes == 1 ? GroupEmitter::zeroSums(b)
                      : GroupEmitter::zeroSums(b, lanes);
  }
  /// The terms of a piece, one for each sum.
  SmallVector<Value> cloneTerms(OpBuilder &b,
                                const DenseMap<OpOperand *, Value> &common,
                                const Indices &indices, int64_t lanes) const;
  /// Whether some of the data for the sums may still be on its way.
  virtual bool comesInStages() const { return false; }
  /// Waits for the data of step `step` of the sums. In a step, each thread
  /// takes a piece.
  virtual void awaitStep(OpBuilder &b, Value step) const {}
  /// Waits for the data of step `step` of chunk `chunk`.
  virtual void awaitStep(OpBuilder &b, Value chunk, int64_t step) const {}
  /// The sum of `values`, added as a tree.
  Value addTree(OpBuilder &b, SmallVector<Value> values) const;
  /// The sums of `pieces`: per lane in flat rows and with innermost channels,
  /// otherwise over all lanes.
  Accumulators emitSums(OpBuilder &b, const Walk &walk, Indices indices,
                        const ThreadPieces &pieces, int64_t lanes) const;
  /// In each of `lanes` lanes of a warp, the sum of `value` over all of them;
  /// `lanes` is a power of 2.
  Value addAcrossWarp(OpBuilder &b, Value value, int64_t lanes) const;
  /// The sums of all threads of a block, in its first warp.
  SmallVector<Value> addAcrossBlock(OpBuilder &b, const Kernel &kernel,
                                    ArrayRef<Accumulator> sums) const;
  SmallVector<Type> getSharedTypesForBlock() const;
  /// Adds `sums` of `lanes` elements along the rows of `grid`; threads without
  /// terms have zeros. Calls `body` with the totals of each element of a row,
  /// in one thread of the `countRowSharers` that share an element.
  using TotalsBody =
      function_ref<void(OpBuilder &, Value element, ValueRange totals)>;
  void addAcrossRows(OpBuilder &b, const Kernel &kernel, const ThreadGrid &grid,
                     ArrayRef<Accumulator> sums, int64_t lanes,
                     TotalsBody body) const;
  int64_t countRowSharers(const Kernel &kernel, const ThreadGrid &grid,
                          int64_t lanes) const;
  /// Calls `body` with each of `count` numbers, in one thread of the block.
  void forEachOfBlock(OpBuilder &b, const Kernel &kernel, int64_t count,
                      function_ref<void(OpBuilder &, Value)> body) const;
  /// How many adjacent threads can share each of `count` numbers: a power of 2,
  /// at most `most` and at most a warp.
  int64_t countSharers(const Kernel &kernel, int64_t count, int64_t most) const;
  /// Calls `body` with each of `count` numbers in `parts` adjacent threads, and
  /// with the thread's part. If `parts` is more than 1, all threads of a warp
  /// call it, because of shuffles; some may have a number past the last.
  using SharedBody = function_ref<void(OpBuilder &, Value number, Value part)>;
  void forEachShared(OpBuilder &b, const Kernel &kernel, int64_t count,
                     int64_t parts, SharedBody body) const;
  /// The number of a thread if it has at most one; some threads may have a
  /// number past the last.
  std::optional<Value> getSharedNumber(OpBuilder &b, const Kernel &kernel,
                                       int64_t count, int64_t parts) const;
  /// Stores each of `totals` to its memref.
  void storeTotals(OpBuilder &b, ValueRange totals, ArrayRef<Value> memrefs,
                   ValueRange indices) const;

  // Channels (GpuChannels.cpp).
  /// The outputs that hold the sums, and the outputs of the per-channel
  /// generics.
  SmallVector<OpOperand *> getChannelResults() const;
  /// The inputs from which a channel's results are computed, except its sums.
  SmallVector<OpOperand *> getChannelInputs() const;
  /// Whether a per-channel result is read from memory later.
  bool isRead(OpOperand &result) const;
  /// The element of a per-channel operand.
  SmallVector<Value> locateChannel(OpBuilder &b, OpOperand &operand,
                                   const Indices &indices) const;
  /// Whether the group may change `memref` other than by writing a channel's
  /// result over that channel's element.
  bool mayChange(Value memref) const;
  /// Whether the group writes to the memory of `memref`.
  bool isChanged(Value memref) const;
  /// Loads the inputs of a channel that the group does not change earlier.
  ///
  /// A thread without a channel may pass another thread's `indices`. If
  /// `storesAtOnce`, that other thread may store its results before this load.
  DenseMap<OpOperand *, Value> loadChannelInputs(OpBuilder &b,
                                                 const Indices &indices,
                                                 bool storesAtOnce) const;
  /// Computes the results of a channel from its sums, `totals`, and from its
  /// inputs, some of which may be `loaded`. Calls `body` with each result.
  using ResultBody = function_ref<void(OpBuilder &, OpOperand &, Value)>;
  void computeChannel(OpBuilder &b, const Indices &indices, ValueRange totals,
                      const DenseMap<OpOperand *, Value> &loaded,
                      ResultBody body) const;

  /// The elements of an operand that belong to the block, in shared memory.
  struct OnChip {
    Value memref;
    AffineMap map;            // from the loops to its dims
    SmallVector<Value> first; // by dim: index of its first element
    Value linear = Value();   // all its elements, as one dim
  };
  /// An element of `memref`, or of its tile if it has one.
  std::pair<Value, SmallVector<Value>> locate(OpBuilder &b, Value memref,
                                              AffineMap map,
                                              const Indices &indices) const;

  GpuSchedule schedule;
  DeviceBuffers &buffers;
  Value channels;                 // the number of channels
  int64_t threads;                // of a block
  unsigned inner;                 // the innermost loop
  DenseMap<Value, OnChip> onChip; // by viewed memref, operands read there
  bool hasDataOnChip = false;
  const FlatPiece *flat = nullptr; // where pieces are in flat rows
  /// Whether no kernel of the group reads the data that are stored.
  bool isStreaming = false;
  /// Whether data are read on chip and an index of `inner` is the number of an
  /// element of the block.
  bool isLinear = false;
  /// Pieces of per-channel operands that the thread keeps in registers, by
  /// memref and map.
  DenseMap<std::pair<Value, AffineMap>, Value> kept;
  std::string module; // the symbol of the kernels
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUKERNELS_H
