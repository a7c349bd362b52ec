//===- VectorLoopsTiles.cpp - the schedule tiles --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementCloner.h"
#include "Sums.h"
#include "VectorLoopsImpl.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::bngrad;

void VectorLoops::emitTiles(OpBuilder &b) {
  Index index = at(b);
  unsigned inner = group.numLoops - 1, feature = group.numLoops - 2;
  Value zeroIndex = index.constant(0), one = index.constant(1);
  Value rowSize = sizes[inner], channels = sizes[feature];
  Value rows = feature == 0 ? one : sizes[0];
  // Channels of a tile; those whose rows fill whole lines, if that many fit.
  Value perTile = index.max(
      index.div(index.constant(schedule.getColumns()), index.max(rowSize, one)),
      one);
  Value repeats = getRepeats(b, rowSize, getLineElements());
  perTile =
      index.select(index.compare(arith::CmpIPredicate::uge, perTile, repeats),
                   index.sub(perTile, index.rem(perTile, repeats)), perTile);
  perTile = index.max(index.min(perTile, channels), one);
  Value entries = index.mul(perTile, rowSize);

  emitShares(
      b, index.ceilDiv(channels, perTile),
      [&](OpBuilder &share, Value, Value fromTile, Value toTile) {
        SmallVector<linalg::GenericOp> reductions;
        if (group.reduction)
          reductions.push_back(group.reduction);
        TableTypes types;
        requestSumTables(types, entries);
        requestTables(types, reductions, entries);
        requestTables(types, group.elementwise, entries);
        SmallVector<Value> allTables = createTables(share, types);
        ArrayRef<Value> left = allTables;
        SumTables sumTables = takeSumTables(left);
        Tables reductionTables = takeTables(left, reductions);
        Tables tables = takeTables(left, group.elementwise);

        emitFor(share, fromTile, toTile, [&](OpBuilder &tile, Value number) {
          Index inside = at(tile);
          Value first = inside.mul(number, perTile);
          Value width = inside.min(perTile, inside.sub(channels, first));
          Value columns = inside.mul(width, rowSize);
          auto emitEachChannel = [&](IndexBody body) {
            emitFor(tile, zeroIndex, width, body);
          };
          // Every element of a channel's row gets its value.
          auto spread = [&](ArrayRef<linalg::GenericOp> generics,
                            const Tables &into) {
            for (Value operand : getChannelOperands(generics))
              emitEachChannel([&](OpBuilder &nested, Value channel) {
                Index at = this->at(nested);
                Value value = memref::LoadOp::create(
                    nested, loc, operand, ValueRange{at.add(first, channel)});
                Value start = at.mul(channel, rowSize);
                emitFor(
                    nested, zeroIndex, rowSize, constant(nested, lanes),
                    [&](OpBuilder &entry, Value element) {
                      Piece all = {element, lanes, Value()};
                      Value table = into.lookup(operand);
                      Value spreadValue = broadcastTo(entry, loc, value, lanes);
                      store(entry, spreadValue, getStored(entry, table),
                            this->at(entry).add(start, element), all, false);
                    });
              });
          };
          auto getRun = [&](OpBuilder &nested, Value row, const Tables &with) {
            Index at = this->at(nested);
            Run run;
            run.ivs.resize(group.numLoops);
            if (feature > 0)
              run.ivs[0] = row;
            run.base = at.mul(at.add(at.mul(row, channels), first), rowSize);
            run.tables = &with;
            run.tableOffset = at.constant(0);
            return run;
          };

          if (group.reduction) {
            spread(reductions, reductionTables);
            emitZeroTables(tile, sumTables, zeroIndex, columns);
            emitColumnSums(
                tile, sumTables, zeroIndex, columns,
                [&](OpBuilder &nested, Value row) {
                  Run run = getRun(nested, row, reductionTables);
                  run.ahead = at(nested).mul(channels, rowSize);
                  return run;
                },
                zeroIndex, rows, /*rowsAreAlike=*/false);
            emitEachChannel([&](OpBuilder &nested, Value channel) {
              Value start = at(nested).mul(channel, rowSize);
              auto loop = createFor(
                  nested, loc, zeroIndex, rowSize, constant(nested, wide),
                  zeroSums(nested, wide),
                  [&](OpBuilder &entry, Location, Value element,
                      ValueRange sums) {
                    Value mask = createMask(
                        entry, at(entry).sub(rowSize, element), wide);
                    Piece piece = {at(entry).add(start, element), wide, mask};
                    SmallVector<Value> addends;
                    for (unsigned i : llvm::seq(numSums()))
                      addends.push_back(addPair(entry, sumTables, i, piece));
                    scf::YieldOp::create(
                        entry, loc, addCompensated(entry, loc, sums, addends));
                  });
              SmallVector<Value> totals;
              for (unsigned i : llvm::seq(numSums()))
                totals.push_back(addLanes(nested, loop.getResult(2 * i),
                                          loop.getResult(2 * i + 1)));
              storeSums(nested, at(nested).add(first, channel), totals);
            });
          }
          emitEachChannel([&](OpBuilder &nested, Value channel) {
            emitChannelwise(nested, at(nested).add(first, channel));
          });
          spread(group.elementwise, tables);
          for (linalg::GenericOp generic : group.elementwise)
            emitFor(tile, zeroIndex, rows, [&](OpBuilder &nested, Value row) {
              // The next tile's row comes next in memory.
              Run run = getRun(nested, row, tables);
              run.ahead = columns;
              emitElementwiseRun(nested, generic, run, zeroIndex, columns);
            });
        });
        deallocate(share, allTables.front());
      });
}
