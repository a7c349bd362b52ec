//===- OnePassKernel.h - the kernel of one_pass -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GPU_ONEPASSKERNEL_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GPU_ONEPASSKERNEL_H

#include "GpuChannels.h"
#include "GpuMoments.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::bngrad {

/// A value for each channel of the tile, in shared memory. Arrays of one type
/// share a buffer, and so the registers for its address.
struct ChannelArray {
  Type type;
  int64_t offset; // of its first element in the buffer
};

/// A per-channel output of the group that is needed.
struct ChannelResult {
  OpOperand *operand;
  ChannelArray array;
};

/// What a stage of the group has in shared memory.
struct StageArrays {
  SmallVector<ChannelArray> slots; // by sum
  SmallVector<ChannelResult> results;
};

/// Emits the kernel of `#bngrad.schedule<one_pass>`.
class OnePass : public GpuGroup {
public:
  OnePass(OpBuilder &b, const ScheduledGroup &group,
          const OnePassLayout &layout, const GpuSchedule &schedule,
          DeviceBuffers &buffers);

  void emit(OpBuilder &b);

  /// Whether `memref` is a result of any stage that is needed.
  bool isResult(Value memref) const;
  /// The entries of `memref` that a stage before the current one computes; null
  /// if there is none.
  const ChannelArray *findEarlierResult(Value memref) const;
  const StageArrays &ofStage() const { return arrays[stageNumber]; }
  /// The rows of threads in a block whose columns are channels.
  int64_t countThreadRows() const {
    return std::max<int64_t>(threads / (tile / lanes), 1);
  }

  const OnePassLayout layout;
  const int64_t cluster, tile, rowsOfBlock; // rows at most
  int64_t lanes;
  std::optional<FlatRows> flatRows;
  const ExchangedSums exchanged;
  SmallVector<StageArrays> arrays;               // by stage
  llvm::MapVector<Type, int64_t> channelBuffers; // elements, by type
  bool readsResults = false;       // whether the kernel reads memory of results
  DenseMap<Value, Value> flatData; // by memref: [row, element of a flat row]

private:
  /// Elements of a piece, 1 if the data do not allow vectors.
  int64_t countPieceLanes() const;
  void planChannels();
  bool readsOwnResults();
};

/// A block of the kernel: its place in the cluster, and its part of the data.
struct TileBlock {
  /// As many rows as other blocks of the cluster have, or one more.
  TileBlock(OpBuilder &b, const OnePass &gpu, const Kernel &kernel);

  const Kernel &kernel;
  Value rank;         // in its cluster
  Value firstChannel; // of the tile
  Value firstRow, rows;
};

/// A part of the code of a block.
class BlockPart {
protected:
  BlockPart(const OnePass &gpu, const TileBlock &block)
      : gpu(gpu), block(block), layout(gpu.layout), loc(gpu.loc) {}

  IndexBuilder at(OpBuilder &b) const { return gpu.at(b); }
  Value constant(OpBuilder &b, int64_t value) const {
    return gpu.constant(b, value);
  }
  /// The address of `memref`'s first byte, as an integer.
  Value getAddress(OpBuilder &b, Value memref) const;
  Type getPointerType(OpBuilder &b, NVVM::NVVMMemorySpace space) const;
  Value toPointer(OpBuilder &b, Value address,
                  NVVM::NVVMMemorySpace space) const;

  const OnePass &gpu;
  const TileBlock &block;
  const OnePassLayout &layout;
  const Location loc;
};

/// Copies the operands of a block to shared memory (OnePassCopies.cpp).
class TileCopies : BlockPart {
public:
  /// Creates the views of shared memory that `pieces` then reads.
  TileCopies(OpBuilder &b, const OnePass &gpu, const TileBlock &block,
             Pieces &pieces, FlatPieces *flat);

