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
  /// Bytes of a run of memory that belongs to a row of a tile.
  int64_t getRunBytes(unsigned operand) const {
    return tile * layout.length * layout.widths[operand];
  }
  /// Views of shared memory for the operands.
  void createViews(OpBuilder &b);
  /// Rows of this block that are contiguous in memory.
  struct CopiedRows {
    Value first, count;
  };
  /// The copies of rows of all operands, which arrive at the barrier to which
  /// `arrival` points.
  void emitBulkCopy(OpBuilder &b, const CopiedRows &copied,
                    Value arrival) const;
  void emitBulkCopies(OpBuilder &b, const Kernel &kernel);
  void emitCopies(OpBuilder &b, const Kernel &kernel, bool inPieces);

  /// `memref`'s first byte, as an integer.
  Value getAddress(OpBuilder &b, Value memref) const;
  Type getPointerType(OpBuilder &b, NVVM::NVVMMemorySpace space) const;
  Value toPointer(OpBuilder &b, Value address,
                  NVVM::NVVMMemorySpace space) const;

  void emitKernel(OpBuilder &b, const Kernel &kernel);
  /// The sums of this block, stored to the slots.
  void emitSumsOfBlock(OpBuilder &b, const Kernel &kernel);
  void emitSumsOfChannel(OpBuilder &b, const Kernel &kernel);
  void emitSumsOfChannels(OpBuilder &b, const Kernel &kernel);
  void emitSumsOfColumns(OpBuilder &b, const Kernel &kernel);
  void emitSumsOfFlatRows(OpBuilder &b, const Kernel &kernel);
  void finishChannels(OpBuilder &b, const Kernel &kernel);
  /// Sets the piece of the thread in flat rows.
  void createFlatPiece(OpBuilder &b, const Kernel &kernel);
  Value isFlatActive(OpBuilder &b) const;
  void emitFlatElements(OpBuilder &b);
  void emitElementwise(OpBuilder &b, const Kernel &kernel);
  Value loadSlot(OpBuilder &b, unsigned sum, Value channel, Value block) const;
  void synchronize(OpBuilder &b) const;

  OnePassLayout layout;
  int64_t cluster, tile, rowsOfBlock;
  int64_t lanes;
  std::optional<FlatRows> flatRows;
  DenseMap<Value, Value> flatData; // by memref: [row, element of a flat row]
  // In the kernel:
  Value rank;                 // of the block in its cluster
  Value firstRow, rows;       // of this block
  Value firstChannel;         // of the tile
  SmallVector<Value> copies;  // of the operands, in shared memory
  SmallVector<Value> slots;   // by sum
  SmallVector<Value> scratch; // for sums across a block
  ThreadGrid flatGrid;        // the threads for flat rows
  FlatPiece flatPiece;        // of the thread
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_GPU_ONEPASSKERNEL_H
