//===- CpuRowMoments.cpp - mean and squares under rows --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first pass of `rows` for a mean and squares about it. A thread reads a
// few rows twice while they are in a cache, and joins their moments to those of
// its block, column by column (CpuMoments.cpp).
//
//===----------------------------------------------------------------------===//

#include "CpuRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

/// About how many elements are read before they are read again: 256 KiB of f32.
static constexpr int64_t kElementsReadAgain = 64 << 10;

/// The tables of one kind that `operand` reads.
static Value getTable(const StageTables &stage, OpOperand *operand) {
  return stage.reduction.inOrder.lookup(operand->get());
}

/// The row that is read in place of `row`, one of `rows`: the two halves of
/// `rows` take turns, as a core reads two places of memory up to 1.6 times
/// faster than one.
static Value takeTurns(IndexBuilder index, Interval rows, Value row) {
  Value two = index.constant(2);
  Value half = index.div(index.sub(rows.to, rows.from), two);
  Value number = index.sub(row, rows.from);
  Value turn = index.add(index.div(number, two),
                         index.mul(index.rem(number, two), half));
  // The last one of an odd number of rows belongs to no half.
  Value isOfHalf =
      index.compare(arith::CmpIPredicate::ult, number, index.mul(half, two));
  return index.add(rows.from, index.select(isOfHalf, turn, number));
}

void Rows::addMoments(OpBuilder &b, const ColumnRows &rows, Value before) {
  Interval columns = {constant(b, 0), rows.columns};
  Value vector = constant(b, lanes);
  auto getEntry = [&](OpBuilder &nested, Value column) -> Piece {
    return {at(nested).add(rows.entry, column), lanes};
  };
  auto emitSumsOf = [&](const ColumnRows &inOrder) {
    emitZeroSums(b, ofStage().sums, rows.entry, rows.columns);
    emitColumnSums(b, ofStage().sums, inOrder);
  };
  auto getRunInTurns = [&](OpBuilder &nested, Value row) {
    return rows.getRun(nested, takeTurns(at(nested), rows.rows, row));
  };
  ColumnRows inTurns = rows;
  inTurns.getRun = getRunInTurns;
  const StageTables &ofSum = tables.stages[moments->sum];
  const StageTables &ofSquares = tables.stages[moments->sum + 1];
  Value firsts = getTable(ofSum, moments->first);
  Value centers = getTable(ofSquares, moments->center);
  Value elements =
      momentsAt(b).toDouble(at(b).sub(rows.rows.to, rows.rows.from));

  enterStage(moments->sum);
  emitSumsOf(inTurns);
  emitFor(b, columns, vector, [&](OpBuilder &nested, Value column) {
    Piece entry = getEntry(nested, column);
    Value sum = joinEntries(nested, ofSum.sums, entry).front();
    Value first = load(nested, firsts, entry.position, entry);
    Value center = momentsAt(nested).getBlockCenter(first, sum, elements);
    store(nested, center, centers, entry.position, entry);
  });

  enterStage(moments->sum + 1);
  fillSumPairs(b, tables, rows.entry, rows.columns);
  emitSumsOf(rows);
  Value countBefore = momentsAt(b).toDouble(before);
  emitFor(b, columns, vector, [&](OpBuilder &nested, Value column) {
    Piece entry = getEntry(nested, column);
    SmallVector<Value> sums = joinEntries(nested, ofSquares.sums, entry);
    BlockSums block = {load(nested, firsts, entry.position, entry),
                       load(nested, centers, entry.position, entry),
                       sums[moments->difference], sums[moments->square],
                       elements};
    SmallVector<Value> sofar = loadEntries(nested, tables.moments, entry);
    MomentsBuilder math = momentsAt(nested);
    CountedMoments joined = math.join({{sofar[0], sofar[1]}, countBefore},
                                      {math.getBlockMoments(block), elements});
    SmallVector<Value> next = {joined.moments.sum, joined.moments.squares};
    // Columns past the last one may be columns of longer rows.
    Value isColumn =
        createMask(nested, at(nested).sub(rows.columns, column), lanes);
    for (auto [value, before] : llvm::zip_equal(next, sofar))
      value = arith::SelectOp::create(nested, loc, isColumn, value, before);
    storeEntries(nested, next, tables.moments, entry);
  });
}

