//===- OnePassKernel.h - the kernel of one_pass -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_GPU_ONEPASSKERNEL_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_GPU_ONEPASSKERNEL_H

#include "GpuKernels.h"
#include "Schedule/OnePassLayout.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::bngrad {

/// Emits the kernel of `#bngrad.schedule<one_pass>`.
class OnePass : public GpuKernels {
public:
  OnePass(OpBuilder &b, const ScheduledGroup &group,
          const OnePassLayout &layout, const GpuSchedule &schedule,
          DeviceBuffers &buffers);

  void emit(OpBuilder &b);

private:
  /// Elements of a piece, 1 if the data do not allow vectors.
  int64_t countLanes() const;
  /// Whether all data have their dims in the order of the loops.
  bool isInOrder() const;
  /// How operands get into shared memory.
  enum class Copy { Bulk, AsyncPieces, Elements };

  // Copies (OnePassCopies.cpp).
  Copy chooseCopy() const;
  /// Bytes of the run of memory of a row of a tile.
  int64_t getRunBytes(unsigned operand) const {
    return tile * layout.length * layout.widths[operand];
  }
  /// Views of shared memory for the operands.
  void createViews(OpBuilder &b);
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
  Value countSegments(OpBuilder &b) const {
    return at(b).mul(rows, constant(b, stages.segmentsOfRow));
  }
  Segments getSegmentsOfStage(OpBuilder &b, Value stage) const;
  /// Creates the mbarriers of the stages, each for `arrivals` threads.
  void createMbarriers(OpBuilder &b, const Kernel &kernel, int64_t arrivals);
  /// The address of the mbarrier of `stage`, and a pointer to it.
  Value getMbarrierAddress(OpBuilder &b, Value stage) const;
  Value getMbarrier(OpBuilder &b, Value stage) const;
  void awaitStage(OpBuilder &b, Value stage) const;
  bool comesInStages() const override { return stages.count > 1; }
  void awaitStep(OpBuilder &b, Value step) const override;
  void awaitStep(OpBuilder &b, Value chunk, int64_t step) const override;
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
  void emitBulkCopies(OpBuilder &b, const Kernel &kernel);
  /// Calls `copy` for each piece of `elements` that the thread has in the rows
  /// `copied` of operand `i`.
  using CopyPiece =
      function_ref<void(OpBuilder &, const Indices &to, const Indices &from)>;
  void forEachPiece(OpBuilder &b, const Kernel &kernel, unsigned i,
                    const Segments &copied, int64_t elements,
                    CopyPiece copy) const;
  void emitAsyncPieces(OpBuilder &b, const Kernel &kernel);
  void emitElementCopies(OpBuilder &b, const Kernel &kernel);

  /// The address of `memref`'s first byte, as an integer.
  Value getAddress(OpBuilder &b, Value memref) const;
  Type getPointerType(OpBuilder &b, NVVM::NVVMMemorySpace space) const;
  Value toPointer(OpBuilder &b, Value address,
                  NVVM::NVVMMemorySpace space) const;

  void emitKernel(OpBuilder &b, const Kernel &kernel);
  /// Sets the rows of the block: as many as other blocks of its cluster have,
  /// or one more.
  void takeRows(OpBuilder &b);
  /// The threads of a block for the columns of a tile with innermost channels.
  struct Columns {
    ThreadGrid grid;
    Value slot, channel; // of the first lane
    Value isActive;      // whether a thread has a column
  };
  Columns getColumns(OpBuilder &b, const Kernel &kernel) const;
  /// Adds up the sums of this block and stores them to the slots.
  void emitSumsOfBlock(OpBuilder &b, const Kernel &kernel);
  /// Whether the data of `generic` are on chip and nothing else that it reads
  /// depends on reduced loops.
  bool readsOnChip(linalg::GenericOp generic) const;
  void emitSumsOfChannel(OpBuilder &b, const Kernel &kernel);
  void emitSumsOfChannels(OpBuilder &b, const Kernel &kernel);
  void emitSumsOfColumns(OpBuilder &b, const Kernel &kernel);
  void emitSumsOfFlatRows(OpBuilder &b, const Kernel &kernel);

