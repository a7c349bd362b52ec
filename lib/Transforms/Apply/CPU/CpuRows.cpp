//===- CpuRows.cpp - the schedule rows ------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Each element of a row belongs to a different channel, and all data are read
// twice. A pass takes several rows as one (a *fold*) to fill vectors and lines.
// The first pass cuts the rows into *blocks*, each with its own sums; the
// number of blocks does not depend on the number of threads.
//
//===----------------------------------------------------------------------===//

#include "CpuRows.h"
#include "Apply/Sums.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The most blocks of the first pass, by the least number of bytes of data.
/// Powers of 2 give even shares for most numbers of threads.
static constexpr std::pair<int64_t, int64_t> kBlocks[] = {
    {128 << 10, 2}, {512 << 10, 4}, {1 << 20, 8}, {2 << 20, 16}, {4 << 20, 32}};
/// The least rows of a block whose moments are computed: joining the moments of
/// a block takes as long as adding about 20 rows.
static constexpr int64_t kLeastRowsOfMoments = 48;
/// Bytes between the results being stored and the pages being prefetched.
static constexpr int64_t kPagesAheadBytes = 2 * kPageBytes;
/// Fewer folded rows than this are less work than adding the sums of a fold.
static constexpr int64_t kFewFoldedRows = 8;
//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

Value Rows::getFold(OpBuilder &b, int64_t unit, int64_t wanted) const {
  IndexBuilder index = at(b);
  if (hasRowStrides)
    return index.constant(1);
  Value one = index.constant(1);
  Value repeats = getRepeats(b, channels, unit);
  Value most = index.max(
      index.div(index.constant(wanted), index.max(channels, one)), one);
  Value fold = index.mul(index.ceilDiv(most, repeats), repeats);
  Value isTooLong =
      index.compare(arith::CmpIPredicate::ugt, index.mul(fold, channels),
                    index.constant(4 * schedule.columns));
  return index.min(index.select(isTooLong, one, fold), index.max(height, one));
}

/// Plans short rows, whose sums stay in registers, and makes them whole vectors
/// unless that makes them long.
void Rows::planSums(OpBuilder &b) {
  IndexBuilder index = at(b);
  Value inWide = getFold(b, wide, wide);
  Value isShort =
      index.compare(arith::CmpIPredicate::ule, index.mul(inWide, channels),
                    index.constant(2 * wide));
  blocks.fold = index.select(isShort, inWide, getFold(b, lanes, wide));
  // The sums of the rows of a fold are added one after another.
  Value inLanes = index.max(
      index.div(index.constant(lanes), index.max(channels, index.constant(1))),
      index.constant(1));
  Value isFew =
      index.compare(arith::CmpIPredicate::ult, height,
                    index.mul(blocks.fold, index.constant(kFewFoldedRows)));
  blocks.fold =
      index.select(isFew, index.min(blocks.fold, inLanes), blocks.fold);
  blocks.columns = index.mul(blocks.fold, channels);
  blocks.rows = index.div(height, blocks.fold);
  blocks.restColumns =
      hasRowStrides ? index.constant(0)
                    : index.sub(count, index.mul(blocks.rows, blocks.columns));
  blocks.count = index.constant(1);
  for (auto [leastBytes, most] : kBlocks)
    blocks.count = index.select(
        index.compare(arith::CmpIPredicate::uge, bytes,
                      index.constant(leastBytes)),
        index.constant(std::min(most, schedule.rowBlocks)), blocks.count);
  if (moments)
    blocks.count = index.max(
        index.min(blocks.count,
                  index.div(blocks.rows, index.constant(kLeastRowsOfMoments))),
        index.constant(1));
  blocks.stride = index.add(blocks.columns, index.constant(wide));
}

/// Whether pieces of the only result fill lines, so that a shift aligns them.
bool Rows::mayBeNarrow() const {
  if (group.elementwise.size() != 1)
    return false;
  linalg::GenericOp generic = group.elementwise.front();
  Value result = getFlatResult(generic);
  return wide * getElementBytes(result) % kLineBytes == 0;
}