void Rows::emitMomentsOfBlock(OpBuilder &b, Value block, Value tableOffset) {
  IndexBuilder index = at(b);
  auto forEachVector = [&](function_ref<void(OpBuilder &, Value)> body) {
    emitFor(b, {index.constant(0), blocks.columns}, index.constant(lanes),
            body);
  };
  Moments none = momentsAt(b).none(lanes).moments;
  forEachVector([&](OpBuilder &nested, Value column) {
    Piece entry = {at(nested).add(tableOffset, column), lanes};
    storeEntries(nested, {none.sum, none.squares}, tables.moments, entry);
  });
  auto getRun = [&](OpBuilder &nested, Value row) {
    return getSummedRow(nested, row, tableOffset);
  };
  Value start = getStart(b, block);
  BlockEnd blockEnd = getEnd(b, block);
  Value end = blockEnd.row;
  // Whole chains of rows.
  Value step = index.div(
      index.constant(kElementsReadAgain),
      index.max(index.mul(blocks.columns, chainRows), index.constant(1)));
  step = index.mul(index.max(step, index.constant(1)), chainRows);
  emitFor(b, {start, end}, step, [&](OpBuilder &nested, Value from) {
    Value to = at(nested).min(at(nested).add(from, step), end);
    addMoments(nested,
               {getRun,
                {from, to},
                blocks.columns,
                tableOffset,
                hasRowStrides ? RowOrder::Apart : RowOrder::Adjacent,
                /*stride=*/blocks.columns,
                /*mayOverrun=*/!hasRowStrides},
               at(nested).sub(from, start));
  });
  // The rest of the data is less than a row.
  if (!matchPattern(blocks.restColumns, m_Zero()))
    emitIf(b, blockEnd.isLast, [&](OpBuilder &nested) {
      Value next = at(nested).add(blocks.rows, constant(nested, 1));
      addMoments(nested,
                 {getRun,
                  {blocks.rows, next},
                  blocks.restColumns,
                  tableOffset,
                  RowOrder::Apart,
                  /*stride=*/Value()},
                 at(nested).sub(end, start));
    });
  Value joined = index.mul(block, blocks.stride);
  forEachVector([&](OpBuilder &nested, Value column) {
    Piece from = {at(nested).add(tableOffset, column), lanes};
    Piece to = {at(nested).add(joined, column), lanes};
    storeEntries(nested, loadEntries(nested, tables.moments, from),
                 tables.joinedMoments, to);
  });
}

void Rows::emitMomentsOfBlocks(OpBuilder &b, const Share &share) {
  Value tableOffset =
      at(b).mul(share.number, getTableStride(b, blocks.columns));
  for (unsigned stage : {moments->sum, moments->sum + 1}) {
    enterStage(stage);
    fillByChannel(b, ofStage().reduction.inOrder,
                  {tableOffset, channels, getColumnsRead(b, blocks.columns)});
  }
  enterStage(moments->sum);
  fillSumPairs(b, tables, tableOffset, blocks.columns);
  emitFor(b, share.iterations, [&](OpBuilder &nested, Value block) {
    emitMomentsOfBlock(nested, block, tableOffset);
  });
}

Value Rows::countElements(OpBuilder &b, Value block, Value column) const {
  IndexBuilder index = at(b);
  BlockEnd end = getEnd(b, block);
  Value rows = index.sub(end.row, getStart(b, block));
  Value hasRest =
      index.bitAnd(end.isLast, index.compare(arith::CmpIPredicate::ult, column,
                                             blocks.restColumns));
  Value rest = index.select(hasRest, index.constant(1), index.constant(0));
  return momentsAt(b).toDouble(index.add(rows, rest));
}

void Rows::finishMomentsOfChannels(OpBuilder &b, Value first) {
  IndexBuilder index = at(b);
  Value zeroIndex = index.constant(0), one = index.constant(1);
  // Joins the blocks and the rows of a fold.
  auto joinRow = [&](OpBuilder &inRow, Value block, Value row,
                     const CountedMoments &sofar) {
    IndexBuilder inside = at(inRow);
    Value firstOfRow = inside.mul(row, channels);
    Value entry = inside.add(inside.add(first, firstOfRow),
                             inside.mul(block, blocks.stride));
    SmallVector<Value> ofRow =
        loadEntries(inRow, tables.joinedMoments, {entry, lanes});
    return momentsAt(inRow).join(
        sofar, {{ofRow[0], ofRow[1]}, countElements(inRow, block, firstOfRow)});
  };
  Moments all =
      emitMomentLoop(
          b, {zeroIndex, blocks.count}, one, momentsAt(b).none(lanes),
          [&](OpBuilder &inBlock, Value block, const CountedMoments &sofar) {
            return emitMomentLoop(inBlock, {zeroIndex, blocks.fold}, one, sofar,
                                  [&](OpBuilder &inRow, Value row,
                                      const CountedMoments &carried) {
                                    return joinRow(inRow, block, row, carried);
                                  });
          })
          .moments;
  Value width = index.min(index.constant(lanes), index.sub(channels, first));
  if (haveMomentsVectors())
    return finishMoments(b, {first, lanes, createMask(b, width, lanes)}, all);
  emitFor(b, {zeroIndex, width}, [&](OpBuilder &nested, Value lane) {
    auto extract = [&](Value vector) -> Value {
      return vector::ExtractOp::create(nested, loc, vector,
                                       ArrayRef<OpFoldResult>{lane});
    };
    finishMoments(nested, at(nested).add(first, lane),
                  {extract(all.sum), extract(all.squares)});
  });
}

void Rows::emitMoments(OpBuilder &b) {
  blocks.chains = at(b).div(blocks.rows, chainRows);
  emitShares(b, blocks.count, [&](OpBuilder &nested, const Share &share) {
    emitMomentsOfBlocks(nested, share);
  });
  emitShares(
      b, at(b).ceilDiv(channels, constant(b, lanes)),
      [&](OpBuilder &nested, const Share &share) {
        emitFor(nested, share.iterations, [&](OpBuilder &in, Value piece) {
          finishMomentsOfChannels(in, at(in).mul(piece, constant(in, lanes)));
        });
      },
      areFewChannels(b));
}
