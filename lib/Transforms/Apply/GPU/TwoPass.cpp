//===- TwoPass.cpp - kernels that read the data twice ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One kernel adds up slices of every channel, one finishes the sums and
// computes the per-channel results, and one computes the elements. Neither the
// number of slices nor their order of addition depends on the device.
//
//===----------------------------------------------------------------------===//

#include "GpuSchedules.h"
#include "TwoPassKernel.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The most bytes of sums that a block exchanges in its 48 KB of static shared
/// memory.
static constexpr int64_t kMostScratchBytes = 40 << 10;
/// The least number of threads of a block that finishes.
static constexpr int64_t kFinishThreads = 128;
/// The least number of channels of such a block: the sums of 8 channels in f32
/// are a sector of memory.
static constexpr int64_t kLeastFinishColumns = 8;
/// The most threads that share the slices of a channel.
static constexpr int64_t kMostFinishRows = 64;
/// How many slices' sums a thread loads before it adds the first.
static constexpr int64_t kSlicesAtOnce = 8;

void TwoPass::emitByLanes(OpBuilder &b, ArrayRef<linalg::GenericOp> generics,
                          LanesBody body) {
  IndexBuilder index = at(b);
  int64_t lanes = countLanes(*this, generics);
  Value isWhole = isZero(index, index.rem(sizes[inner], index.constant(lanes)));
  // Vectors elsewhere do not make up for one gather of all lanes.
  for (linalg::GenericOp generic : generics)
    for (OpOperand &operand : generic->getOpOperands())
      if (isDataMap(generic.getMatchingIndexingMap(&operand)) &&
          !isContiguous(*this, generic, operand))
        lanes = 1;
  if (lanes == 1 || matchPattern(isWhole, m_Zero()))
    return body(b, 1);
  Value isVector = isWhole;
  if (Value isAligned = buffers.testAlignment(b, generics, inner))
    isVector = index.bitAnd(isVector, isAligned);
  emitIf(
      b, isVector, [&](OpBuilder &nested) { body(nested, lanes); },
      [&](OpBuilder &nested) { body(nested, 1); });
}

TwoPass::Partials TwoPass::createPartials(OpBuilder &b, Value slices) {
  Partials partials;
  partials.slices = slices;
  auto [shape, sizes] =
      decomposeMixedValues(getAsOpFoldResult({slices, channels}));
  for (unsigned i : llvm::seq(numSums()))
    partials.memrefs.push_back(
        buffers.allocate(b, MemRefType::get(shape, sumType(i)), sizes));
  return partials;
}

Value TwoPass::countSlices(OpBuilder &b, Value tiles, Value elementsOfBlock) {
  IndexBuilder index = at(b);
  Value elements = index.product(pick(sizes, reduced));
  // Enough blocks for the device, but not a few more, which would run after all
  // others; and each block has at least one chunk to add.
  Value wanted = index.div(index.constant(schedule.sumBlocks),
                           index.max(tiles, index.constant(1)));
  Value most = index.ceilDiv(
      elements, index.mul(elementsOfBlock, index.constant(kUnroll)));
  return index.max(index.min(wanted, most), index.constant(1));
}

TwoPass::Slicing TwoPass::planSlices(OpBuilder &b, const Partials &partials,
                                     int64_t width, int64_t lanes) const {
  bool isAlternating = alternates(partials);
  Slicing slicing;
  slicing.width = width;
  slicing.stride = constant(b, width);
  if (isAlternating)
    slicing.stride = at(b).mul(slicing.stride, partials.slices);
  slicing.walk = createWalk(b, reduced, slicing.stride, lanes);
  slicing.pieces = slicing.walk.countPieces(at(b));
  if (!isAlternating)
    slicing.length = at(b).ceilDiv(slicing.pieces, partials.slices);
  return slicing;
}

ThreadPieces TwoPass::getSlice(OpBuilder &b, const Slicing &slicing,
                               Value number, Value thread) const {
  IndexBuilder index = at(b);
  if (!slicing.length)
    return {index.mul(number, index.constant(slicing.width)),
            thread,
            slicing.stride,
            slicing.pieces,
            /*isChunk=*/false,
            slicing.width};
  Value from = index.mul(number, slicing.length);
  Value to = index.min(index.add(from, slicing.length), slicing.pieces);
  return {from, thread, slicing.stride, to};
}

void TwoPass::storePartials(OpBuilder &b, ValueRange totals,
                            const Partials &partials,
                            ValueRange indices) const {
  for (auto [memref, total] : llvm::zip_equal(partials.memrefs, totals))
    memref::StoreOp::create(b, loc, total, memref, indices);
}