/// A row is one piece if whole rows of the data fill it, so that per-channel
/// operands stay in registers. Otherwise rows are long, so that the overhead
/// per row is small.
void Rows::planColumns(OpBuilder &b) {
  IndexBuilder index = at(b);
  elements.isNarrow = arith::ConstantIntOp::create(b, loc, 0, 1);
  Value wideColumns = index.constant(wide);
  Value fold =
      getFold(b, std::max(getLineElements(), wide), schedule.columns / 4);
  if (mayBeNarrow())
    elements.isNarrow =
        index.compare(arith::CmpIPredicate::eq,
                      index.mul(getFold(b, wide, wide), channels), wideColumns);
  elements.columns =
      index.select(elements.isNarrow, wideColumns, index.mul(fold, channels));
}

/// If results are streamed and rows fill whole lines, rows are counted from the
/// first line of the result; the elements before it come first.
void Rows::planElements(OpBuilder &b) {
  IndexBuilder index = at(b);
  Value zeroIndex = index.constant(0), one = index.constant(1);
  Value columns = elements.columns;
  Value result = getFlatResult(group.elementwise[0]);
  int64_t width = getElementBytes(result);
  elements.shift = zeroIndex;
  if (!hasRowStrides && !matchPattern(isStreamed, m_Zero())) {
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(b, loc, result);
    Value toLine = getElementsToLine(b, address, width);
    Value restBytes = index.rem(index.mul(columns, index.constant(width)),
                                index.constant(kLineBytes));
    Value fillsLines =
        index.compare(arith::CmpIPredicate::eq, restBytes, zeroIndex);
    elements.shift =
        index.min(index.select(fillsLines, toLine, zeroIndex), count);
  }
  elements.rows =
      index.ceilDiv(index.sub(count, elements.shift), index.max(columns, one));
  elements.step = getStep(b, columns);
}

Value Rows::getTableStride(OpBuilder &b, Value columns) const {
  IndexBuilder index = at(b);
  Value line = index.constant(kLineBytes);
  Value padded = index.add(columns, index.constant(2 * wide + kLineBytes));
  return index.mul(index.ceilDiv(padded, line), line);
}

/// Tables have entries for each thread, and tables of joined sums for each
/// block. Writing a line that another thread has read is slow, so joined sums
/// are written only once.
void Rows::emitTables(OpBuilder &b) {
  auto getEntries = [&](Value columns) {
    return at(b).mul(getShares(b), getTableStride(b, columns));
  };
  SmallVector<TableRequest> requests;
  if (!group.getReductions().empty()) {
    requests.push_back({TableUse::Reduction, getEntries(blocks.columns)});
    requests.push_back({TableUse::Sums, getEntries(blocks.columns)});
    if (moments)
      requests.push_back({TableUse::Moments, getEntries(blocks.columns)});
    Value ofBlocks = at(b).mul(blocks.count, blocks.stride);
    requests.push_back(
        {moments ? TableUse::JoinedMoments : TableUse::JoinedSums, ofBlocks});
  }
  requests.push_back({TableUse::Elementwise, getEntries(elements.columns)});
  tables = createTables(b, requests);
}

//===----------------------------------------------------------------------===//
// First pass
//===----------------------------------------------------------------------===//

Value Rows::getStart(OpBuilder &b, Value block) const {
  IndexBuilder index = at(b);
  return index.mul(index.div(index.mul(block, blocks.chains), blocks.count),
                   chainRows);
}

Rows::BlockEnd Rows::getEnd(OpBuilder &b, Value block) const {
  IndexBuilder index = at(b);
  Value next = index.add(block, index.constant(1));
  Value isLast = index.compare(arith::CmpIPredicate::eq, next, blocks.count);
  return {isLast, index.select(isLast, blocks.rows, getStart(b, next))};
}

Run Rows::getSummedRow(OpBuilder &b, Value row, Value tableOffset) const {
  Run run;
  run.ivs.resize(group.numLoops);
  run.base = at(b).mul(row, blocks.columns);
  if (hasRowStrides)
    run.ivs.front() = row;
  run.tables = &ofStage().reduction.inOrder;
  run.pairs = &ofStage().reduction.pairs;
  run.tableOffset = tableOffset;
  return run;
}

