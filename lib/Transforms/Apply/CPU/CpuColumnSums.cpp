//===- CpuColumnSums.cpp - sums of rows by column -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Apply/Sums.h"
#include "CpuTables.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The number of wide rows whose terms are added to a chain at once, so that
/// the chain is loaded and stored less often.
static constexpr int64_t kRowsAtOnce = 4;
/// The shortest vector registers, in bits, with which several rows are added at
/// once. Shorter ones would need four times the code of the longest, and x86-64
/// has only 16 of them. Adjacent rows need longer registers: the hardware
/// prefetches them better one after the other, by up to 1.5 times on a Zen 3.
static constexpr int64_t kLeastBitsAtOnce = 256, kLeastBitsOfAdjacent = 512;

/// The entries of a piece of a row. Tables are padded and need no mask.
static Piece getEntries(const ColumnRows &rows, IndexBuilder index,
                        const Piece &piece) {
  return {index.add(rows.entry, piece.position), piece.lanes};
}

SmallVector<Value> TableLoops::loadEntries(OpBuilder &b, ArrayRef<Value> tables,
                                           const Piece &piece) const {
  SmallVector<Value> entries;
  for (Value table : tables)
    entries.push_back(load(b, table, piece.position, piece));
  return entries;
}

void TableLoops::storeEntries(OpBuilder &b, ValueRange entries,
                              ArrayRef<Value> tables,
                              const Piece &piece) const {
  for (auto [table, value] : llvm::zip_equal(tables, entries))
    store(b, value, table, piece.position, piece);
}

void TableLoops::emitZeroSums(OpBuilder &b, const SumTables &tables,
                              Value entry, Value columns) const {
  emitFor(b, {constant(b, 0), columns}, constant(b, lanes),
          [&](OpBuilder &nested, Value column) {
            Value position = at(nested).add(entry, column);
            SmallVector<Value> all = toCarried(tables.sums);
            llvm::append_range(all, tables.chains);
            for (Value table : all) {
              auto type = VectorType::get({lanes}, getElementTypeOrSelf(table));
              Value zeros =
                  arith::ConstantOp::create(nested, loc, b.getZeroAttr(type));
              vector::StoreOp::create(nested, loc, zeros, table, position);
            }
          });
}

SmallVector<Value> TableLoops::addRow(OpBuilder &b, const ColumnRows &chain,
                                      Value row, const Piece &piece,
                                      const Run &entries,
                                      ValueRange chains) const {
  Run run = chain.getRun(b, row);
  run.prefetchDistance = entries.prefetchDistance;
  loadUniform(b, current.reduction, run);
  prefetch(b, current.reduction, run, piece);
  run.uniform.insert(entries.uniform.begin(), entries.uniform.end());
  run.hasOrderedEntries = entries.hasOrderedEntries;
  assert(takesPairs(current.reduction, run, piece) == run.hasOrderedEntries &&
         "other operands are uniform");
  return addTerms(b, run, piece, chains);
}

SmallVector<Value> TableLoops::inMemoryOrder(OpBuilder &b, const Piece &piece,
                                             ValueRange chains) const {
  if (!allowsPairs(current.reduction, piece))
    return chains;
  return llvm::map_to_vector(chains,
                             [&](Value chain) { return fromPairs(b, chain); });
}

void TableLoops::addToSums(OpBuilder &b, const SumTables &tables,
                           const Piece &entries, ValueRange chains) const {
  for (int64_t first = 0; first < entries.lanes; first += lanes) {
    Piece part = {at(b).add(entries.position, constant(b, first)), lanes};
    auto terms = llvm::map_to_vector(chains, [&](Value chain) -> Value {
      return vector::ExtractStridedSliceOp::create(b, loc, chain, first, lanes,
                                                   1);
    });
    SmallVector<Value> ofSums = toCarried(tables.sums);
    Accumulators sums = fromCarried(loadEntries(b, ofSums, part));
    storeEntries(b, toCarried(addCompensated(b, loc, sums, terms)), ofSums,
                 part);
  }
}

