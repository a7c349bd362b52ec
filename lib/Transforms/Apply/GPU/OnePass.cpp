//===- OnePass.cpp - one kernel that reads each byte once -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block copies its rows of a tile of channels to shared memory, adds up the
// terms, and stores its sums to a slot for each channel. It adds the slots of
// all blocks of the cluster and computes the per-channel results. Then it
// computes its elements from the rows that are still in shared memory.
//
//===----------------------------------------------------------------------===//

#include "GpuSchedules.h"
#include "OnePassKernel.h"
#include "Schedule/ChooseGpuSchedule.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-apply-schedule"

using namespace mlir;
using namespace mlir::bngrad;

OnePass::OnePass(OpBuilder &b, const ScheduledGroup &group,
                 const OnePassLayout &layout, const GpuSchedule &schedule,
                 DeviceBuffers &buffers)
    : GpuKernels(b, group, schedule, buffers), layout(layout),
      cluster(schedule.clusterBlocks), tile(schedule.blockChannels),
      rowsOfBlock(layout.getRowsOfBlock(schedule)), lanes(countLanes()),
      flatRows(lanes > 1 && isInOrder() ? layout.getFlatRows(schedule)
                                        : std::nullopt) {
  int64_t run = layout.channelsInnermost ? layout.channels : layout.length;
  if (!flatRows &&
      (run % lanes != 0 || (layout.channelsInnermost && tile % lanes != 0)))
    lanes = 1;
  planChannels();
}

int64_t OnePass::countLanes() const {
  for (linalg::GenericOp generic : group.getDataGenerics())
    for (OpOperand &operand : generic->getOpOperands())
      if (isDataMap(generic.getMatchingIndexingMap(&operand)) &&
          (!isContiguous(generic, operand) ||
           !buffers.isAligned(operand.get()))) {
        LDBG() << "no vectors: expected aligned, contiguous data, got "
               << operand.get().getType();
        return 1;
      }
  return getLanes(group.getDataGenerics());
}

bool OnePass::isInOrder() const {
  return llvm::all_of(group.getDataGenerics(), [](linalg::GenericOp generic) {
    return llvm::all_of(generic.getIndexingMapsArray(), [](AffineMap map) {
      return !isDataMap(map) || map.isIdentity();
    });
  });
}

void OnePass::emit(OpBuilder &b) {
  SmallVector<Type> shared;
  for (auto [type, size] : channelBuffers)
    shared.push_back(getSharedType(size, type));
  if (flatRows) {
    for (linalg::GenericOp generic : group.getDataGenerics())
      for (OpOperand &operand : generic->getOpOperands())
        if (isDataMap(generic.getMatchingIndexingMap(&operand)) &&
            !flatData.contains(operand.get()))
          flatData[operand.get()] = memref::CollapseShapeOp::create(
              b, loc, operand.get(),
              ArrayRef<ReassociationIndices>{{0}, {1, 2}});
    int64_t elements = flatRows->rows * tile * flatRows->pieces;
    for (unsigned i : llvm::seq(numSums()))
      shared.push_back(getSharedType(elements, sumType(i)));
  } else if (layout.channelsInnermost) {
    int64_t columns = tile / lanes;
    int64_t rowsOfThreads = std::max<int64_t>(threads / columns, 1);
    for (unsigned i : llvm::seq(numSums()))
      shared.push_back(getSharedType(
          getScratchSize(rowsOfThreads, columns, lanes), sumType(i)));
  } else {
    llvm::append_range(shared, getSharedTypesForBlock());
  }
  int64_t tiles = llvm::divideCeil(layout.channels, tile);
  launch(b, "one_pass",
         {constant(b, tiles * cluster), threads, shared,
          layout.getSharedBytes(schedule), cluster},
         [&](OpBuilder &nested, Kernel kernel) { emitKernel(nested, kernel); });
}