  /// Begins the copies.
  void emit(OpBuilder &b);
  /// Waits for all copies unless they come in stages.
  void awaitAll(OpBuilder &b) const;
  /// The steps of a stage, or 0 if the threads have waited for all data.
  int64_t getStepsOfStage() const {
    return stages.count > 1 ? stages.steps : 0;
  }
  /// Waits for the data of step `step` of the sums.
  void awaitStep(OpBuilder &b, Value step) const;

private:
  /// How operands get into shared memory.
  enum class Copy { Bulk, AsyncPieces, Elements };
  Copy chooseCopy() const;
  /// Whether `loop` is the one whose iterations the blocks of a cluster share.
  bool isRow(unsigned loop) const {
    return !gpu.group.isFeature(loop) &&
           (loop != gpu.inner || layout.channelsInnermost);
  }
  /// Bytes of the run of memory of a row of a tile.
  int64_t getRunBytes(unsigned operand) const {
    return gpu.tile * layout.length * layout.widths[operand];
  }
  /// The data of a block arrive in *stages*, each with an mbarrier, so that the
  /// first pieces are added up while the rest is on its way. They are copied in
  /// segments: rows of the tile, or equal parts of long rows. In a step, each
  /// thread takes a piece. A stage has the segments that its steps need and
  /// that no earlier stage has.
  struct Stages {
    int64_t count = 0;         // 0 if the threads have waited for all data
    int64_t steps = 1;         // of a stage: a power of 2
    int64_t stepPieces = 1;    // of all threads
    int64_t segmentPieces = 1; // of a segment
    int64_t segmentsOfRow = 1;
  };
  Stages planStages(Copy copy) const;
  /// The least number of equal parts of a row that take at most one step each;
  /// 1 if a row has no such parts.
  int64_t countSegmentsOfRow(int64_t stepPieces) const;
  /// Adjacent segments of the block.
  struct Segments {
    Value first, count;
  };
  Segments getSegmentsOfStage(OpBuilder &b, Value stage) const;
  /// Creates the mbarriers of the stages, each for `arrivals` threads.
  void createMbarriers(OpBuilder &b, int64_t arrivals);
  /// The address of the mbarrier of `stage`, and a pointer to it.
  Value getMbarrierAddress(OpBuilder &b, Value stage) const;
  Value getMbarrier(OpBuilder &b, Value stage) const;
  void awaitStage(OpBuilder &b, Value stage) const;
  /// The addresses of a copy of adjacent bytes, and of its mbarrier.
  struct BulkCopy {
    Value from, to, bytes, arrival;
  };
  void emitBulkCopy(OpBuilder &b, const BulkCopy &copy) const;
  /// The address of the block's first element of an operand.
  Value getFirstAddress(OpBuilder &b, unsigned operand) const;
  /// Emits the copies, which one thread begins stage by stage: segments of rows
  /// or, if a tile has all channels, the rows of a stage, as they are one run.
  void emitRowCopies(OpBuilder &b) const;
  void emitRunCopies(OpBuilder &b) const;
  void emitBulkCopies(OpBuilder &b);
  /// Calls `copy` for each piece of `elements` that the thread has in the rows
  /// `copied` of operand `i`.
  using CopyPiece =
      function_ref<void(OpBuilder &, const Indices &to, const Indices &from)>;
  void forEachPiece(OpBuilder &b, unsigned i, const Segments &copied,
                    int64_t elements, CopyPiece copy) const;
  void emitAsyncPieces(OpBuilder &b);
  void emitElementCopies(OpBuilder &b) const;

  const Pieces &pieces;
  SmallVector<Value> copies; // of the operands, in shared memory
  Stages stages;
  Value mbarriers; // by stage
};

/// The sums and results of a tile's channels, of the current stage unless
/// stated otherwise (OnePassChannels.cpp).
class TileChannels : BlockPart {
public:
  TileChannels(const OnePass &gpu, const TileBlock &block)
      : BlockPart(gpu, block) {}

  /// Makes `pieces` read the results of stage `number` from shared memory.
  void readResultsOnChip(OpBuilder &b, Pieces &pieces, unsigned number) const;
  /// Stores the sums of the block to a slot.
  void storeSlots(OpBuilder &b, ValueRange totals, Value slot) const;
  /// Loads the inputs of the channel whose results the thread computes.
  void load(OpBuilder &b);
  /// Adds the slots of all blocks, and computes the results of the tile.
  void finish(OpBuilder &b) const;
  /// Makes the first block of a cluster store the results of all stages.
  void store(OpBuilder &b) const;

private:
  /// The number of slots of the tile.
  Value countSlots(OpBuilder &b) const;
  /// The threads that share a slot.
  int64_t countSharers() const {
    return block.kernel.countSharers(gpu.tile, gpu.cluster);
  }
  /// The sums in a slot of block `number` of the cluster.
  SmallVector<Value> loadSlot(OpBuilder &b, Value slot, Value number) const;
  /// The sums of a slot over all blocks. `parts` adjacent threads of a warp, a
  /// power of 2, share them; each adds every `parts`-th block from `part` on.
  SmallVector<Value> addSlots(OpBuilder &b, Value slot, Value part,
                              int64_t parts) const;
  /// The indices of the channel in a slot; null for the other loops.
  Indices getChannel(OpBuilder &b, Value slot) const;
  void finishChannel(OpBuilder &b, Value slot, ValueRange totals) const;
  Value getBuffer(const ChannelArray &array) const;
  Value loadEntry(OpBuilder &b, const ChannelArray &array, Value slot) const;
  void storeEntry(OpBuilder &b, Value value, const ChannelArray &array,
                  Value slot) const;

  DenseMap<OpOperand *, Value> loaded; // the inputs of a channel
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_ONEPASSKERNEL_H