void TableLoops::addPieces(OpBuilder &b, const SumTables &tables,
                           const ColumnRows &chain,
                           ArrayRef<Piece> pieces) const {
  SmallVector<Value> zeros;
  for (const Piece &piece : pieces)
    llvm::append_range(zeros, zeroTerms(b, piece.lanes));
  SmallVector<Run> runs(pieces.size(), chain.getRun(b, chain.rows.from));
  for (auto [piece, run] : llvm::zip_equal(pieces, runs))
    readOrderedEntries(b, current.reduction, piece, run);
  SmallVector<Value> chains = emitSumLoop(
      b, chain.rows, zeros, [&](OpBuilder &inRow, Value row, ValueRange sums) {
        SmallVector<Value> next;
        for (auto [i, piece] : llvm::enumerate(pieces))
          llvm::append_range(next,
                             addRow(inRow, chain, row, piece, runs[i],
                                    sums.slice(i * numSums(), numSums())));
        return next;
      });
  for (auto [i, piece] : llvm::enumerate(pieces)) {
    addToSums(
        b, tables, getEntries(chain, at(b), piece),
        inMemoryOrder(b, piece,
                      ValueRange(chains).slice(i * numSums(), numSums())));
  }
}

Value TableLoops::getColumnsRead(OpBuilder &b, Value columns) const {
  IndexBuilder index = at(b);
  // Pieces of a row of static length end with it.
  if (getConstantIntValue(columns))
    return columns;
  Value isShort =
      index.compare(arith::CmpIPredicate::ule, columns, index.constant(wide));
  return index.select(isShort, index.constant(wide),
                      index.max(columns, index.constant(getMostColumns())));
}

void TableLoops::addOverrunning(OpBuilder &b, const SumTables &tables,
                                const ColumnRows &chain, Body otherwise) const {
  IndexBuilder index = at(b);
  int64_t most = getMostColumns();
  auto isAtMost = [&](Value l, Value r) {
    return index.compare(arith::CmpIPredicate::ule, l, r);
  };
  Value length = getColumnsRead(b, chain.columns);
  // The last piece must end within the data.
  Value last =
      chain.getRun(b, index.sub(chain.rows.to, index.constant(1))).base;
  Value fits = index.bitAnd(isAtMost(chain.columns, index.constant(most)),
                            isAtMost(index.add(last, length), count));
  auto addPiece = [&](int64_t pieceLanes) {
    return [&, pieceLanes](OpBuilder &nested) {
      addPieces(nested, tables, chain, Piece{constant(nested, 0), pieceLanes});
    };
  };
  emitIf(
      b, fits,
      [&](OpBuilder &nested) {
        Value isWide = at(nested).compare(arith::CmpIPredicate::eq, length,
                                          constant(nested, wide));
        emitIf(nested, isWide, addPiece(wide), addPiece(most));
      },
      otherwise);
}

void TableLoops::addNarrowRows(OpBuilder &b, const SumTables &tables,
                               const ColumnRows &chain) const {
  int64_t most = getMostColumns();
  auto addEachPiece = [&](OpBuilder &nested) {
    emitPieces(nested, {constant(nested, 0), chain.columns}, most,
               [&](OpBuilder &inPiece, const Piece &piece) {
                 addPieces(inPiece, tables, chain, piece);
               });
  };
  std::optional<int64_t> columns = getConstantIntValue(chain.columns);
  if (!columns && chain.mayOverrun)
    return addOverrunning(b, tables, chain, addEachPiece);
  if (!columns || *columns > most)
    return addEachPiece(b);
  SmallVector<Piece> pieces;
  for (int64_t column = 0; column < *columns;) {
    int64_t rest = *columns - column;
    Piece piece = {constant(b, column), rest < wide ? lanes : wide};
    if (rest < lanes)
      piece.mask = createMask(b, constant(b, rest), lanes);
    column += piece.lanes;
    pieces.push_back(piece);
  }
  addPieces(b, tables, chain, pieces);
}

Value TableLoops::areAddedAtOnce(OpBuilder &b, const ColumnRows &chain) const {
  Value isFalse = arith::ConstantIntOp::create(b, loc, 0, 1);
  bool areShort = schedule.vectorBits < kLeastBitsAtOnce && !isForNeon();
  if (chain.order == RowOrder::Apart || areShort)
    return isFalse;
  if (chain.order == RowOrder::OfTile)
    return arith::ConstantIntOp::create(b, loc, 1, 1);
  if (chain.order == RowOrder::Adjacent &&
      schedule.vectorBits < kLeastBitsOfAdjacent && !isForNeon())
    return isFalse;
  IndexBuilder index = at(b);
  Value areCached =
      index.compare(arith::CmpIPredicate::eq, isStreamed, isFalse);
  Value arePages =
      index.compare(arith::CmpIPredicate::uge, chain.columns,
                    constant(b, getPageElements(current.reduction)));
  return index.bitOr(areCached, arePages);
}

