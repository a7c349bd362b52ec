//===- CpuTiles.cpp - the schedule tiles ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rows of several channels, a *tile*, are contiguous in each sample and are
// read as one run. A thread has tables for one tile at a time.
//
//===----------------------------------------------------------------------===//

#include "Apply/Sums.h"
#include "CpuTables.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::bngrad;

namespace {
class Tiles : public TableLoops {
public:
  Tiles(OpBuilder &b, const CpuLoops &shared);

  void emit(OpBuilder &b);

private:
  struct Tile {
    Value firstChannel, numChannels;
    Value columns; // elements of its rows in one sample
  };
  const StageTables &ofStage() const { return tables.stages[stageNumber]; }
  void emitShare(OpBuilder &b, const Share &share);
  void emitTile(OpBuilder &b, Value number);
  Run getRun(OpBuilder &b, const Tile &tile, Value sample,
             const OperandTables &operandTables) const;
  void emitSums(OpBuilder &b, const Tile &tile) const;
  void emitSumsOfChannel(OpBuilder &b, const Tile &tile, Value channel) const;
  /// Loops over the channels of `tile`, numbered from its first.
  void emitEachChannel(OpBuilder &b, const Tile &tile, IndexBody body) const {
    emitFor(b, {constant(b, 0), tile.numChannels}, body);
  }

  unsigned feature; // the loop over channels; the next one is over a row
  Value rowSize, channels, samples;
  Value channelsOfTile; // of each tile but the last
  Value entries;        // of a table: the columns of such a tile
  GroupTables tables;   // of a thread, in its share
};
} // namespace

Tiles::Tiles(OpBuilder &b, const CpuLoops &shared)
    : TableLoops(shared), feature(group.numLoops - 2) {
  IndexBuilder index = at(b);
  Value one = index.constant(1);
  rowSize = sizes[feature + 1];
  channels = sizes[feature];
  samples = feature == 0 ? one : sizes[0];
  // Take as many channels as make rows fill whole lines, if that many fit.
  Value most = index.max(
      index.div(index.constant(schedule.columns), index.max(rowSize, one)),
      one);
  Value unit = getRepeats(b, rowSize, getLineElements());
  Value hasUnits = index.compare(arith::CmpIPredicate::uge, most, unit);
  Value inUnits =
      index.select(hasUnits, index.sub(most, index.rem(most, unit)), most);
  channelsOfTile = index.max(index.min(inUnits, channels), one);
  entries = index.mul(channelsOfTile, rowSize);
}

Run Tiles::getRun(OpBuilder &b, const Tile &tile, Value sample,
                  const OperandTables &operandTables) const {
  IndexBuilder index = at(b);
  Run run;
  run.ivs.resize(group.numLoops);
  if (feature > 0)
    run.ivs[0] = sample;
  run.base = index.mul(
      index.add(index.mul(sample, channels), tile.firstChannel), rowSize);
  run.tables = &operandTables.inOrder;
  run.pairs = &operandTables.pairs;
  run.tableOffset = index.constant(0);
  return run;
}

void Tiles::emitSumsOfChannel(OpBuilder &b, const Tile &tile,
                              Value channel) const {
  Value start = at(b).mul(channel, rowSize);
  Accumulators sums = emitAccumulatorLoop(
      b, {constant(b, 0), rowSize}, constant(b, wide), zeroSums(b, wide),
      [&](OpBuilder &nested, Value element, ArrayRef<Accumulator> carried) {
        Value rest = at(nested).sub(rowSize, element);
        Value mask = createMask(nested, rest, wide);
        Piece piece = {at(nested).add(start, element), wide, mask};
        return addCompensated(nested, loc, carried,
                              joinEntries(nested, ofStage().sums, piece));
      });
  SmallVector<Value> totals = addLanes(b, sums);
  storeSums(b, at(b).add(tile.firstChannel, channel), totals);
}

void Tiles::emitSums(OpBuilder &b, const Tile &tile) const {
  Value zeroIndex = constant(b, 0);
  fillByRow(b, ofStage().reduction.inOrder,
            {tile.firstChannel, tile.numChannels, rowSize});
  fillSumPairs(b, tables, zeroIndex, tile.columns);
  emitZeroSums(b, ofStage().sums, zeroIndex, tile.columns);
  auto getSummedRun = [&](OpBuilder &nested, Value sample) {
    return getRun(nested, tile, sample, ofStage().reduction);
  };
  emitColumnSums(b, ofStage().sums,
                 {getSummedRun,
                  {zeroIndex, samples},
                  tile.columns,
                  zeroIndex,
                  RowOrder::OfTile,
                  /*stride=*/at(b).mul(channels, rowSize)});
  emitEachChannel(b, tile, [&](OpBuilder &nested, Value channel) {
    emitSumsOfChannel(nested, tile, channel);
  });
}

void Tiles::emitTile(OpBuilder &b, Value number) {
  IndexBuilder index = at(b);
  Tile tile;
  tile.firstChannel = index.mul(number, channelsOfTile);
  tile.numChannels =
      index.min(channelsOfTile, index.sub(channels, tile.firstChannel));
  tile.columns = index.mul(tile.numChannels, rowSize);
  for (unsigned stage : llvm::seq(group.stages.size())) {
    enterStage(stage);
    if (current.reduction)
      emitSums(b, tile);
    emitEachChannel(b, tile, [&](OpBuilder &nested, Value channel) {
      emitChannelwise(nested, at(nested).add(tile.firstChannel, channel));
    });
  }
  fillByRow(b, tables.elementwise.inOrder,
            {tile.firstChannel, tile.numChannels, rowSize});
  Value zeroIndex = constant(b, 0);
  fillElementPairs(b, tables, zeroIndex, tile.columns);
  for (linalg::GenericOp generic : group.elementwise)
    emitFor(b, {zeroIndex, samples}, [&](OpBuilder &nested, Value sample) {
      // The next tile's row comes next in memory.
      Run run = getRun(nested, tile, sample, tables.elementwise);
      run.prefetchDistance = tile.columns;
      run.next = at(nested).add(run.base, at(nested).mul(channels, rowSize));
      emitElements(nested, generic, run, {zeroIndex, tile.columns});
    });
}

void Tiles::emitShare(OpBuilder &b, const Share &share) {
  tables = createTables(b, {{TableUse::Sums, entries},
                            {TableUse::Reduction, entries},
                            {TableUse::Elementwise, entries}});
  emitFor(b, share.iterations,
          [&](OpBuilder &nested, Value number) { emitTile(nested, number); });
  deallocate(b, tables.memory);
}

void Tiles::emit(OpBuilder &b) {
  emitShares(
      b, at(b).ceilDiv(channels, channelsOfTile),
      [&](OpBuilder &nested, const Share &share) { emitShare(nested, share); });
}

void mlir::bngrad::emitTiles(OpBuilder &b, const CpuLoops &shared) {
  Tiles(b, shared).emit(b);
}