void TwoPass::emitChannelSums(OpBuilder &b, const Partials &partials,
                              int64_t lanes) {
  IndexBuilder index = at(b);
  Slicing slicing = planSlices(b, partials, threads, lanes);
  Value blocks = index.mul(channels, partials.slices);
  SmallVector<Type> shared = getSharedTypes(threads / CudaChip::kWarpSize);
  launch(b, "reduce", {blocks, threads, shared, overlaps},
         [&](OpBuilder &nested, Kernel kernel) {
           IndexBuilder inside = at(nested);
           Value channel = inside.div(kernel.block, partials.slices);
           Value number = inside.rem(kernel.block, partials.slices);
           Indices indices(group.numLoops);
           delinearize(nested, channel, group.features, indices);
           Accumulators sums =
               emitThreadSums(nested, lanes, slicing.walk, indices,
                              getSlice(nested, slicing, number, kernel.thread));
           SmallVector<Value> totals =
               addAcrossBlock(nested, kernel, sums, kernel.shared);
           emitIf(nested, isZero(inside, kernel.thread), [&](OpBuilder &store) {
             storePartials(store, totals, partials, {number, channel});
           });
         });
}

TwoPass::ColumnTiles
TwoPass::planColumns(OpBuilder &b, const Partials &partials, int64_t lanes) {
  IndexBuilder index = at(b);
  ColumnTiles tiles;
  int64_t columns = std::min<int64_t>(schedule.blockAccesses, threads);
  if (std::optional<int64_t> size = getConstantIntValue(sizes[inner]))
    columns = std::min(columns, std::max<int64_t>(*size / lanes, 1));
  int64_t bytesOfColumn = 0;
  for (unsigned i : llvm::seq(numSums()))
    bytesOfColumn += lanes * sumType(i).getWidth() / 8;
  columns = std::min(columns, kMostScratchBytes / bytesOfColumn);
  tiles.columns = columns;
  tiles.rows = std::min(threads / columns, kMostScratchBytes /
                                               (columns * bytesOfColumn) *
                                               getRowsOfWarp(columns));
  tiles.columnsOfRow = index.div(sizes[inner], index.constant(lanes));
  tiles.tilesOfRow = index.ceilDiv(tiles.columnsOfRow, index.constant(columns));
  tiles.outerFeatures = group.features;
  tiles.outerFeatures.pop_back();
  Value outer = index.product(pick(sizes, tiles.outerFeatures));
  tiles.count = index.mul(outer, tiles.tilesOfRow);
  tiles.slicing = planSlices(b, partials, tiles.rows, lanes);
  return tiles;
}

void TwoPass::emitColumnSums(OpBuilder &b, const Partials &partials,
                             int64_t lanes) {
  ColumnTiles tiles = planColumns(b, partials, lanes);
  SmallVector<Type> shared =
      getSharedTypes(getScratchSize(tiles.rows, tiles.columns, lanes));
  Value blocks = at(b).mul(tiles.count, partials.slices);
  launch(b, "reduce", {blocks, threads, shared, overlaps},
         [&](OpBuilder &nested, Kernel kernel) {
           emitSumsOfTile(nested, kernel, partials, tiles, lanes);
         });
}

void TwoPass::emitSumsOfTile(OpBuilder &b, const Kernel &kernel,
                             const Partials &partials, const ColumnTiles &tiles,
                             int64_t lanes) {
  IndexBuilder index = at(b);
  Value slice = index.rem(kernel.block, partials.slices);
  Value tile = index.div(kernel.block, partials.slices);
  Value outerChannel = index.div(tile, tiles.tilesOfRow);
  Value width = index.constant(tiles.columns);
  Value column = index.rem(kernel.thread, width);
  Value row = index.div(kernel.thread, width);
  Value columnOfRow =
      index.add(index.mul(index.rem(tile, tiles.tilesOfRow), width), column);
  Value first = index.mul(columnOfRow, index.constant(lanes));
  Indices indices(group.numLoops);
  if (!tiles.outerFeatures.empty())
    delinearize(b, outerChannel, tiles.outerFeatures, indices);
  indices[inner] = first;
  Value isColumn = isBelow(index, columnOfRow, tiles.columnsOfRow);
  Value isRow = isBelow(index, row, index.constant(tiles.rows));
  Accumulators sums = fromCarried(emitIf(
      b, index.bitAnd(isColumn, isRow),
      [&](OpBuilder &nested) {
        return toCarried(
            emitThreadSums(nested, lanes, tiles.slicing.walk, indices,
                           getSlice(nested, tiles.slicing, slice, row)));
      },
      toCarried(zeroSums(b, lanes))));
  Value firstOfTile =
      index.sub(first, index.mul(column, index.constant(lanes)));
  addAcrossRows(b, kernel, {tiles.rows, tiles.columns, row, column}, sums,
                lanes, kernel.shared,
                [&](OpBuilder &nested, Value element, ValueRange totals) {
                  IndexBuilder inside = at(nested);
                  Value innermost = inside.add(firstOfTile, element);
                  Value isChannel = isBelow(inside, innermost, sizes[inner]);
                  emitIf(nested, isChannel, [&](OpBuilder &store) {
                    Value channel = at(store).add(
                        at(store).mul(outerChannel, sizes[inner]), innermost);
                    storePartials(store, totals, partials, {slice, channel});
                  });
                });
}