void OnePass::emitKernel(OpBuilder &b, const Kernel &kernel) {
  IndexBuilder index = at(b);
  Value blocks = index.constant(cluster);
  rank = index.rem(kernel.block, blocks);
  firstChannel =
      index.mul(index.div(kernel.block, blocks), index.constant(tile));
  takeRows(b);
  ValueRange shared = kernel.shared;
  scratch = shared.drop_front(channelBuffers.size());
  createFlatPiece(b, kernel);
  createViews(b);
  createChannels(b, shared.take_front(channelBuffers.size()));
  Copy copy = chooseCopy();
  stages = planStages(copy);
  switch (copy) {
  case Copy::Bulk:
    emitBulkCopies(b, kernel);
    break;
  case Copy::AsyncPieces:
    emitAsyncPieces(b, kernel);
    break;
  case Copy::Elements:
    emitElementCopies(b, kernel);
    break;
  }
  loadChannels(b, kernel);
  keepOperands(b, kernel);
  emitSumsOfBlock(b, kernel);
  if (cluster == 1)
    barrier(b);
  arrive(b);
  wait(b);
  finishChannels(b, kernel);
  barrier(b);
  // Other blocks may still read memory that the results overwrite.
  bool storesLast = cluster > 1 && readsResults;
  // No block may exit before the others have read its slots.
  arrive(b, /*isRelaxed=*/!storesLast);
  // The elements need not wait for these stores, as they read results on chip.
  if (!storesLast)
    storeChannels(b, kernel);
  readResultsOnChip(b);
  emitElementwise(b, kernel);
  wait(b);
  if (storesLast)
    storeChannels(b, kernel);
}

void OnePass::takeRows(OpBuilder &b) {
  IndexBuilder index = at(b);
  int64_t more = layout.rows % cluster;
  if (more == 0) {
    rows = index.constant(rowsOfBlock);
    firstRow = index.mul(rank, rows);
    return;
  }
  // The first blocks have one row more than the others.
  Value least = index.constant(layout.rows / cluster);
  Value numLarger = index.constant(more);
  Value isLarger = index.compare(arith::CmpIPredicate::ult, rank, numLarger);
  rows = index.select(isLarger, index.constant(rowsOfBlock), least);
  firstRow = index.add(index.mul(rank, least), index.min(rank, numLarger));
}

void OnePass::keepOperands(OpBuilder &b, const Kernel &kernel) {
  kept.clear();
  Indices indices(group.numLoops);
  if (flatRows) {
    indices = flatPiece.getIndices();
    flat = &flatPiece;
  } else if (layout.channelsInnermost) {
    // Threads without a column load the first one.
    Columns columns = getColumns(b, kernel);
    indices[inner] =
        at(b).select(columns.isActive, columns.channel, firstChannel);
  } else if (tile == 1) {
    indices[group.features.front()] = firstChannel;
  } else {
    return;
  }
  for (linalg::GenericOp generic : group.elementwise)
    for (OpOperand *operand : generic.getDpsInputOperands()) {
      Value memref = operand->get();
      AffineMap map = generic.getMatchingIndexingMap(operand);
      bool isOfChannel = isa<MemRefType>(memref.getType()) &&
                         llvm::none_of(reduced, [&](unsigned loop) {
                           return map.isFunctionOfDim(loop);
                         });
      if (isOfChannel && !isResult(memref) && !mayChange(memref) &&
          !generic.getMatchingBlockArgument(operand).use_empty() &&
          !kept.contains({memref, map}))
        kept[{memref, map}] = loadPiece(b, generic, *operand, indices, lanes);
    }
  flat = nullptr;
}

void OnePass::createFlatPiece(OpBuilder &b, const Kernel &kernel) {
  if (!flatRows)
    return;
  IndexBuilder index = at(b);
  Value columns = index.constant(flatRows->columns);
  flatGrid = {flatRows->rows, flatRows->columns,
              index.div(kernel.thread, columns),
              index.rem(kernel.thread, columns)};
  flatPiece = getFlatPiece(b, {*flatRows, layout.length}, flatGrid.column,
                           firstChannel);
  Value firstElement = index.mul(firstChannel, index.constant(layout.length));
  for (auto [memref, view] : flatData)
    flatPiece.views[memref] = {view, index.constant(0), firstElement};
}

Value OnePass::isFlatActive(OpBuilder &b) const {
  if (flatGrid.rows * flatGrid.columns == threads)
    return arith::ConstantIntOp::create(b, loc, 1, /*width=*/1);
  return at(b).compare(arith::CmpIPredicate::ult, flatGrid.row,
                       constant(b, flatGrid.rows));
}

