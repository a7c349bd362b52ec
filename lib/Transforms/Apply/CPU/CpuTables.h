//===- CpuTables.h - base of the schedules with tables ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Under `tiles` and `rows`, the elements of a run belong to several channels.
// Per-channel operands are loaded from tables with an entry for each element of
// a run, a *column*. Sums are added up by column, over successive runs
// (*rows*), and finally over the columns of a channel.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUTABLES_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUTABLES_H

#include "CpuLoops.h"

namespace mlir::bngrad {

/// Sums by column.
struct SumTables {
  Accumulators sums;
  SmallVector<Value> chains; // for each sum, the terms of the current chain
};

/// Sums by column that other threads read, each with its error added.
using JoinedSums = SmallVector<Value>;

/// The tables of the per-channel operands of some generics.
struct OperandTables {
  ChannelTables inOrder; // of memory
  ChannelTables pairs;   // the same in the order of pairs, if one uses it
};

/// The tables of a stage.
struct StageTables {
  SumTables sums;
  JoinedSums joined;
  OperandTables reduction;
};

/// The tables of a group, in one allocation.
struct GroupTables {
  TableMemory memory;
  SmallVector<StageTables, 0> stages;
  OperandTables elementwise;
  SmallVector<Value> moments;       // the sum and the squares
  SmallVector<Value> joinedMoments; // the same, for other threads
};

/// The purpose of some tables. A request for Sums, JoinedSums or Reduction
/// covers all stages.
enum class TableUse {
  Sums,
  JoinedSums,
  Reduction,
  Elementwise,
  Moments,
  JoinedMoments
};
struct TableRequest {
  TableUse use;
  Value entries; // of each table
};

/// How rows lie in memory.
enum class RowOrder {
  Adjacent, // each begins where the previous one ends
  Apart,    // with gaps, or a single row
  OfTile    // one in each sample
};

/// Rows whose terms are added up by column.
struct ColumnRows {
  function_ref<Run(OpBuilder &, Value)> getRun; // by row
  Interval rows;
  Value columns; // of a row
  Value entry;   // of column 0 in the sum tables
  RowOrder order;
  Value stride; // elements from a row to the next; null if apart
  /// Whether a piece may overrun into the next row, which has the same
  /// channels: these terms go to unused columns.
  bool mayOverrun = false;
};

/// The rows of a tile, one for each of its channels.
struct TileRows {
  Value firstChannel;
  Value count;
  Value size; // elements of a row
};

/// The entries of a table for rows with an element of each channel.
struct ChannelEntries {
  Value first;
  Value channels;
  Value columns; // of a row or of several
};

class TableLoops : public CpuLoops {
protected:
  explicit TableLoops(const CpuLoops &shared) : CpuLoops(shared) {}

  // Tables.
  /// Allocates tables, in the order of `requests`.
  GroupTables createTables(OpBuilder &b, ArrayRef<TableRequest> requests) const;
  /// Whether `operand` is a per-channel operand that is read.
  bool isTabled(linalg::GenericOp generic, OpOperand *operand) const;
  /// The per-channel operands of `generics`, without the sums.
  llvm::SetVector<Value>
  getChannelOperands(ArrayRef<linalg::GenericOp> generics) const;
  /// Fills tables: all entries of row i get the value of channel `firstChannel
  /// + i`.
  void fillByRow(OpBuilder &b, const ChannelTables &tables,
                 const TileRows &rows) const;
  /// Fills `entries` of tables with the values of all channels, repeated. Also
  /// fills a vector and a line more, for pieces that overrun.
  void fillByChannel(OpBuilder &b, const ChannelTables &tables,
                     const ChannelEntries &entries) const;
  /// Reads the entries of a piece from the tables of `run`, which then serves
  /// for this piece only.
  void readEntries(OpBuilder &b, linalg::GenericOp generic, const Piece &piece,
                   Run &run) const;
  /// The same, in the order of pairs if `generic` uses it.
  void readOrderedEntries(OpBuilder &b, linalg::GenericOp generic,
                          const Piece &piece, Run &run) const;
  /// Whether an earlier stage has just read the rows of the current stage, so
  /// that they are in a core's own cache.
  bool areReadAgain() const {
    return moments && stageNumber == moments->sum + 1;
  }
  /// An i1: whether rows of `columns` are narrow.
  Value areNarrow(OpBuilder &b, Value columns) const;
  /// Copies the entries of whole pieces of `columns`, from `first` on, to the
  /// pairs of the current stage's reduction for wide rows, as `emitColumnSums`
  /// then reads them there.
  void fillSumPairs(OpBuilder &b, const GroupTables &tables, Value first,
                    Value columns) const;
  /// The same for `tables.elementwise.pairs` if results are not streamed, as
  /// `emitElements` then reads them there.
  void fillElementPairs(OpBuilder &b, const GroupTables &tables, Value first,
                        Value columns) const;
  /// The number of elements in a line of the narrowest result.
  int64_t getLineElements() const;
  /// The number of times that `elements` must be repeated to fill whole units,
  /// each a power of 2 of elements.
  Value getRepeats(OpBuilder &b, Value elements, int64_t unit) const;

