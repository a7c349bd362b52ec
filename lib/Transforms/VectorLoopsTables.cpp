//===- VectorLoopsTables.cpp - per-channel values by element --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sums.h"
#include "VectorLoopsImpl.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Columns whose sums stay in long registers from row to row. More would be
/// read piece by piece, with jumps from row to row that caches do not foresee.
static constexpr int64_t kNarrowColumns = 128;

int64_t VectorLoops::getLineElements() const {
  int64_t width = kLineBytes;
  for (linalg::GenericOp generic : group.elementwise)
    for (Value init : generic.getDpsInits())
      width = std::min<int64_t>(
          width, llvm::divideCeil(
                     getElementTypeOrSelf(init).getIntOrFloatBitWidth(), 8));
  return kLineBytes / width;
}

Value VectorLoops::getRepeats(OpBuilder &b, Value elements,
                              int64_t unit) const {
  // The lowest set bit of the size is its greatest power-of-2 divisor.
  Index index = at(b);
  Value line = index.constant(unit);
  Value low = b.createOrFold<arith::AndIOp>(
      loc, elements, index.sub(index.constant(0), elements));
  return index.div(line, index.max(index.min(low, line), index.constant(1)));
}

llvm::SetVector<Value>
VectorLoops::getChannelOperands(ArrayRef<linalg::GenericOp> generics) const {
  llvm::SetVector<Value> operands;
  for (linalg::GenericOp generic : generics)
    for (OpOperand *operand : generic.getDpsInputOperands()) {
      AffineMap map = generic.getMatchingIndexingMap(operand);
      if (!isDataMap(map) && map.isFunctionOfDim(group.features.front()) &&
          !generic.getMatchingBlockArgument(operand).use_empty())
        operands.insert(operand->get());
    }
  return operands;
}

void VectorLoops::requestTables(TableTypes &types,
                                ArrayRef<linalg::GenericOp> generics,
                                Value entries) const {
  for (Value operand : getChannelOperands(generics))
    types.push_back({entries, getElementTypeOrSelf(operand)});
}

Tables VectorLoops::takeTables(ArrayRef<Value> &tables,
                               ArrayRef<linalg::GenericOp> generics) const {
  Tables taken;
  for (Value operand : getChannelOperands(generics)) {
    taken[operand] = tables.front();
    tables = tables.drop_front();
  }
  return taken;
}

Value VectorLoops::addPair(OpBuilder &b, const SumTables &tables, unsigned i,
                           const Piece &piece) const {
  return arith::AddFOp::create(
      b, loc, load(b, tables.sums[2 * i], piece.position, piece),
      load(b, tables.sums[2 * i + 1], piece.position, piece));
}

void VectorLoops::requestSumTables(TableTypes &types, Value entries) const {
  for (unsigned i : llvm::seq(numSums()))
    types.append(3, {entries, sumType(i)});
}

SumTables VectorLoops::takeSumTables(ArrayRef<Value> &tables) const {
  SumTables taken;
  for (unsigned i = 0; i < numSums(); ++i) {
    llvm::append_range(taken.sums, tables.take_front(2));
    taken.chains.push_back(tables[2]);
    tables = tables.drop_front(3);
  }
  return taken;
}

void VectorLoops::emitZeroTables(OpBuilder &b, const SumTables &tables,
                                 Value entry, Value columns) const {
  emitFor(b, constant(b, 0), columns, constant(b, lanes),
          [&](OpBuilder &nested, Value column) {
            Value position = at(nested).add(entry, column);
            for (Value table :
                 llvm::concat<const Value>(tables.sums, tables.chains)) {
              auto type = VectorType::get({lanes}, getElementTypeOrSelf(table));
              Value zeros =
                  arith::ConstantOp::create(nested, loc, b.getZeroAttr(type));
              vector::StoreOp::create(nested, loc, zeros, table, position);
            }
          });
}