void OnePass::emitSumsOfFlatRows(OpBuilder &b, const Kernel &kernel) {
  IndexBuilder index = at(b);
  Value stride = index.constant(flatGrid.rows);
  Walk walk = createWalk(b, /*loops=*/{0}, stride, lanes);
  Value to = index.add(firstRow, rows);
  flat = &flatPiece;
  emitIf(b, isFlatActive(b), [&](OpBuilder &nested) {
    Accumulators sums = emitSums(nested, walk, flatPiece.getIndices(),
                                 {firstRow, flatGrid.row, stride, to}, lanes);
    storeFlatSums(nested, scratch, {*flatRows, layout.length}, flatGrid.row,
                  sums);
  });
  flat = nullptr;
  barrier(b);
  Value warpSize = index.constant(CudaChip::kWarpSize);
  scf::ForOp::create(
      b, loc, index.div(kernel.thread, warpSize), index.constant(tile),
      index.constant(threads / CudaChip::kWarpSize), ValueRange(),
      [&](OpBuilder &nested, Location, Value channel, ValueRange) {
        IndexBuilder inside = at(nested);
        Value lane = inside.rem(kernel.thread, warpSize);
        SmallVector<Value> totals = addFlatSums(
            nested, scratch, {*flatRows, layout.length}, channel, lane);
        Value isFirst =
            inside.compare(arith::CmpIPredicate::eq, lane, inside.constant(0));
        emitIf(nested, isFirst,
               [&](OpBuilder &store) { storeSlots(store, totals, channel); });
        scf::YieldOp::create(nested, loc);
      });
}

void OnePass::emitFlatElements(OpBuilder &b) {
  IndexBuilder index = at(b);
  Value stride = index.constant(flatGrid.rows);
  Walk walk = {{0}, {rows}, {stride}};
  Indices first = flatPiece.getIndices();
  first[0] = firstRow;
  flat = &flatPiece;
  for (linalg::GenericOp generic : group.elementwise) {
    emitIf(b, isFlatActive(b), [&](OpBuilder &nested) {
      emitElements(nested, generic, walk, first,
                   {index.constant(0), flatGrid.row, stride, rows}, lanes);
    });
  }
  flat = nullptr;
}

/// A thread's channels do not change, so their values stay in registers.
void OnePass::emitElementsOfColumns(OpBuilder &b, const Kernel &kernel) {
  IndexBuilder index = at(b);
  Columns columns = getColumns(b, kernel);
  Value stride = index.constant(columns.grid.rows);
  Walk walk = {reduced, {rows}, {stride}};
  Indices first(group.numLoops, firstRow);
  first[inner] = columns.channel;
  for (linalg::GenericOp generic : group.elementwise) {
    emitIf(b, columns.isActive, [&](OpBuilder &nested) {
      emitElements(nested, generic, walk, first,
                   {index.constant(0), columns.grid.row, stride, rows}, lanes);
    });
  }
}

void OnePass::emitElementwise(OpBuilder &b, const Kernel &kernel) {
  if (flatRows)
    return emitFlatElements(b);
  if (layout.channelsInnermost)
    return emitElementsOfColumns(b, kernel);
  IndexBuilder index = at(b);
  Walk walk;
  Indices first(group.numLoops, index.constant(0));
  for (unsigned loop : llvm::seq(group.numLoops)) {
    if (group.isFeature(loop)) {
      first[loop] = firstChannel;
      // The values of one channel stay in registers.
      if (tile == 1)
        continue;
      walk.sizes.push_back(index.constant(tile));
    } else if (loop == inner) {
      walk.sizes.push_back(index.constant(layout.length / lanes));
    } else {
      first[loop] = firstRow;
      walk.sizes.push_back(rows);
    }
    walk.loops.push_back(loop);
  }
  Value stride = index.constant(threads);
  walk.strides = delinearize(b, walk, stride);
  ThreadPieces pieces = {index.constant(0), kernel.thread, stride,
                         countPieces(b, walk)};
  for (linalg::GenericOp generic : group.elementwise) {
    emitElements(b, generic, walk, first, pieces, lanes);
  }
}

