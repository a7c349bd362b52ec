//===- VectorLoopsRows.cpp - the schedule rows ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sums.h"
#include "VectorLoopsImpl.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Rows of the second pass of `rows` that are read forward before stepping
/// back: bytes of data.
static constexpr int64_t kStepBytes = 3 << 20;
/// Blocks of the first pass, at most, where there are so many bytes of data.
/// Powers of 2 are even shares for most numbers of threads.
static constexpr std::pair<int64_t, int64_t> kBlocks[] = {
    {128 << 10, 2}, {512 << 10, 4}, {1 << 20, 8}, {2 << 20, 16}, {4 << 20, 32}};
/// Channels whose sums are more work for one thread than it is to wake another.
static constexpr int64_t kSerialChannels = 64;

void VectorLoops::emitRows(OpBuilder &b) {
  Index index = at(b);
  Value zeroIndex = index.constant(0), one = index.constant(1);
  Value height = sizes[0], channels = sizes[1];
  // How many rows are taken as one: whole units of elements, about `wanted` of
  // them, or one if that makes the row too long for tables.
  auto getFold = [&](int64_t unit, int64_t wanted) {
    Value repeats = getRepeats(b, channels, unit);
    Value most = index.max(
        index.div(index.constant(wanted), index.max(channels, one)), one);
    Value fold = index.mul(index.ceilDiv(most, repeats), repeats);
    Value isTooLong =
        index.compare(arith::CmpIPredicate::ugt, index.mul(fold, channels),
                      index.constant(4 * schedule.getColumns()));
    return index.min(index.select(isTooLong, one, fold),
                     index.max(height, one));
  };

  // Each share has tables of its own, which its thread fills: the value of a
  // channel for each column, and on for a vector more, from `first` on. Once,
  // then what is there already is copied behind itself.
  auto spread = [&](OpBuilder &b, ArrayRef<linalg::GenericOp> generics,
                    const Tables &tables, Value first, Value columns) {
    Index index = at(b);
    for (Value operand : getChannelOperands(generics)) {
      Value table = tables.lookup(operand);
      if (isMemRefWithIdentity(operand)) {
        emitPieces(b, zeroIndex, channels, wide,
                   [&](OpBuilder &nested, const Piece &piece) {
                     Piece all = {piece.position, piece.lanes, Value()};
                     store(nested, load(nested, operand, piece.position, piece),
                           getStored(nested, table),
                           at(nested).add(first, piece.position), all, false);
                   });
        continue;
      }
      emitFor(b, zeroIndex, channels, [&](OpBuilder &nested, Value channel) {
        Value value = memref::LoadOp::create(nested, loc, operand, channel);
        memref::StoreOp::create(nested, loc, value, table,
                                at(nested).add(first, channel));
      });
    }
    Value end = index.add(columns, index.constant(wide + kLineBytes));
    scf::WhileOp::create(
        b, loc, b.getIndexType(), index.max(channels, one),
        [&](OpBuilder &before, Location, ValueRange filled) {
          scf::ConditionOp::create(
              before, loc,
              at(before).compare(arith::CmpIPredicate::ult, filled[0], end),
              filled);
        },
        [&](OpBuilder &after, Location, ValueRange filled) {
          Value width = at(after).min(filled[0], at(after).sub(end, filled[0]));
          emitFor(after, zeroIndex, width, constant(after, lanes),
                  [&](OpBuilder &nested, Value entry) {
                    Piece all = {at(nested).add(first, entry), lanes, Value()};
                    for (Value operand : getChannelOperands(generics)) {
                      Value table = getStored(nested, tables.lookup(operand));
                      store(nested, load(nested, table, all.position, all),
                            table, at(nested).add(filled[0], all.position), all,
                            false);
                    }
                  });
          scf::YieldOp::create(after, loc,
                               at(after).mul(filled[0], constant(after, 2)));
        });
  };

  // Columns of the element-wise part: long rows, so that little is done for
  // each.
  Value longColumns = index.mul(
      getFold(std::max(getLineElements(), wide), schedule.getColumns() / 2),
      channels);
  SmallVector<Value> allTables;
  ArrayRef<Value> left;
  auto getTableStride = [&](Value columns) {
    return index.mul(
        index.ceilDiv(index.add(columns, index.constant(2 * wide + kLineBytes)),
                      index.constant(kLineBytes)),
        index.constant(kLineBytes));
  };
  auto getTableEntries = [&](Value columns) {
    return index.mul(getShares(b), getTableStride(columns));
  };
  auto create = [&](TableTypes types) {
    requestTables(types, group.elementwise, getTableEntries(longColumns));
    if (types.empty())
      return;
    allTables = createTables(b, types);
    left = allTables;
  };

  if (group.reduction) {
    // Short rows, whose sums stay in registers; of whole vectors, if that does
    // not make them long.
    Value whole = getFold(wide, wide);
    Value fold = index.select(index.compare(arith::CmpIPredicate::ule,
                                            index.mul(whole, channels),
                                            index.constant(2 * wide)),
                              whole, getFold(lanes, wide));
    Value columns = index.mul(fold, channels);
    Value rows = index.div(height, fold);
    Value restColumns = index.sub(count, index.mul(rows, columns));
    Value blocks = one;
    for (auto [least, most] : kBlocks)
      blocks = index.select(
          index.compare(arith::CmpIPredicate::uge, bytes,
                        index.constant(least)),
          index.constant(std::min(most, schedule.getBlocks())), blocks);
    Value stride = index.add(columns, index.constant(wide));
    TableTypes types;
    requestTables(types, group.reduction, getTableEntries(columns));
    requestSumTables(types, index.mul(blocks, stride));
    create(types);
    Tables tables = takeTables(left, group.reduction);
    SumTables sumTables = takeSumTables(left);
    Value chains = index.div(rows, rowChain);
    bool storesData = llvm::any_of(
        group.reduction.getDpsInitsMutable(), [&](OpOperand &init) {
          return isDataMap(group.reduction.getMatchingIndexingMap(&init));
        });
    emitShares(
        b, blocks, [&](OpBuilder &share, Value number, Value from, Value to) {
          Value first = at(share).mul(number, getTableStride(columns));
          spread(share, group.reduction, tables, first, columns);
          auto getRun = [&](OpBuilder &nested, Value row) {
            Run run;
            run.ivs.resize(group.numLoops);
            run.base = at(nested).mul(row, columns);
            run.tables = &tables;
            run.tableOffset = first;
            return run;
          };
          emitFor(share, from, to, [&](OpBuilder &nested, Value block) {
            Index inside = at(nested);
            Value entry = inside.mul(block, stride);
            Value next = inside.add(block, inside.constant(1));
            Value isLast =
                inside.compare(arith::CmpIPredicate::eq, next, blocks);
            auto startOf = [&](Value number) {
              return inside.mul(inside.div(inside.mul(number, chains), blocks),
                                rowChain);
            };
            Value end = inside.select(isLast, rows, startOf(next));
            emitZeroTables(nested, sumTables, entry, columns);
            emitColumnSums(nested, sumTables, entry, columns, getRun,
                           startOf(block), end, /*rowsAreAlike=*/!storesData);
            // What is left is less than a row.
            if (!matchPattern(restColumns, m_Zero()))
              emitColumnSums(nested, sumTables, entry, restColumns, getRun,
                             rows,
                             inside.select(isLast, inside.add(rows, one), rows),
                             /*rowsAreAlike=*/false);
          });
        });
    // The sums of a channel: over the blocks, and the rows taken as one. If
    // these are many for few channels, over the blocks for all columns first.
    Value isLittle = index.compare(arith::CmpIPredicate::ule, channels,
                                   index.constant(kSerialChannels));
    auto addBlocks = [&](OpBuilder &nested, Value position, int64_t pieceLanes,
                         Value number, ValueRange before) {
      Piece all = {at(nested).add(position, at(nested).mul(number, stride)),
                   pieceLanes, Value()};
      SmallVector<Value> addends;
      for (unsigned i : llvm::seq(numSums()))
        addends.push_back(addPair(nested, sumTables, i, all));
      return addCompensated(nested, loc, before, addends);
    };
    auto emitSumsOfBlocks = [&](OpBuilder &first) {
      emitPieces(
          first, zeroIndex, columns, wide,
          [&](OpBuilder &nested, const Piece &piece) {
            auto overBlocks = createFor(
                nested, loc, zeroIndex, blocks, constant(nested, 1),
                zeroSums(nested, piece.lanes),
                [&](OpBuilder &inBlock, Location, Value block,
                    ValueRange sums) {
                  scf::YieldOp::create(inBlock, loc,
                                       addBlocks(inBlock, piece.position,
                                                 piece.lanes, block, sums));
                });
            // Tables are padded, and need no mask.
            for (auto [table, sum] :
                 llvm::zip_equal(sumTables.sums, overBlocks.getResults()))
              store(nested, sum, table, piece.position,
                    {piece.position, piece.lanes, Value()}, false);
          });
    };
    Value blocksLeft = index.select(isLittle, one, blocks);
    emitShares(
        b, index.ceilDiv(channels, index.constant(lanes)),
        [&](OpBuilder &share, Value number, Value from, Value to) {
          Index outer = at(share);
          Value isFirst =
              outer.compare(arith::CmpIPredicate::eq, number, zeroIndex);
          Value hasBlocks =
              outer.compare(arith::CmpIPredicate::ugt, blocks, one);
          emitIf(share, outer.both(isLittle, outer.both(isFirst, hasBlocks)),
                 emitSumsOfBlocks, [](OpBuilder &) {});
          emitFor(share, from, to, [&](OpBuilder &nested, Value piece) {
            Index inside = at(nested);
            Value first = inside.mul(piece, inside.constant(lanes));
            auto overBlocks = createFor(
                nested, loc, zeroIndex, blocksLeft, constant(nested, 1),
                zeroSums(nested, lanes),
                [&](OpBuilder &inBlock, Location, Value block,
                    ValueRange carried) {
                  auto overRows = createFor(
                      inBlock, loc, zeroIndex, fold, constant(inBlock, 1),
                      carried,
                      [&](OpBuilder &inRow, Location, Value row,
                          ValueRange sums) {
                        Value position =
                            at(inRow).add(first, at(inRow).mul(row, channels));
                        scf::YieldOp::create(
                            inRow, loc,
                            addBlocks(inRow, position, lanes, block, sums));
                      });
                  scf::YieldOp::create(inBlock, loc, overRows.getResults());
                });
            SmallVector<Value> totals;
            for (unsigned i : llvm::seq(numSums()))
              totals.push_back(arith::AddFOp::create(
                  nested, loc, overBlocks.getResult(2 * i),
                  overBlocks.getResult(2 * i + 1)));
            Value width =
                inside.min(inside.constant(lanes), inside.sub(channels, first));
            if (hasChannelVectors()) {
              Piece all = {first, lanes, createMask(nested, width, lanes)};
              storeSums(nested, all, totals);
              emitChannelwise(nested, all);
              return;
            }
            emitFor(nested, zeroIndex, width, [&](OpBuilder &lane, Value iv) {
              SmallVector<Value> scalars;
              for (Value total : totals)
                scalars.push_back(vector::ExtractOp::create(
                    lane, loc, total, ArrayRef<OpFoldResult>{iv}));
              Value channel = at(lane).add(first, iv);
              storeSums(lane, channel, scalars);
              emitChannelwise(lane, channel);
            });
          });
        },
        isLittle);
  } else {
    create({});
    if (hasChannelVectors())
      emitPieces(b, zeroIndex, channels, wide,
                 [&](OpBuilder &nested, const Piece &piece) {
                   emitChannelwise(nested, piece);
                 });
    else
      emitFor(b, zeroIndex, channels, [&](OpBuilder &nested, Value channel) {
        emitChannelwise(nested, channel);
      });
  }
  if (group.elementwise.empty())
    return deallocate(b, allTables.front());

  Value columns = longColumns;
  Tables tables = takeTables(left, group.elementwise);
  // Where results are streamed and rows fill whole lines, rows are counted from
  // the first line of the result on; the elements before come first.
  Value result = getFlat(b, group.elementwise[0].getDpsInitOperand(0)->get());
  int64_t width =
      llvm::divideCeil(getElementTypeOrSelf(result).getIntOrFloatBitWidth(), 8);
  Value line = index.constant(kLineBytes);
  Value shift = zeroIndex;
  if (!matchPattern(isStreamed(b), m_Zero())) {
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(b, loc, result);
    Value past = index.rem(address, line);
    Value toLine = index.div(index.rem(index.sub(line, past), line),
                             index.constant(width));
    Value fillsLines = index.compare(
        arith::CmpIPredicate::eq,
        index.rem(index.mul(columns, index.constant(width)), line), zeroIndex);
    shift = index.min(index.select(fillsLines, toLine, zeroIndex), count);
  }
  Value shiftedRows =
      index.ceilDiv(index.sub(count, shift), index.max(columns, one));
  Value rowBytes = index.div(index.mul(bytes, columns), index.max(count, one));
  Value step = index.max(
      index.div(index.constant(kStepBytes), index.max(rowBytes, one)), one);
  for (linalg::GenericOp generic : group.elementwise)
    emitShares(
        b, shiftedRows,
        [&](OpBuilder &share, Value number, Value from, Value to) {
          Value first = at(share).mul(number, getTableStride(columns));
          if (generic == group.elementwise.front())
            spread(share, group.elementwise, tables, first, columns);
          auto getRun = [&](OpBuilder &nested, Value row) {
            Run run;
            run.ivs.resize(group.numLoops);
            run.base = at(nested).add(shift, at(nested).mul(row, columns));
            run.tables = &tables;
            run.tableOffset = at(nested).add(first, shift);
            return run;
          };
          if (!matchPattern(shift, m_Zero())) {
            Run run = getRun(share, zeroIndex);
            run.base = zeroIndex;
            run.tableOffset = first;
            readCommon(share, generic, run);
            Value isFirst =
                at(share).compare(arith::CmpIPredicate::eq, number, zeroIndex);
            emitMasked(
                share, zeroIndex, at(share).select(isFirst, shift, zeroIndex),
                [&](OpBuilder &nested, const Piece &piece) {
                  IRMapping mapping = clonePiece(nested, generic, run, piece);
                  storePiece(nested, generic, run, piece, mapping, false);
                });
          }
          // Steps backwards: what was read last is still in a cache.
          Value steps = at(share).ceilDiv(at(share).sub(to, from), step);
          emitFor(share, zeroIndex, steps, [&](OpBuilder &nested, Value iv) {
            Index inside = at(nested);
            Value endRow = inside.sub(to, inside.mul(iv, step));
            Value firstRow = inside.max(inside.sub(endRow, step), from);
            emitFor(nested, firstRow, endRow, [&](OpBuilder &inRow, Value row) {
              Run run = getRun(inRow, row);
              Value end =
                  at(inRow).min(columns, at(inRow).sub(count, run.base));
              emitElementwiseRun(inRow, generic, run, zeroIndex, end);
            });
          });
        });
  if (!allTables.empty())
    deallocate(b, allTables.front());
}