  // Sums by column (CpuColumnSums.cpp).
  void emitZeroSums(OpBuilder &b, const SumTables &tables, Value entry,
                    Value columns) const;
  /// Adds the terms of `rows` to the sums of their columns.
  void emitColumnSums(OpBuilder &b, const SumTables &tables,
                      const ColumnRows &rows) const;
  /// The sums of a piece of the sum tables, with their errors added.
  SmallVector<Value> joinEntries(OpBuilder &b, const SumTables &tables,
                                 const Piece &piece) const {
    return joinErrors(
        b, fromCarried(loadEntries(b, toCarried(tables.sums), piece)));
  }
  SmallVector<Value> loadEntries(OpBuilder &b, ArrayRef<Value> tables,
                                 const Piece &piece) const;
  void storeEntries(OpBuilder &b, ValueRange entries, ArrayRef<Value> tables,
                    const Piece &piece) const;

  /// The columns that one piece reads for a row of `columns`, which it may
  /// overrun; `columns` for a long row.
  Value getColumnsRead(OpBuilder &b, Value columns) const;

private:
  /// The operands of the group's tables, without tables.
  GroupTables listOperands() const;
  /// Copies the entries of whole pieces of `columns`, from `first` on, to
  /// `tables.pairs`.
  void fillPairs(OpBuilder &b, const OperandTables &tables, Value first,
                 Value columns) const;
  /// Copies the values of all channels to the first of `entries`.
  void copyChannels(OpBuilder &b, Value operand, Value table,
                    const ChannelEntries &entries) const;
  /// Fills short tables of few channels by shuffles. False, without any change,
  /// for other tables.
  bool fillFromRegister(OpBuilder &b, const ChannelTables &tables,
                        const ChannelEntries &entries) const;
  /// Adds the terms of a piece of a row to `chains`, in the lane order in which
  /// the reduction computes it. `entries` is a run with the entries of the
  /// piece and the prefetch distance.
  SmallVector<Value> addRow(OpBuilder &b, const ColumnRows &chain, Value row,
                            const Piece &piece, const Run &entries,
                            ValueRange chains) const;
  /// The chains of a piece, converted to the order of memory.
  SmallVector<Value> inMemoryOrder(OpBuilder &b, const Piece &piece,
                                   ValueRange chains) const;
  /// Adds `chains`, in the order of memory, to the entries of a piece of
  /// `tables.sums`. Goes register by register, as LLVM would interleave several
  /// additions and run out of registers.
  void addToSums(OpBuilder &b, const SumTables &tables, const Piece &entries,
                 ValueRange chains) const;
  /// Adds the chain in `pieces` of its rows to `tables.sums`, keeping its terms
  /// in registers.
  void addPieces(OpBuilder &b, const SumTables &tables, const ColumnRows &chain,
                 ArrayRef<Piece> pieces) const;
  /// The same for all columns as one piece, which may overrun its row, if a
  /// piece is long enough; otherwise emits `otherwise`.
  void addOverrunning(OpBuilder &b, const SumTables &tables,
                      const ColumnRows &chain, Body otherwise) const;
  /// The same for all columns of rows that fit into registers.
  void addNarrowRows(OpBuilder &b, const SumTables &tables,
                     const ColumnRows &chain) const;
  /// An i1: whether several wide rows of `chain` are added at once. Rows of
  /// tiles are, and adjacent rows that are in a cache or fill pages.
  Value areAddedAtOnce(OpBuilder &b, const ColumnRows &chain) const;
  /// The distance at which the wide rows of `chain` are prefetched; null or 0
  /// if they are not.
  Value getWideDistance(OpBuilder &b, const ColumnRows &chain,
                        Value areAtOnce) const;
  /// Like addNarrowRows for wide rows, with the terms in `tables.chains`, in
  /// the order of pairs if the reduction uses it.
  void addWideRows(OpBuilder &b, const SumTables &tables,
                   const ColumnRows &chain) const;
  /// Adds the terms of `numRows` of these rows to the chains, piece by piece.
  void addWidePieces(OpBuilder &b, const SumTables &tables,
                     const ColumnRows &chain, Value firstRow, int64_t numRows,
                     Value distance) const;
  /// Adds the chains to the sums, and sets them to 0.
  void endChains(OpBuilder &b, const SumTables &tables,
                 const ColumnRows &rows) const;
  /// The number of columns for which there are registers.
  int64_t getMostColumns() const {
    // CPUs with long registers have 32 of them, others half as many.
    return schedule.vectorBits >= 512 || numSums() == 1 ? 2 * wide : wide;
  }
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUTABLES_H