void OnePass::emitSumsOfBlock(OpBuilder &b, const Kernel &kernel) {
  if (flatRows)
    emitSumsOfFlatRows(b, kernel);
  else if (layout.channelsInnermost)
    emitSumsOfColumns(b, kernel);
  else if (tile == 1)
    emitSumsOfChannel(b, kernel);
  else
    emitSumsOfChannels(b, kernel);
}

bool OnePass::readsOnChip(linalg::GenericOp generic) const {
  auto isOnChip = [&](OpOperand &operand) {
    AffineMap map = generic.getMatchingIndexingMap(&operand);
    if (isDataMap(map) && !generic.isDpsInput(&operand))
      return false; // a result
    if (generic.getMatchingBlockArgument(&operand).use_empty())
      return true;
    if (!isDataMap(map))
      return llvm::none_of(
          reduced, [&](unsigned loop) { return map.isFunctionOfDim(loop); });
    auto data = onChip.find(getViewed(operand.get()));
    return data != onChip.end() && data->second.map == map;
  };
  return llvm::all_of(generic->getOpOperands(), isOnChip) &&
         !generic.hasIndexSemantics();
}

/// All threads work on one channel.
void OnePass::emitSumsOfChannel(OpBuilder &b, const Kernel &kernel) {
  IndexBuilder index = at(b);
  Value stride = index.constant(threads);
  Value length = index.constant(layout.length / lanes);
  Indices indices(group.numLoops);
  delinearize(b, firstChannel, group.features, indices);
  Accumulators sums;
  // The rows of the block are adjacent in shared memory.
  if (readsOnChip(current.reduction)) {
    isLinear = true;
    sums = emitSums(
        b, createWalk(b, {inner}, stride, lanes), indices,
        {index.constant(0), kernel.thread, stride, index.mul(rows, length)},
        lanes);
    isLinear = false;
  } else {
    Value first = index.mul(firstRow, length);
    Value to = index.add(first, index.mul(rows, length));
    sums = emitSums(b, createWalk(b, reduced, stride, lanes), indices,
                    {first, kernel.thread, stride, to}, lanes);
  }
  SmallVector<Value> totals =
      addAcrossBlock(b, {kernel.block, kernel.thread, threads, scratch}, sums);
  Value zero = index.constant(0);
  emitIf(b, index.compare(arith::CmpIPredicate::eq, kernel.thread, zero),
         [&](OpBuilder &nested) { storeSlots(nested, totals, zero); });
}

/// Each warp works on one channel.
void OnePass::emitSumsOfChannels(OpBuilder &b, const Kernel &kernel) {
  IndexBuilder index = at(b);
  Value stride = index.constant(CudaChip::kWarpSize);
  Value warp = index.div(kernel.thread, stride);
  Value lane = index.rem(kernel.thread, stride);
  Walk walk = createWalk(b, reduced, stride, lanes);
  Value length = index.constant(layout.length / lanes);
  Value first = index.mul(firstRow, length);
  Value to = index.add(first, index.mul(rows, length));
  scf::ForOp::create(
      b, loc, warp, index.constant(tile),
      index.constant(threads / CudaChip::kWarpSize), ValueRange(),
      [&](OpBuilder &nested, Location, Value channel, ValueRange) {
        IndexBuilder inside = at(nested);
        Indices indices(group.numLoops);
        delinearize(nested, inside.add(firstChannel, channel), group.features,
                    indices);
        Accumulators sums =
            emitSums(nested, walk, indices, {first, lane, stride, to}, lanes);
        SmallVector<Value> totals;
        for (Value sum : joinErrors(nested, sums))
          totals.push_back(addAcrossWarp(nested, sum, CudaChip::kWarpSize));
        Value isFirst =
            inside.compare(arith::CmpIPredicate::eq, lane, inside.constant(0));
        emitIf(nested, isFirst,
               [&](OpBuilder &store) { storeSlots(store, totals, channel); });
        scf::YieldOp::create(nested, loc);
      });
}