void Rows::emitBlock(OpBuilder &b, Value block, Value tableOffset) const {
  IndexBuilder index = at(b);
  Value columns = blocks.columns;
  auto getRun = [&](OpBuilder &nested, Value row) {
    return getSummedRow(nested, row, tableOffset);
  };
  auto [isLast, end] = getEnd(b, block);
  emitZeroSums(b, ofStage().sums, tableOffset, columns);
  emitColumnSums(
      b, ofStage().sums,
      {getRun,
       {getStart(b, block), end},
       columns,
       tableOffset,
       hasRowStrides ? RowOrder::Apart : RowOrder::Adjacent,
       /*stride=*/columns,
       /*mayOverrun=*/!hasDataResults(current.reduction) && !hasRowStrides});
  // The rest of the data is less than a row.
  if (!matchPattern(blocks.restColumns, m_Zero())) {
    Value endOfRest = index.select(
        isLast, index.add(blocks.rows, index.constant(1)), blocks.rows);
    emitColumnSums(b, ofStage().sums,
                   {getRun,
                    {blocks.rows, endOfRest},
                    blocks.restColumns,
                    tableOffset,
                    RowOrder::Apart,
                    /*stride=*/Value()});
  }
  storeJoined(b, block, tableOffset);
}

void Rows::storeJoined(OpBuilder &b, Value block, Value tableOffset) const {
  Value entry = at(b).mul(block, blocks.stride);
  emitPieces(b, {constant(b, 0), blocks.columns}, wide,
             [&](OpBuilder &nested, const Piece &piece) {
               // Tables are padded, and need no mask.
               Value from = at(nested).add(tableOffset, piece.position);
               Value to = at(nested).add(entry, piece.position);
               storeEntries(
                   nested,
                   joinEntries(nested, ofStage().sums, {from, piece.lanes}),
                   ofStage().joined, {to, piece.lanes});
             });
}

void Rows::emitBlocks(OpBuilder &b, const Share &share) const {
  Value tableOffset =
      at(b).mul(share.number, getTableStride(b, blocks.columns));
  fillByChannel(b, ofStage().reduction.inOrder,
                {tableOffset, channels, getColumnsRead(b, blocks.columns)});
  fillSumPairs(b, tables, tableOffset, blocks.columns);
  emitFor(b, share.iterations, [&](OpBuilder &nested, Value block) {
    emitBlock(nested, block, tableOffset);
  });
}

Accumulators Rows::addBlock(OpBuilder &b, Value block, const Piece &column,
                            ArrayRef<Accumulator> sums) const {
  IndexBuilder index = at(b);
  Value entry = index.add(column.position, index.mul(block, blocks.stride));
  return addCompensated(
      b, loc, sums, loadEntries(b, ofStage().joined, {entry, column.lanes}));
}

void Rows::joinBlocks(OpBuilder &b) const {
  Interval columns = {constant(b, 0), blocks.columns};
  emitPieces(b, columns, wide, [&](OpBuilder &nested, const Piece &piece) {
    Accumulators sums = emitAccumulatorLoop(
        nested, {constant(nested, 0), blocks.count},
        zeroSums(nested, piece.lanes),
        [&](OpBuilder &inBlock, Value block, ArrayRef<Accumulator> carried) {
          return addBlock(inBlock, block, piece, carried);
        });
    // Tables are padded, and need no mask.
    storeEntries(nested, joinErrors(nested, sums), ofStage().joined,
                 {piece.position, piece.lanes});
  });
}

void Rows::finishChannels(OpBuilder &b, Value first, Value numBlocks) const {
  IndexBuilder index = at(b);
  Value zeroIndex = index.constant(0);
  // Adds up the blocks and the rows of a fold.
  Accumulators sums = emitAccumulatorLoop(
      b, {zeroIndex, numBlocks}, zeroSums(b, lanes),
      [&](OpBuilder &inBlock, Value block, ArrayRef<Accumulator> carried) {
        return emitAccumulatorLoop(
            inBlock, {zeroIndex, blocks.fold}, carried,
            [&](OpBuilder &inRow, Value row, ArrayRef<Accumulator> rowSums) {
              Value column = at(inRow).add(first, at(inRow).mul(row, channels));
              return addBlock(inRow, block, {column, lanes}, rowSums);
            });
      });
  SmallVector<Value> totals = joinErrors(b, sums);
  Value width = index.min(index.constant(lanes), index.sub(channels, first));
  if (hasChannelVectors()) {
    Piece piece = {first, lanes, createMask(b, width, lanes)};
    storeSums(b, piece, totals);
    emitChannelwise(b, piece);
    return;
  }
  emitFor(b, {zeroIndex, width}, [&](OpBuilder &nested, Value lane) {
    SmallVector<Value> scalars;
    for (Value total : totals)
      scalars.push_back(vector::ExtractOp::create(
          nested, loc, total, ArrayRef<OpFoldResult>{lane}));
    Value channel = at(nested).add(first, lane);
    storeSums(nested, channel, scalars);
    emitChannelwise(nested, channel);
  });
}

