//===- CpuTables.h - base of the schedules with tables ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Under `tiles` and `rows`, the elements of a run belong to several channels.
// Per-channel operands are loaded from tables that have an entry for each
// element of a run, a *column*; sums are added up by column, over the runs
// (*rows*) that lie below each other, and in the end over the columns of a
// channel.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUTABLES_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUTABLES_H

#include "CpuLoops.h"

namespace mlir::bngrad {

/// Sums by column.
struct SumTables {
  SmallVector<Value> sums;   // of each sum: it, and its error
  SmallVector<Value> chains; // of each sum: the terms of the current chain
};

/// Sums by column that other threads read: of each sum, with its error added.
using JoinedSums = SmallVector<Value>;

/// The tables of the per-channel operands of some generics.
struct OperandTables {
  ChannelTables inOrder; // of memory
  ChannelTables pairs;   // the same in the order of pairs, if one takes it
};

/// The tables of a group, in one allocation.
struct GroupTables {
  TableMemory memory;
  SumTables sums;
  JoinedSums joined;
  OperandTables reduction;
  OperandTables elementwise;
};

/// The purpose of some tables.
enum class TableUse { Sums, JoinedSums, Reduction, Elementwise };
struct TableRequest {
  TableUse use;
  Value entries; // of each table
};

/// How rows lie in memory.
enum class RowOrder {
  Adjacent, // each begins where the one before ends
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
  Value stride; // elements from a row to the next; null if they are apart
  /// Each row is followed by another of the same channels, so that a piece may
  /// reach into it: its terms go to columns that are not used.
  bool mayOverrun = false;
};

/// The rows of a tile, one for each of its channels.
struct TileRows {
  Value firstChannel;
  Value count;
  Value size; // elements of a row
};

/// The entries of a table for rows that hold an element of each channel.
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
  /// Whether `operand` is a per-channel one that is read.
  bool isTabled(linalg::GenericOp generic, OpOperand *operand) const;
  /// The per-channel operands of `generics`, without the sums.
  llvm::SetVector<Value>
  getChannelOperands(ArrayRef<linalg::GenericOp> generics) const;
  /// Fills tables: the value of channel `firstChannel + i` goes to all entries
  /// of row i.
  void fillByRow(OpBuilder &b, const ChannelTables &tables,
                 const TileRows &rows) const;
  /// Fills `entries` of tables with the values of all channels, repeated. A
  /// vector and a line more are filled, for pieces that overrun.
  void fillByChannel(OpBuilder &b, const ChannelTables &tables,
                     const ChannelEntries &entries) const;
  /// Reads the entries of a piece from the tables of `run`, which may then be
  /// computed at this piece only.
  void readEntries(OpBuilder &b, linalg::GenericOp generic, const Piece &piece,
                   Run &run) const;
  /// The same, in the order of pairs if `generic` takes it.
  void readOrderedEntries(OpBuilder &b, linalg::GenericOp generic,
                          const Piece &piece, Run &run) const;
  /// An i1: rows of `columns` are narrow.
  Value areNarrow(OpBuilder &b, Value columns) const;
  /// Copies the entries of whole pieces of `columns`, from `first` on, to
  /// `tables.reduction.pairs`, if `emitColumnSums` reads them there: for wide
  /// rows.
  void fillSumPairs(OpBuilder &b, const GroupTables &tables, Value first,
                    Value columns) const;
  /// The same for `tables.elementwise.pairs`, if `emitElements` reads them
  /// there: where results are not streamed.
  void fillElementPairs(OpBuilder &b, const GroupTables &tables, Value first,
                        Value columns) const;
  /// Elements of a line in the narrowest result.
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
    return joinErrors(b, loadEntries(b, tables.sums, piece));
  }
  SmallVector<Value> loadEntries(OpBuilder &b, ArrayRef<Value> tables,
                                 const Piece &piece) const;
  void storeEntries(OpBuilder &b, ValueRange entries, ArrayRef<Value> tables,
                    const Piece &piece) const;

  /// The columns that one piece reads for a row of `columns`, which it may
  /// overrun; those of a long row.
  Value getColumnsRead(OpBuilder &b, Value columns) const;

private:
  /// Copies the entries of whole pieces of `columns`, from `first` on, to
  /// `tables.pairs`.
  void fillPairs(OpBuilder &b, const OperandTables &tables, Value first,
                 Value columns) const;
  /// Copies the values of all channels to the first of `entries`.
  void copyChannels(OpBuilder &b, Value operand, Value table,
                    const ChannelEntries &entries) const;
  /// Fills short tables of few channels by shuffles. False, without any change,
  /// for others.
  bool fillFromRegister(OpBuilder &b, const ChannelTables &tables,
                        const ChannelEntries &entries) const;
  /// Adds the terms of a piece of a row to `chains`, which are in the order in
  /// which the reduction computes it. `entries`: a run with those of the piece,
  /// and the prefetch distance.
  SmallVector<Value> addRow(OpBuilder &b, const ColumnRows &chain, Value row,
                            const Piece &piece, const Run &entries,
                            ValueRange chains) const;
  /// The chains of a piece in the order of memory.
  SmallVector<Value> inMemoryOrder(OpBuilder &b, const Piece &piece,
                                   ValueRange chains) const;
  /// Adds `chains`, which are in the order of memory, to the entries of a piece
  /// of `tables.sums`: register by register, as LLVM would interleave the
  /// additions of several, which need more registers than there are.
  void addToSums(OpBuilder &b, const SumTables &tables, const Piece &entries,
                 ValueRange chains) const;
  /// Adds the chain in `pieces` of its rows to `tables.sums`; its terms stay in
  /// registers.
  void addPieces(OpBuilder &b, const SumTables &tables, const ColumnRows &chain,
                 ArrayRef<Piece> pieces) const;
  /// The same for all columns, as one piece that may overrun its row, if a
  /// piece is long enough; emits `otherwise` for the case that none is.
  void addOverrunning(OpBuilder &b, const SumTables &tables,
                      const ColumnRows &chain, Body otherwise) const;
  /// The same for all columns of rows that fit into registers.
  void addNarrowRows(OpBuilder &b, const SumTables &tables,
                     const ColumnRows &chain) const;
  /// An i1: the wide rows of `chain` are added several at once, as are those of
  /// tiles, and adjacent ones that are in a cache or fill pages.
  Value areAddedAtOnce(OpBuilder &b, const ColumnRows &chain) const;
  /// The distance at which the wide rows of `chain` are prefetched; null or 0:
  /// they are not.
  Value getWideDistance(OpBuilder &b, const ColumnRows &chain,
                        Value areAtOnce) const;
  /// The same as addNarrowRows for wide rows, with the terms in
  /// `tables.chains`, in the order of pairs if the reduction takes it.
  void addWideRows(OpBuilder &b, const SumTables &tables,
                   const ColumnRows &chain) const;
  /// Adds the terms of `numRows` of these rows to the chains, piece by piece.
  void addWidePieces(OpBuilder &b, const SumTables &tables,
                     const ColumnRows &chain, Value firstRow, int64_t numRows,
                     Value distance) const;
  /// Adds the chains to the sums, and sets them to 0.
  void endChains(OpBuilder &b, const SumTables &tables,
                 const ColumnRows &rows) const;
  /// Columns that there are registers for.
  int64_t getMostColumns() const {
    // CPUs with long registers have 32 of them.
    return schedule.vectorBits >= 512 ? 2 * wide : wide;
  }
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_CPU_CPUTABLES_H