void VectorLoops::emitColumnSums(OpBuilder &b, const SumTables &tables,
                                 Value entry, Value columns,
                                 function_ref<Run(OpBuilder &, Value)> getRun,
                                 Value from, Value to, bool rowsAreAlike) {
  Index index = at(b);
  auto loadTables = [&](OpBuilder &nested, ArrayRef<Value> from,
                        const Piece &piece) {
    SmallVector<Value> entries;
    for (Value table : from)
      entries.push_back(load(nested, table, piece.position, piece));
    return entries;
  };
  auto storeTables = [&](OpBuilder &nested, ArrayRef<Value> entries,
                         ArrayRef<Value> to, const Piece &piece) {
    for (auto [table, value] : llvm::zip_equal(to, entries))
      store(nested, value, table, piece.position, piece, /*isStreaming=*/false);
  };
  // Tables are padded, and need no mask.
  auto inTables = [&](OpBuilder &nested, const Piece &piece) -> Piece {
    return {at(nested).add(entry, piece.position), piece.lanes, Value()};
  };

  // The terms of `pieces` of rows [row, end), whose sums stay in registers.
  auto emitRows = [&](OpBuilder &nested, Value row, Value end,
                      ArrayRef<Piece> pieces) {
    SmallVector<Value> chains;
    for (const Piece &piece : pieces)
      llvm::append_range(
          chains, loadTables(nested, tables.chains, inTables(nested, piece)));
    auto rows =
        createFor(nested, loc, row, end, constant(nested, 1), chains,
                  [&](OpBuilder &inRow, Location, Value iv, ValueRange sums) {
                    Run run = getRun(inRow, iv);
                    readCommon(inRow, group.reduction, run);
                    SmallVector<Value> next;
                    for (auto [i, piece] : llvm::enumerate(pieces)) {
                      prefetch(inRow, group.reduction, run, piece);
                      llvm::append_range(
                          next, addTerms(inRow, run, piece,
                                         sums.slice(i * numSums(), numSums())));
                    }
                    scf::YieldOp::create(inRow, loc, next);
                  });
    for (auto [i, piece] : llvm::enumerate(pieces))
      storeTables(
          nested,
          SmallVector<Value>(rows.getResults().slice(i * numSums(), numSums())),
          tables.chains, inTables(nested, piece));
  };
  // Columns that there are registers for: CPUs with long ones have 32 of them.
  int64_t most = schedule.getVectorBits() >= 512 ? 2 * wide : wide;
  // All columns as one piece, which reads on into the next row; `otherwise`
  // where there is none or they are more. Tables are padded for what that adds
  // up behind the columns.
  auto emitWholeRows = [&](OpBuilder &nested, Value row, Value end,
                           Body otherwise) {
    Index inside = at(nested);
    Value length = inside.select(inside.compare(arith::CmpIPredicate::ule,
                                                columns, inside.constant(wide)),
                                 inside.constant(wide), inside.constant(most));
    Value last = getRun(nested, inside.sub(end, inside.constant(1))).base;
    Value fits =
        inside.both(inside.compare(arith::CmpIPredicate::ule, columns, length),
                    inside.compare(arith::CmpIPredicate::ule,
                                   inside.add(last, length), count));
    auto emitPiece = [&](int64_t lanesOfPiece) {
      return [&, lanesOfPiece](OpBuilder &piece) {
        emitRows(piece, row, end,
                 Piece{constant(piece, 0), lanesOfPiece, Value()});
      };
    };
    emitIf(
        nested, fits,
        [&](OpBuilder &whole) {
          emitIf(whole,
                 at(whole).compare(arith::CmpIPredicate::eq, length,
                                   constant(whole, wide)),
                 emitPiece(wide), emitPiece(most));
        },
        otherwise);
  };
  // All columns, as many at a time as there are registers for.
  auto emitNarrowRows = [&](OpBuilder &nested, Value row, Value end) {
    std::optional<int64_t> known = getConstantIntValue(columns);
    auto emitEachPiece = [&](OpBuilder &each) {
      emitPieces(each, constant(each, 0), columns, most,
                 [&](OpBuilder &column, const Piece &piece) {
                   emitRows(column, row, end, piece);
                 });
    };
    if (!known && rowsAreAlike)
      return emitWholeRows(nested, row, end, emitEachPiece);
    if (!known || *known > most)
      return emitEachPiece(nested);
    SmallVector<Piece> pieces;
    for (int64_t column = 0; column < *known;) {
      int64_t left = *known - column;
      Piece piece = {constant(nested, column), left < wide ? lanes : wide,
                     Value()};
      if (left < lanes)
        piece.mask = createMask(nested, constant(nested, left), lanes);
      column += piece.lanes;
      pieces.push_back(piece);
    }
    emitRows(nested, row, end, pieces);
  };
  Value isNarrow = index.compare(arith::CmpIPredicate::ule, columns,
                                 index.constant(kNarrowColumns));

  emitFor(b, from, to, rowChain, [&](OpBuilder &chain, Value firstRow) {
    Value endOfChain = at(chain).min(at(chain).add(firstRow, rowChain), to);
    emitIf(
        chain, isNarrow,
        [&](OpBuilder &nested) {
          emitNarrowRows(nested, firstRow, endOfChain);
        },
        [&](OpBuilder &nested) {
          emitFor(nested, firstRow, endOfChain,
                  [&](OpBuilder &inRow, Value row) {
                    Value next = at(inRow).add(row, constant(inRow, 1));
                    emitPieces(inRow, constant(inRow, 0), columns, wide,
                               [&](OpBuilder &column, const Piece &piece) {
                                 emitRows(column, row, next, piece);
                               });
                  });
        });
    // The chains join the sums and start again at 0.
    emitPieces(chain, constant(chain, 0), columns, wide,
               [&](OpBuilder &column, const Piece &piece) {
                 Piece entries = inTables(column, piece);
                 SmallVector<Value> sums = addCompensated(
                     column, loc, loadTables(column, tables.sums, entries),
                     loadTables(column, tables.chains, entries));
                 storeTables(column, sums, tables.sums, entries);
                 SmallVector<Value> zeros;
                 for (unsigned i : llvm::seq(numSums()))
                   zeros.push_back(zero(column, i, piece.lanes));
                 storeTables(column, zeros, tables.chains, entries);
               });
  });
}