TwoPass::FinishGrid TwoPass::planFinish(const Partials &partials) const {
  int64_t slices = 1, bytes = 0;
  if (current.reduction)
    slices = getConstantIntValue(partials.slices).value_or(schedule.sumBlocks);
  for (unsigned i : llvm::seq(numSums()))
    bytes += sumType(i).getWidth() / 8;
  FinishGrid grid;
  grid.rows = std::min<int64_t>(
      llvm::PowerOf2Ceil(llvm::divideCeil(slices, kSlicesAtOnce)),
      kMostFinishRows);
  auto getColumns = [&] {
    return std::max(kFinishThreads / grid.rows, kLeastFinishColumns);
  };
  while (grid.rows > 1 &&
         getScratchSize(grid.rows, getColumns(), /*lanes=*/1) * bytes >
             kMostScratchBytes)
    grid.rows /= 2;
  grid.columns = getColumns();
  return grid;
}

Accumulators TwoPass::addSlices(OpBuilder &b, const Partials &partials,
                                int64_t rows, Value row, Value channel) const {
  IndexBuilder index = at(b);
  std::optional<int64_t> known = getConstantIntValue(partials.slices);
  int64_t atOnce = kSlicesAtOnce;
  if (known)
    atOnce = std::min<int64_t>(atOnce, llvm::divideCeil(*known, rows));
  bool isOneStep = known && *known <= rows * atOnce;
  Value step = index.constant(rows * atOnce);
  auto addStep = [&](OpBuilder &body, Value number,
                     ArrayRef<Accumulator> running) {
    IndexBuilder inside = at(body);
    Value first = inside.add(inside.mul(number, step), row);
    SmallVector<SmallVector<Value>> addends;
    for (int64_t i : llvm::seq(atOnce)) {
      Value slice = inside.add(first, inside.constant(i * rows));
      // Load the first slice instead of one past the last: without guards, no
      // load waits for another.
      Value isSlice = isBelow(inside, slice, partials.slices);
      if (isOneStep && (i + 1) * rows <= *known)
        isSlice = Value();
      else
        slice = inside.select(isSlice, slice, inside.constant(0));
      SmallVector<Value> &values = addends.emplace_back();
      for (auto [sum, memref] : llvm::enumerate(partials.memrefs)) {
        Value value = memref::LoadOp::create(body, loc, memref,
                                             ValueRange{slice, channel});
        if (isSlice)
          value = arith::SelectOp::create(body, loc, isSlice, value,
                                          zero(body, sum));
        values.push_back(value);
      }
    }
    Accumulators sums(running);
    for (const SmallVector<Value> &values : addends)
      sums = addCompensated(body, loc, sums, values);
    return sums;
  };
  if (isOneStep)
    return addStep(b, index.constant(0), zeroSums(b));
  Value steps = index.ceilDiv(partials.slices, step);
  auto loop = scf::ForOp::create(
      b, loc, index.constant(0), steps, index.constant(1),
      toCarried(zeroSums(b)),
      [&](OpBuilder &body, Location, Value number, ValueRange args) {
        scf::YieldOp::create(
            body, loc, toCarried(addStep(body, number, fromCarried(args))));
      });
  return fromCarried(loop.getResults());
}

void TwoPass::emitFinish(OpBuilder &b, const Partials &partials) {
  IndexBuilder index = at(b);
  FinishGrid grid = planFinish(partials);
  Value blocks = index.ceilDiv(channels, index.constant(grid.columns));
  SmallVector<Type> shared;
  if (grid.rows > 1)
    shared =
        getSharedTypes(getScratchSize(grid.rows, grid.columns, /*lanes=*/1));
  bool isLast =
      group.elementwise.empty() && stageNumber + 1 == group.stages.size();
  launch(b, "finish",
         {blocks, grid.rows * grid.columns, shared, overlaps && !isLast},
         [&](OpBuilder &nested, Kernel kernel) {
           emitFinishOfTile(nested, kernel, partials, grid);
         });
}