Value TableLoops::getWideDistance(OpBuilder &b, const ColumnRows &chain,
                                  Value areAtOnce) const {
  if (chain.order == RowOrder::Apart || areReadAgain())
    return Value();
  IndexBuilder index = at(b);
  Value page = constant(b, getPageElements(current.reduction));
  Value distance = index.mul(chain.stride, constant(b, kRowsAtOnce));
  if (chain.order == RowOrder::Adjacent)
    return index.select(areAtOnce, distance, page);
  distance = index.select(areAtOnce, distance, chain.stride);
  // If each run has its own pages, the hardware prefetches it; if the data are
  // in a cache, prefetches would only take time.
  Value sharePages =
      index.compare(arith::CmpIPredicate::ult, chain.stride, page);
  return index.select(index.bitOr(sharePages, isStreamed), distance,
                      constant(b, 0));
}

void TableLoops::addWidePieces(OpBuilder &b, const SumTables &tables,
                               const ColumnRows &chain, Value firstRow,
                               int64_t numRows, Value distance) const {
  emitPieces(
      b, {constant(b, 0), chain.columns}, wide,
      [&](OpBuilder &nested, const Piece &piece) {
        Run run =
            withPairs(current.reduction, chain.getRun(nested, firstRow), piece);
        run.prefetchDistance = distance;
        readEntries(nested, current.reduction, piece, run);
        Piece entries = getEntries(chain, at(nested), piece);
        SmallVector<Value> chains = loadEntries(nested, tables.chains, entries);
        auto addTo = [&](OpBuilder &inRow, Value row, ValueRange sums) {
          return addRow(inRow, chain, row, piece, run, sums);
        };
        // Unroll only the wide pieces, as few pieces are short.
        if (piece.lanes < wide) {
          Value end = at(nested).add(firstRow, constant(nested, numRows));
          chains = emitSumLoop(nested, {firstRow, end}, chains, addTo);
        } else {
          for (int64_t i = 0; i < numRows; ++i)
            chains = addTo(
                nested, at(nested).add(firstRow, constant(nested, i)), chains);
        }
        storeEntries(nested, chains, tables.chains, entries);
      });
}

void TableLoops::addWideRows(OpBuilder &b, const SumTables &tables,
                             const ColumnRows &chain) const {
  IndexBuilder index = at(b);
  Value areAtOnce = areAddedAtOnce(b, chain);
  Value distance = getWideDistance(b, chain, areAtOnce);
  auto addRows = [&](Interval rows, int64_t numRows) {
    emitFor(b, rows, constant(b, numRows), [&](OpBuilder &nested, Value row) {
      addWidePieces(nested, tables, chain, row, numRows, distance);
    });
  };
  Interval rest = chain.rows;
  if (!matchPattern(areAtOnce, m_Zero())) {
    Value count = index.sub(rest.to, rest.from);
    Value whole =
        index.sub(rest.to, index.rem(count, index.constant(kRowsAtOnce)));
    rest.from = index.select(areAtOnce, whole, rest.from);
    addRows({chain.rows.from, rest.from}, kRowsAtOnce);
  }
  addRows(rest, 1);
  endChains(b, tables, chain);
}

void TableLoops::endChains(OpBuilder &b, const SumTables &tables,
                           const ColumnRows &rows) const {
  emitPieces(b, {constant(b, 0), rows.columns}, wide,
             [&](OpBuilder &nested, const Piece &piece) {
               Piece entries = getEntries(rows, at(nested), piece);
               SmallVector<Value> chains =
                   loadEntries(nested, tables.chains, entries);
               addToSums(nested, tables, entries,
                         inMemoryOrder(nested, piece, chains));
               storeEntries(nested, zeroTerms(nested, piece.lanes),
                            tables.chains, entries);
             });
}

void TableLoops::emitColumnSums(OpBuilder &b, const SumTables &tables,
                                const ColumnRows &rows) const {
  Value isNarrow = areNarrow(b, rows.columns);
  emitFor(b, rows.rows, chainRows, [&](OpBuilder &nested, Value first) {
    ColumnRows chain = rows;
    Value end = at(nested).min(at(nested).add(first, chainRows), rows.rows.to);
    chain.rows = {first, end};
    emitIf(
        nested, isNarrow,
        [&](OpBuilder &narrow) { addNarrowRows(narrow, tables, chain); },
        [&](OpBuilder &wideRows) { addWideRows(wideRows, tables, chain); });
  });
}