OnePass::Columns OnePass::getColumns(OpBuilder &b, const Kernel &kernel) const {
  IndexBuilder index = at(b);
  int64_t columns = tile / lanes;
  int64_t rowsOfThreads = std::max<int64_t>(threads / columns, 1);
  Value width = index.constant(columns);
  ThreadGrid grid = {rowsOfThreads, columns, index.div(kernel.thread, width),
                     index.rem(kernel.thread, width)};
  Value slot = index.mul(grid.column, index.constant(lanes));
  Value channel = index.add(firstChannel, slot);
  auto isBelow = [&](Value value, int64_t bound) {
    return index.compare(arith::CmpIPredicate::ult, value,
                         index.constant(bound));
  };
  Value isActive = index.bitAnd(isBelow(channel, layout.channels),
                                isBelow(grid.row, rowsOfThreads));
  return {grid, slot, channel, isActive};
}

/// Adjacent threads work on adjacent columns of channels.
void OnePass::emitSumsOfColumns(OpBuilder &b, const Kernel &kernel) {
  IndexBuilder index = at(b);
  Columns columns = getColumns(b, kernel);
  const ThreadGrid &grid = columns.grid;
  Value stride = index.constant(grid.rows);
  Walk walk = createWalk(b, reduced, stride, lanes);
  Indices indices(group.numLoops);
  indices[inner] = columns.channel;
  Value row = grid.row, to = index.add(firstRow, rows);
  Accumulators sums = fromCarried(emitIf(
      b, columns.isActive,
      [&](OpBuilder &nested) {
        return toCarried(emitSums(nested, walk, indices,
                                  {firstRow, row, stride, to}, lanes));
      },
      toCarried(zeroSums(b, lanes))));
  addAcrossRows(b, {kernel.block, kernel.thread, threads, scratch}, grid, sums,
                lanes,
                [&](OpBuilder &nested, Value element, ValueRange totals) {
                  storeSlots(nested, totals, element);
                });
}

/// Emits the kernel for data with the alignment that its copies need. Unknown
/// alignments are tested at run time; two passes run for other data.
static LogicalResult emitAligned(OpBuilder &b, const ScheduledGroup &group,
                                 const OnePassLayout &layout,
                                 const GpuSchedule &schedule,
                                 const CudaChip &chip, DeviceBuffers &buffers) {
  SmallVector<linalg::GenericOp> generics = group.getDataGenerics();
  // Data with gaps are read element by element at any alignment.
  bool isDense = llvm::all_of(generics, [](linalg::GenericOp generic) {
    return llvm::all_of(generic->getOpOperands(), [&](OpOperand &operand) {
      auto type = dyn_cast<MemRefType>(operand.get().getType());
      return !type || type.getLayout().isIdentity() ||
             !isDataMap(generic.getMatchingIndexingMap(&operand));
    });
  });
  Value isAligned;
  if (isDense)
    isAligned = buffers.testAlignment(b, generics, group.numLoops - 1);
  if (!isAligned) {
    OnePass(b, group, layout, schedule, buffers).emit(b);
    return success();
  }
  LogicalResult result = success();
  // scf.if builds both branches before it is inserted into the function, so the
  // kernels of both are in one module.
  scf::IfOp::create(
      b, group.getMembers().front().getLoc(), isAligned,
      [&](OpBuilder &nested, Location loc) {
        buffers.setAligned(true);
        OnePass(nested, group, layout, schedule, buffers).emit(nested);
        buffers.setAligned(false);
        scf::YieldOp::create(nested, loc);
      },
      [&](OpBuilder &nested, Location loc) {
        result =
            emitTwoPass(nested, group, getTwoPassInstead(group, schedule, chip),
                        chip, buffers);
        scf::YieldOp::create(nested, loc);
      });
  return result;
}

LogicalResult mlir::bngrad::emitOnePass(OpBuilder &b,
                                        const ScheduledGroup &group,
                                        const GpuSchedule &schedule,
                                        const CudaChip &chip,
                                        DeviceBuffers &buffers) {
  linalg::GenericOp first = group.getMembers().front();
  std::string reason;
  FailureOr<OnePassLayout> layout = getOnePassLayout(group, schedule, reason);
  if (failed(layout)) {
    emitMissed(first, "bngrad-apply-schedule",
               "two passes instead of one: " + reason);
    return emitTwoPass(b, group, getTwoPassInstead(group, schedule, chip), chip,
                       buffers);
  }
  if (failed(layout->verifySharedMemory(schedule, chip, reason)))
    return first.emitOpError() << reason;
  return emitAligned(b, group, *layout, schedule, chip, buffers);
}
