//===- CpuRows.h - the schedule rows ----------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUROWS_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUROWS_H

#include "CpuTables.h"

namespace mlir::bngrad {

/// Adding the sums of more channels than this takes one thread longer than
/// waking another.
inline constexpr int64_t kSerialChannels = 64;

class Rows : public TableLoops {
public:
  explicit Rows(const CpuLoops &shared)
      : TableLoops(shared), height(sizes[0]), channels(sizes[1]) {}

  void emit(OpBuilder &b);

private:
  /// How the first pass cuts the data. Its rows are folded rows.
  struct Blocks {
    Value fold;        // rows of the data that are taken as one
    Value columns;     // of a row
    Value rows;        // of all blocks
    Value restColumns; // elements after the last row, less than a row
    Value count;       // of blocks
    Value stride;      // entries between the sums of neighbours
    Value chains;      // of all blocks
  };
  /// How the second pass cuts the data. Its rows are folded rows.
  struct Elements {
    Value columns;  // of a row
    Value isNarrow; // an i1: `columns` is `wide`, for emitNarrowRows
    Value shift;    // elements before the first row
    Value rows;     // the last one may be shorter
    Value step;     // rows read forward before stepping back
  };

  // Plans.
  /// The number of rows that fill units of `unit` elements with about `wanted`
  /// columns; 1 if that would be too long for tables.
  Value getFold(OpBuilder &b, int64_t unit, int64_t wanted) const;
  void planSums(OpBuilder &b);
  bool mayBeNarrow() const;
  void planColumns(OpBuilder &b);
  void planElements(OpBuilder &b);
  /// Entries between the tables of neighbouring threads.
  Value getTableStride(OpBuilder &b, Value columns) const;
  void emitTables(OpBuilder &b);

  // First pass.
  const StageTables &ofStage() const { return tables.stages[stageNumber]; }
  void emitSums(OpBuilder &b);
  void emitBlocks(OpBuilder &b, const Share &share) const;
  void emitBlock(OpBuilder &b, Value block, Value tableOffset) const;
  Run getSummedRow(OpBuilder &b, Value row, Value tableOffset) const;
  /// Stores the sums of a block for other threads.
  void storeJoined(OpBuilder &b, Value block, Value tableOffset) const;
  /// The first row of a block.
  Value getStart(OpBuilder &b, Value block) const;
  struct BlockEnd {
    Value isLast; // an i1: whether it is the last block
    Value row;    // the row after its last one
  };
  BlockEnd getEnd(OpBuilder &b, Value block) const;
  /// An i1: whether one thread computes the per-channel values.
  Value areFewChannels(OpBuilder &b) const;
  void emitSumsOfChannels(OpBuilder &b) const;
  /// Adds the sums of `block` at `column` to `sums`.
  Accumulators addBlock(OpBuilder &b, Value block, const Piece &column,
                        ArrayRef<Accumulator> sums) const;
  /// Replaces the sums of the first block by the sums of all blocks.
  void joinBlocks(OpBuilder &b) const;
  /// Finishes `lanes` channels from `first` on, from the sums of `numBlocks`
  /// blocks.
  void finishChannels(OpBuilder &b, Value first, Value numBlocks) const;
  void emitEachChannelwise(OpBuilder &b) const;

  // First pass over the data for mean and squares (CpuRowMoments.cpp).
  void emitMoments(OpBuilder &b);
  void emitMomentsOfBlocks(OpBuilder &b, const Share &share);
  void emitMomentsOfBlock(OpBuilder &b, Value block, Value tableOffset);
  /// Adds the moments of `rows` to the moments of their columns. Their rows are
  /// in a cache when they are read again.
  void addMoments(OpBuilder &b, const ColumnRows &rows, Value before);
  /// The number of rows of `block` that have the column `column`, in f64.
  Value countElements(OpBuilder &b, Value block, Value column) const;
  void finishMomentsOfChannels(OpBuilder &b, Value first);

  // Second pass.
  void emitElementwise(OpBuilder &b, linalg::GenericOp generic,
                       const Share &share) const;
  Run getElementsRun(OpBuilder &b, Value row, Value tableOffset) const;
  /// The position of results of `generic` whose page is prefetched at `run`.
  Value getNext(OpBuilder &b, linalg::GenericOp generic, const Run &run) const;
  /// Computes the whole rows among `rows` if rows are narrow, and returns the
  /// others.
  Interval emitNarrowRows(OpBuilder &b, linalg::GenericOp generic,
                          Interval rows, Value tableOffset) const;
  void emitNarrowPieces(OpBuilder &b, linalg::GenericOp generic, Interval rows,
                        const Run &first, bool isStreaming) const;
  /// Computes a few elements of `run` without streaming.
  void emitShort(OpBuilder &b, linalg::GenericOp generic, Run run,
                 Interval range) const;
  /// The first thread computes the elements before the first row.
  void emitShift(OpBuilder &b, linalg::GenericOp generic, Value thread,
                 Value tableOffset) const;

  Value height, channels; // of the data
  Blocks blocks;
  Elements elements;
  GroupTables tables;
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUROWS_H
