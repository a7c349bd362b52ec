//===- VectorLoopsChannels.cpp - the schedules channels and split ---------===//
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

using namespace mlir;
using namespace mlir::bngrad;

/// Elements of a piece of `split`.
static constexpr int64_t kPieceElements = 16 << 10;
/// Bytes that are read for an element, at most, if what the next channel will
/// read is fetched besides. More keep the memory busy by themselves.
static constexpr int64_t kFetchedBytes = 8;

/// Bytes of the data that `generic` reads for an element.
static int64_t getReadBytes(linalg::GenericOp generic) {
  int64_t bytes = 0;
  for (OpOperand *operand : generic.getDpsInputOperands())
    if (isDataMap(generic.getMatchingIndexingMap(operand)))
      bytes += llvm::divideCeil(
          getElementTypeOrSelf(operand->get()).getIntOrFloatBitWidth(), 8);
  return bytes;
}

//===----------------------------------------------------------------------===//
// channels
//===----------------------------------------------------------------------===//

void VectorLoops::emitChannels(OpBuilder &b) {
  unsigned inner = group.numLoops - 1;
  SmallVector<unsigned> outer(reduced);
  outer.pop_back();
  SmallVector<Value> featureSizes, outerSizes;
  for (unsigned loop : group.features)
    featureSizes.push_back(sizes[loop]);
  for (unsigned loop : outer)
    outerSizes.push_back(sizes[loop]);
  auto getRun = [&](OpBuilder &nested, ArrayRef<Value> ivs) {
    Run run;
    run.ivs.assign(ivs.begin(), ivs.end());
    run.tables = nullptr;
    Index index = at(nested);
    run.base = index.constant(0);
    for (unsigned loop : llvm::seq(inner))
      run.base = index.add(index.mul(run.base, sizes[loop]), ivs[loop]);
    run.base = index.mul(run.base, sizes[inner]);
    return run;
  };
  emitShares(
      b, at(b).product(featureSizes),
      [&](OpBuilder &share, Value, Value from, Value to) {
        emitFor(share, from, to, [&](OpBuilder &channel, Value position) {
          SmallVector<Value> ivs(group.numLoops);
          delinearize(channel, position, group.features, ivs);
          SmallVector<Value> features;
          for (unsigned loop : group.features)
            features.push_back(ivs[loop]);
          Value zeroIndex = constant(channel, 0);
          // What all rows of the channel have in common is read once.
          auto readForChannel = [&](linalg::GenericOp generic) {
            Run all;
            all.ivs = ivs;
            readCommon(channel, generic, all);
            return all.common;
          };
          if (group.reduction) {
            auto common = readForChannel(group.reduction);
            auto getRow = [&](OpBuilder &nested, Value row) {
              SmallVector<Value> rowIvs(ivs);
              if (!outer.empty())
                delinearize(nested, row, outer, rowIvs);
              Run run = getRun(nested, rowIvs);
              run.common = common;
              return run;
            };
            SmallVector<Value> sums =
                emitSumRows(channel, at(channel).product(outerSizes), getRow,
                            constant(channel, 0), sizes[inner]);
            SmallVector<Value> totals;
            for (unsigned i : llvm::seq(numSums()))
              totals.push_back(addLanes(channel, sums[2 * i], sums[2 * i + 1]));
            storeSums(channel, features, totals);
          }
          emitChannelwise(channel, features);
          for (linalg::GenericOp generic : group.elementwise) {
            auto common = readForChannel(generic);
            emitLoops(channel, outer, ivs,
                      [&](OpBuilder &row, ArrayRef<Value> rowIvs) {
                        // Backwards: what was read last is still in a cache.
                        SmallVector<Value> back(rowIvs);
                        for (unsigned loop : outer)
                          back[loop] = at(row).sub(
                              at(row).sub(sizes[loop], constant(row, 1)),
                              rowIvs[loop]);
                        // The next channel's row comes next in memory.
                        Run run = getRun(row, back);
                        if (getReadBytes(generic) <= kFetchedBytes)
                          run.ahead = sizes[inner];
                        run.common = common;
                        emitElementwiseRun(row, generic, run, zeroIndex,
                                           sizes[inner]);
                      });
          }
        });
      });
}

//===----------------------------------------------------------------------===//
// split
//===----------------------------------------------------------------------===//

