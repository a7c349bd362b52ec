//===- GpuPieces.h - memory and elements of a piece -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUPIECES_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUPIECES_H

#include "GpuGroup.h"
#include "Schedule/OnePassLayout.h"

namespace mlir::bngrad {

/// The elements of an operand that belong to the block, in shared memory.
struct OnChip {
  Value memref;
  AffineMap map;            // from the loops to its dims
  SmallVector<Value> first; // by dim: index of its first element
  Value linear = Value();   // all its elements, as one dim
};

/// Operands, by memref and map, whose pieces a thread keeps in registers.
using KeptPieces = DenseMap<std::pair<Value, AffineMap>, Value>;

/// Accesses the elements of pieces. The lanes of a piece are adjacent
/// iterations of the innermost loop.
class Pieces {
public:
  Pieces(const GpuGroup &gpu, int64_t lanes)
      : gpu(gpu), lanes(lanes), loc(gpu.loc) {}
  virtual ~Pieces() = default;

  /// Whether all lanes of a piece belong to one channel.
  virtual bool areOfOneChannel() const {
    return !gpu.group.isFeature(gpu.inner);
  }
  /// Loads the elements of an operand.
  Value load(OpBuilder &b, linalg::GenericOp generic, OpOperand &operand,
             const Indices &indices) const;
  /// Loads the operands that do not depend on the null indices, except for
  /// those that are already `kept`, and without the operand `other`.
  DenseMap<OpOperand *, Value> loadCommon(OpBuilder &b,
                                          linalg::GenericOp generic,
                                          const Indices &indices,
                                          OpOperand *other = nullptr) const;
  IRMapping clone(OpBuilder &b, linalg::GenericOp generic,
                  const DenseMap<OpOperand *, Value> &common,
                  const Indices &indices) const;
  /// Stores the results of `generic` that have one element per iteration.
  void storeResults(OpBuilder &b, linalg::GenericOp generic,
                    const IRMapping &mapping, const Indices &indices) const;
  /// Emits the element-wise `generic` for `pieces` of a walk that starts at
  /// index `first` of each loop, or at 0.
  void emitElements(OpBuilder &b, linalg::GenericOp generic, const Walk &walk,
                    const Indices &first, const ThreadPieces &pieces) const;
  /// Keeps LLVM from further unrolling a loop over chunks, or over the
  /// remaining pieces, if data are on chip. More loads at a time help only if
  /// they wait for memory.
  void keepLoop(Operation *loop) const;

  const GpuGroup &gpu;
  const int64_t lanes;
  DenseMap<Value, OnChip> onChip; // by viewed memref, operands read there
  KeptPieces kept;
  bool hasDataOnChip = false;
  /// Whether no kernel of the group reads the data that are stored.
  bool isStreaming = false;

protected:
  virtual Value loadLanes(OpBuilder &b, linalg::GenericOp generic,
                          OpOperand &operand, const Indices &indices) const;
  /// The memref that an output is stored to, and the position in it.
  virtual std::pair<Value, SmallVector<Value>>
  locateOutput(OpBuilder &b, linalg::GenericOp generic, OpOperand &output,
               const Indices &indices) const;
  /// The indices of the lanes in `loop`.
  virtual Value getIndex(OpBuilder &b, unsigned loop,
                         const Indices &indices) const;
  /// Loads a vector of adjacent elements; for i1, whether each byte is not 0.
  Value loadVector(OpBuilder &b, Value memref, ValueRange position) const;
  /// An element of `memref`, or of its tile if it has one.
  std::pair<Value, SmallVector<Value>> locate(OpBuilder &b, Value memref,
                                              AffineMap map,
                                              const Indices &indices) const;
  IndexBuilder at(OpBuilder &b) const { return gpu.at(b); }

  Location loc;

private:
  void store(OpBuilder &b, linalg::GenericOp generic, OpOperand &output,
             Value value, const Indices &indices) const;
};

/// Pieces of data that are on chip: the index of the innermost loop is the
/// number of an element of the block.
class LinearPieces : public Pieces {
public:
  explicit LinearPieces(const Pieces &pieces) : Pieces(pieces) {}

protected:
  Value loadLanes(OpBuilder &b, linalg::GenericOp generic, OpOperand &operand,
                  const Indices &indices) const override;
};

/// A memref whose dims are [row, element of a flat row], and the position of
/// the first element.
struct FlatView {
  Value memref, firstRow, firstElement;
};

/// Rows of `length` elements, and the threads for them.
struct FlatLayout {
  FlatRows rows;
  int64_t length;
};

/// The piece of a thread in *flat rows*: the rows of a tile's channels in one
/// sample, which are adjacent in memory. Its lanes belong to one channel, and
/// to the next channel if the row of the first ends within the piece. The loops
/// are [N, C, S].
class FlatPieces : public Pieces {
public:
  /// Piece `column` of a flat row whose first channel is `tileChannel`.
  FlatPieces(OpBuilder &b, const GpuGroup &gpu, const FlatLayout &layout,
             Value column, Value tileChannel);

  bool areOfOneChannel() const override { return false; }
  /// The indices of the first lane; null for N.
  Indices getIndices() const {
    return {Value(), firstChannel, elements.front()};
  }
  /// Stores the sums of the lanes to `scratch`, by sum: [channel of the
  /// tile][row of threads][piece of the channel].
  void storeSums(OpBuilder &b, ValueRange scratch, Value row,
                 ArrayRef<Accumulator> sums) const;
  /// The totals of a channel of the tile, in every lane of a warp.
  SmallVector<Value> addSums(OpBuilder &b, ValueRange scratch,
                             Value channelOfTile, Value lane) const;

  DenseMap<Value, FlatView> views; // by memref

protected:
  Value loadLanes(OpBuilder &b, linalg::GenericOp generic, OpOperand &operand,
                  const Indices &indices) const override;
  std::pair<Value, SmallVector<Value>>
  locateOutput(OpBuilder &b, linalg::GenericOp generic, OpOperand &output,
               const Indices &indices) const override;
  Value getIndex(OpBuilder &b, unsigned loop,
                 const Indices &indices) const override;

private:
  /// The first piece of a flat row with elements of a channel of the tile.
  Value getFirstPiece(OpBuilder &b, Value channelOfTile) const;
  /// The channel of a lane.
  Value getChannel(OpBuilder &b, Value isFirst) const {
    return at(b).select(isFirst, firstChannel, lastChannel);
  }

  FlatLayout layout;
  Value column;                    // its number in the flat row
  Value start;                     // its first lane, in the flat row
  Value channelOfTile;             // of the first lane
  Value firstChannel, lastChannel; // of the first and of the last lane
  SmallVector<Value> isFirst;      // by lane: if it has the first channel
  SmallVector<Value> elements;     // by lane: index in its row
};

/// The number of elements of a piece; 1 if a body in `generics` cannot be
/// vectorized.
int64_t countLanes(const GpuGroup &gpu, ArrayRef<linalg::GenericOp> generics);

/// True if the lanes of a piece are adjacent in `operand`.
bool isContiguous(const GpuGroup &gpu, linalg::GenericOp generic,
                  OpOperand &operand);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_GPUPIECES_H