  // Channels (OnePassChannels.cpp).
  void planChannels();
  /// Takes the buffers of the plan.
  void createChannels(OpBuilder &b, ValueRange shared);
  /// Makes later code read results from shared memory.
  void readResultsOnChip(OpBuilder &b);
  bool isResult(Value memref) const;
  /// Stores the sums of the block to a slot.
  void storeSlots(OpBuilder &b, ValueRange totals, Value slot) const;
  /// The number of slots of the tile.
  Value countSlots(OpBuilder &b) const;
  /// The sums in a slot of block `block` of the cluster.
  SmallVector<Value> loadSlot(OpBuilder &b, Value slot, Value block) const;
  /// The sums of a slot over all blocks. `parts` adjacent threads of a warp, a
  /// power of 2, share them; each adds every `parts`-th block from `part` on.
  SmallVector<Value> addSlots(OpBuilder &b, Value slot, Value part,
                              int64_t parts) const;
  /// The indices of the channel in a slot; null for the other loops.
  Indices getChannel(OpBuilder &b, Value slot) const;
  /// Loads the inputs of the channel whose results the thread computes.
  void loadChannels(OpBuilder &b, const Kernel &kernel);
  /// Loads the per-channel operands of the elements that a thread computes, if
  /// all these elements share them.
  void keepOperands(OpBuilder &b, const Kernel &kernel);
  /// Adds the slots of all blocks, and computes the results of the tile.
  void finishChannels(OpBuilder &b, const Kernel &kernel);
  void finishChannel(OpBuilder &b, Value slot, ValueRange totals);
  /// Makes the first block of a cluster store the results of the tile.
  void storeChannels(OpBuilder &b, const Kernel &kernel) const;
  /// The two halves of a barrier of the cluster. Memory is ordered unless the
  /// arrival `isRelaxed`.
  void arrive(OpBuilder &b, bool isRelaxed = false) const;
  void wait(OpBuilder &b) const;

  /// Sets the piece of the thread in flat rows.
  void createFlatPiece(OpBuilder &b, const Kernel &kernel);
  Value isFlatActive(OpBuilder &b) const;
  void emitFlatElements(OpBuilder &b);
  void emitElementsOfColumns(OpBuilder &b, const Kernel &kernel);
  void emitElementwise(OpBuilder &b, const Kernel &kernel);

  /// A value for each channel of the tile, in shared memory. Arrays of one type
  /// share a buffer, and so the registers for its address.
  struct ChannelArray {
    Type type;
    int64_t offset; // of its first element in the buffer
    Value buffer;   // in the kernel
  };
  ChannelArray planArray(Type type);
  /// A per-channel output of the group that is needed.
  struct ChannelResult {
    OpOperand *operand;
    ChannelArray array;
  };
  Value loadEntry(OpBuilder &b, const ChannelArray &array, Value slot) const;
  void storeEntry(OpBuilder &b, Value value, const ChannelArray &array,
                  Value slot) const;

  OnePassLayout layout;
  int64_t cluster, tile, rowsOfBlock; // rows at most
  int64_t lanes;
  std::optional<FlatRows> flatRows;
  SmallVector<ChannelArray> slots; // by sum
  SmallVector<ChannelResult> results;
  llvm::MapVector<Type, int64_t> channelBuffers; // elements, by type
  bool readsResults = false;       // whether the kernel reads memory of results
  DenseMap<Value, Value> flatData; // by memref: [row, element of a flat row]
  // In the kernel:
  Value rank;                          // of the block in its cluster
  Value firstRow, rows;                // of this block
  Value firstChannel;                  // of the tile
  SmallVector<Value> copies;           // of the operands, in shared memory
  Stages stages;                       // of the copies
  Value mbarriers;                     // by stage
  SmallVector<Value> scratch;          // for sums across a block
  DenseMap<OpOperand *, Value> loaded; // the inputs of a channel
  ThreadGrid flatGrid;                 // the threads for flat rows
  FlatPiece flatPiece;                 // of the thread
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_ONEPASSKERNEL_H