void VectorLoops::emitSplit(OpBuilder &b) {
  Index index = at(b);
  unsigned inner = group.numLoops - 1;
  Value zeroIndex = index.constant(0),
        pieceSize = index.constant(kPieceElements);
  Value pieces = index.ceilDiv(sizes[inner], pieceSize); // of a row
  SmallVector<unsigned> outer = llvm::to_vector(llvm::seq<unsigned>(0, inner));
  SmallVector<Value> outerSizes, channelSizes, rowSizes;
  for (unsigned loop : outer) {
    outerSizes.push_back(sizes[loop]);
    (group.isFeature(loop) ? channelSizes : rowSizes).push_back(sizes[loop]);
  }
  Value channels = index.product(channelSizes);
  Value piecesOfChannel = index.mul(index.product(rowSizes), pieces);
  Value total = index.mul(channels, piecesOfChannel);

  // The piece at `position` in the order of memory: its run, its elements, and
  // its number among the pieces of all channels.
  struct Part {
    Run run;
    Value from, to, number;
  };
  auto getPart = [&](OpBuilder &nested, Value position) {
    Index inside = at(nested);
    Part part;
    part.run.tables = nullptr;
    part.run.ivs.resize(group.numLoops);
    Value row = inside.div(position, pieces);
    Value piece = inside.rem(position, pieces);
    part.run.base = inside.mul(row, sizes[inner]);
    delinearize(nested, row, outer, part.run.ivs);
    part.from = inside.mul(piece, pieceSize);
    part.to = inside.min(inside.add(part.from, pieceSize), sizes[inner]);
    part.number = inside.constant(0);
    for (bool isChannel : {true, false})
      for (unsigned loop : outer)
        if (group.isFeature(loop) == isChannel)
          part.number = inside.add(inside.mul(part.number, sizes[loop]),
                                   part.run.ivs[loop]);
    part.number = inside.add(inside.mul(part.number, pieces), piece);
    return part;
  };

  if (group.reduction) {
    TableTypes types;
    for (unsigned i : llvm::seq(numSums()))
      types.push_back({total, sumType(i)});
    SmallVector<Value> partials = createTables(b, types);
    emitShares(b, total, [&](OpBuilder &share, Value, Value from, Value to) {
      emitFor(share, from, to, [&](OpBuilder &nested, Value position) {
        Part part = getPart(nested, position);
        auto getRun = [&](OpBuilder &, Value) { return part.run; };
        SmallVector<Value> sums = emitSumRows(nested, constant(nested, 1),
                                              getRun, part.from, part.to);
        for (unsigned i : llvm::seq(numSums()))
          memref::StoreOp::create(
              nested, loc, addLanes(nested, sums[2 * i], sums[2 * i + 1]),
              partials[i], part.number);
      });
    });
    emitLoops(
        b, group.features, SmallVector<Value>(group.numLoops),
        [&](OpBuilder &nested, ArrayRef<Value> ivs) {
          Index inside = at(nested);
          SmallVector<Value> features;
          Value channel = inside.constant(0);
          for (unsigned loop : group.features) {
            features.push_back(ivs[loop]);
            channel = inside.add(inside.mul(channel, sizes[loop]), ivs[loop]);
          }
          Value first = inside.mul(channel, piecesOfChannel);
          SmallVector<Value> zeros;
          for (unsigned i : llvm::seq(numSums()))
            zeros.append(2, arith::ConstantOp::create(
                                nested, loc, nested.getZeroAttr(sumType(i))));
          auto loop = createFor(
              nested, loc, zeroIndex, piecesOfChannel, constant(nested, 1),
              zeros, [&](OpBuilder &part, Location, Value iv, ValueRange sums) {
                Value entry = at(part).add(first, iv);
                SmallVector<Value> addends;
                for (Value partial : partials)
                  addends.push_back(
                      memref::LoadOp::create(part, loc, partial, entry));
                scf::YieldOp::create(part, loc,
                                     addCompensated(part, loc, sums, addends));
              });
          SmallVector<Value> totals;
          for (unsigned i : llvm::seq(numSums()))
            totals.push_back(arith::AddFOp::create(
                nested, loc, loop.getResult(2 * i), loop.getResult(2 * i + 1)));
          storeSums(nested, features, totals);
        });
    deallocate(b, partials.front());
  }
  emitLoops(b, group.features, SmallVector<Value>(group.numLoops),
            [&](OpBuilder &nested, ArrayRef<Value> ivs) {
              SmallVector<Value> features;
              for (unsigned loop : group.features)
                features.push_back(ivs[loop]);
              emitChannelwise(nested, features);
            });
  for (linalg::GenericOp generic : group.elementwise)
    emitShares(b, total, [&](OpBuilder &share, Value, Value from, Value to) {
      // Backwards: what was read last is still in a cache.
      Value last = at(share).sub(at(share).add(from, to), constant(share, 1));
      emitFor(share, from, to, [&](OpBuilder &nested, Value iv) {
        Part part = getPart(nested, at(nested).sub(last, iv));
        emitElementwiseRun(nested, generic, part.run, part.from, part.to);
      });
    });
}