void TwoPass::emitFinishOfTile(OpBuilder &b, const Kernel &kernel,
                               const Partials &partials,
                               const FinishGrid &grid) {
  IndexBuilder index = at(b);
  Value width = index.constant(grid.columns);
  Value first = index.mul(kernel.block, width);
  auto getIndices = [&](OpBuilder &nested, Value channel) {
    Indices indices(group.numLoops);
    delinearize(nested, channel, group.features, indices);
    return indices;
  };
  DenseMap<OpOperand *, Value> loaded;
  DenseMap<Value, Value> known; // values of stage 0
  auto finish = [&](OpBuilder &nested, Value column, ValueRange totals) {
    Value channel = at(nested).add(first, column);
    emitIf(
        nested, isBelow(at(nested), channel, channels), [&](OpBuilder &inside) {
          Indices indices = getIndices(inside, channel);
          if (moments)
            return finishMoments(inside, indices, totals, loaded, known);
          computeChannel(inside, *this, indices, totals, loaded,
                         DenseMap<Value, Value>(),
                         [&](OpBuilder &store, OpOperand &result, Value value) {
                           if (isRead(*this, result))
                             storeChannel(store, *this, result, value, indices);
                         });
        });
  };
  if (!current.reduction)
    return kernel.forEach(b, grid.columns,
                          [&](OpBuilder &nested, Value column) {
                            finish(nested, column, /*totals=*/{});
                          });
  Value column = index.rem(kernel.thread, width);
  Value row = index.div(kernel.thread, width);
  ThreadGrid threadGrid = {grid.rows, grid.columns, row, column};
  int64_t parts = countRowSharers(kernel, threadGrid, /*lanes=*/1);
  if (std::optional<Value> number =
          kernel.getSharedNumber(b, grid.columns, parts)) {
    // Threads past the last channel load the block's first one.
    Value own = index.add(first, *number);
    Indices indices =
        getIndices(b, index.select(isBelow(index, own, channels), own, first));
    if (moments) {
      known = computeFirst(b, indices);
      loaded = loadMomentInputs(b, indices);
    } else {
      loaded = loadChannelInputs(b, *this, indices, /*storesAtOnce=*/true);
    }
  }
  Value channel = index.add(first, column);
  Accumulators sums = fromCarried(emitIf(
      b, isBelow(index, channel, channels),
      [&](OpBuilder &nested) {
        return toCarried(addSlices(nested, partials, grid.rows, row, channel));
      },
      toCarried(zeroSums(b))));
  addAcrossRows(b, kernel, threadGrid, sums, /*lanes=*/1, kernel.shared,
                finish);
}

void TwoPass::emitStage(OpBuilder &b, SmallVectorImpl<Value> &scratch) {
  IndexBuilder index = at(b);
  Partials partials;
  if (current.reduction) {
    bool isByColumns = group.isFeature(inner);
    Value tiles = channels;
    int64_t lanes = countLanes(*this, getReductions());
    Value elementsOfBlock = index.constant(threads * lanes);
    if (isByColumns) {
      int64_t columns =
          std::min<int64_t>(schedule.blockAccesses, threads) * lanes;
      tiles = index.ceilDiv(channels, index.constant(columns));
      elementsOfBlock = index.constant(
          std::max<int64_t>(threads / schedule.blockAccesses, 1));
    }
    partials = createPartials(b, countSlices(b, tiles, elementsOfBlock));
    emitByLanes(b, getReductions(), [&](OpBuilder &nested, int64_t lanes) {
      if (isByColumns)
        emitColumnSums(nested, partials, lanes);
      else
        emitChannelSums(nested, partials, lanes);
    });
  }
  if (current.reduction || !current.channelwise.empty())
    emitFinish(b, partials);
  llvm::append_range(scratch, partials.memrefs);
}

void TwoPass::emit(OpBuilder &b) {
  SmallVector<Value> scratch;
  for (unsigned stage : llvm::seq(group.stages.size())) {
    enterStage(stage);
    // The kernels of the squares compute the results of all stages.
    if (!moments || computesMoments())
      emitStage(b, scratch);
  }
  for (linalg::GenericOp generic : group.elementwise) {
    emitByLanes(b, generic, [&](OpBuilder &nested, int64_t lanes) {
      Pieces pieces(*this, lanes);
      // The rest of the inputs stays in the second-level cache.
      pieces.isStreaming = generic == group.elementwise.back();
      emitElementwise(nested, generic, pieces);
    });
  }
  // Kernels overlap only if their launches have no other call in between.
  for (Value memref : scratch)
    buffers.free(b, memref);
}

LogicalResult mlir::bngrad::emitTwoPass(OpBuilder &b,
                                        const ScheduledGroup &group,
                                        const GpuSchedule &schedule,
                                        const CudaChip &chip,
                                        DeviceBuffers &buffers) {
  TwoPass(b, group, chip, schedule, buffers).emit(b);
  return success();
}