Value Rows::areFewChannels(OpBuilder &b) const {
  return at(b).compare(arith::CmpIPredicate::ule, channels,
                       constant(b, kSerialChannels));
}

/// Computes the sums of each channel from the sums of blocks and of a fold's
/// rows. If few channels have many of these, the blocks are joined first.
void Rows::emitSumsOfChannels(OpBuilder &b) const {
  IndexBuilder index = at(b);
  Value one = index.constant(1);
  Value isSerial = areFewChannels(b);
  Value numBlocks = index.select(isSerial, one, blocks.count);
  emitShares(
      b, index.ceilDiv(channels, index.constant(lanes)),
      [&](OpBuilder &nested, const Share &share) {
        IndexBuilder inside = at(nested);
        Value isFirst = inside.compare(arith::CmpIPredicate::eq, share.number,
                                       inside.constant(0));
        Value hasBlocks =
            inside.compare(arith::CmpIPredicate::ugt, blocks.count, one);
        emitIf(nested,
               inside.bitAnd(isSerial, inside.bitAnd(isFirst, hasBlocks)),
               [&](OpBuilder &first) { joinBlocks(first); });
        emitFor(nested, share.iterations, [&](OpBuilder &in, Value piece) {
          Value first = at(in).mul(piece, constant(in, lanes));
          finishChannels(in, first, numBlocks);
        });
      },
      isSerial);
}

void Rows::emitSums(OpBuilder &b) {
  blocks.chains = at(b).div(blocks.rows, chainRows);
  emitShares(b, blocks.count, [&](OpBuilder &nested, const Share &share) {
    emitBlocks(nested, share);
  });
  emitSumsOfChannels(b);
}

/// Emits the per-channel generics if there are no sums.
void Rows::emitEachChannelwise(OpBuilder &b) const {
  Interval all = {constant(b, 0), channels};
  if (hasChannelVectors())
    emitPieces(b, all, wide, [&](OpBuilder &nested, const Piece &piece) {
      emitChannelwise(nested, piece);
    });
  else
    emitFor(b, all, [&](OpBuilder &nested, Value channel) {
      emitChannelwise(nested, channel);
    });
}

//===----------------------------------------------------------------------===//
// Second pass
//===----------------------------------------------------------------------===//

Run Rows::getElementsRun(OpBuilder &b, Value row, Value tableOffset) const {
  IndexBuilder index = at(b);
  Run run;
  run.ivs.resize(group.numLoops);
  run.base = index.add(elements.shift, index.mul(row, elements.columns));
  if (hasRowStrides)
    run.ivs.front() = row;
  run.tables = &tables.elementwise.inOrder;
  run.pairs = &tables.elementwise.pairs;
  run.tableOffset = index.add(tableOffset, elements.shift);
  return run;
}

Value Rows::getNext(OpBuilder &b, linalg::GenericOp generic,
                    const Run &run) const {
  Value result = getFlatResult(generic);
  return at(b).add(run.base,
                   constant(b, kPagesAheadBytes / getElementBytes(result)));
}

void Rows::emitShift(OpBuilder &b, linalg::GenericOp generic, Value thread,
                     Value tableOffset) const {
  if (matchPattern(elements.shift, m_Zero()))
    return;
  IndexBuilder index = at(b);
  Value zeroIndex = index.constant(0);
  Run run = getElementsRun(b, zeroIndex, tableOffset);
  run.base = zeroIndex;
  run.tableOffset = tableOffset;
  Value isFirst = index.compare(arith::CmpIPredicate::eq, thread, zeroIndex);
  emitShort(b, generic, run,
            {zeroIndex, index.select(isFirst, elements.shift, zeroIndex)});
}

void Rows::emitShort(OpBuilder &b, linalg::GenericOp generic, Run run,
                     Interval range) const {
  loadUniform(b, generic, run);
  emitMasked(b, range, [&](OpBuilder &nested, const Piece &piece) {
    IRMapping mapping = clonePiece(nested, generic, run, piece);
    storePiece(nested, generic, run, piece, mapping, /*isStreaming=*/false);
  });
}

void Rows::emitNarrowPieces(OpBuilder &b, linalg::GenericOp generic,
                            Interval rows, const Run &first,
                            bool isStreaming) const {
  emitFor(b, rows, [&](OpBuilder &nested, Value row) {
    Run run = first;
    // As `elements.columns` is `wide`, the product needs no dynamic size.
    run.base = at(nested).add(elements.shift,
                              at(nested).mul(row, constant(nested, wide)));
    if (hasRowStrides)
      run.ivs.front() = row;
    Piece piece = {constant(nested, 0), wide};
    if (isStreaming && !hasRowStrides)
      prefetchPages(nested, getFlatResult(generic),
                    getNext(nested, generic, run));
    IRMapping mapping = clonePiece(nested, generic, run, piece);
    storePiece(nested, generic, run, piece, mapping, isStreaming);
  });
}

Interval Rows::emitNarrowRows(OpBuilder &b, linalg::GenericOp generic,
                              Interval rows, Value tableOffset) const {
  if (matchPattern(elements.isNarrow, m_Zero()))
    return rows;
  IndexBuilder index = at(b);
  Value whole =
      index.div(index.sub(count, elements.shift), index.constant(wide));
  Value end = index.max(index.min(whole, rows.to), rows.from);
  end = index.select(elements.isNarrow, end, rows.from);
  Run first = getElementsRun(b, rows.from, tableOffset);
  loadUniform(b, generic, first);
  readOrderedEntries(b, generic, {index.constant(0), wide}, first);
  Value isStreaming = isStoredPast(b, generic);
  auto emitVersion = [&](bool streams) {
    return [&, streams](OpBuilder &nested) {
      emitNarrowPieces(nested, generic, {rows.from, end}, first, streams);
    };
  };
  emitIf(b, isStreaming, emitVersion(true), emitVersion(false));
  return {end, rows.to};
}

void Rows::emitElementwise(OpBuilder &b, linalg::GenericOp generic,
                           const Share &share) const {
  IndexBuilder index = at(b);
  Value columns = elements.columns;
  Value tableOffset = index.mul(share.number, getTableStride(b, columns));
  if (generic == group.elementwise.front()) {
    fillByChannel(b, tables.elementwise.inOrder,
                  {tableOffset, channels, index.add(columns, elements.shift)});
    // Pieces of narrow rows are converted to the order of pairs in registers.
    fillElementPairs(
        b, tables, index.add(tableOffset, elements.shift),
        index.select(elements.isNarrow, index.constant(0), columns));
  }
  emitShift(b, generic, share.number, tableOffset);
  Value zeroIndex = index.constant(0);
  auto emitStep = [&](OpBuilder &nested, Interval rows) {
    Interval others = emitNarrowRows(nested, generic, rows, tableOffset);
    emitFor(nested, others, [&](OpBuilder &inRow, Value row) {
      Run run = getElementsRun(inRow, row, tableOffset);
      Value length = at(inRow).min(columns, at(inRow).sub(count, run.base));
      // Whole rows are done. At most the last, shorter one is left.
      if (matchPattern(elements.isNarrow, m_One()))
        return emitShort(inRow, generic, run, {zeroIndex, length});
      run.next = getNext(inRow, generic, run);
      run.prefetchDistance = constant(inRow, getPageElements(generic));
      emitElements(inRow, generic, run, {zeroIndex, length});
    });
  };
  emitStepsBack(b, share.iterations, elements.step, emitStep);
}

void Rows::emit(OpBuilder &b) {
  planColumns(b);
  if (!group.getReductions().empty())
    planSums(b);
  emitTables(b);
  emitStages([&] { emitMoments(b); },
             [&] {
               if (current.reduction)
                 emitSums(b);
               else
                 emitEachChannelwise(b);
             });
  if (!group.elementwise.empty())
    planElements(b);
  for (linalg::GenericOp generic : group.elementwise)
    emitShares(b, elements.rows, [&](OpBuilder &nested, const Share &share) {
      emitElementwise(nested, generic, share);
    });
  deallocate(b, tables.memory);
}

void mlir::bngrad::emitRows(OpBuilder &b, const CpuLoops &shared) {
  Rows(shared).emit(b);
}
