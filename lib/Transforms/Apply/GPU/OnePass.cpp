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
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-apply-schedule"

using namespace mlir;
using namespace mlir::bngrad;

/// Whether all data have their dims in the order of the loops.
static bool areInOrder(ArrayRef<linalg::GenericOp> generics) {
  return llvm::all_of(generics, [](linalg::GenericOp generic) {
    return llvm::all_of(generic.getIndexingMapsArray(), [](AffineMap map) {
      return !isDataMap(map) || map.isIdentity();
    });
  });
}

OnePass::OnePass(OpBuilder &b, const ScheduledGroup &group,
                 const OnePassLayout &layout, const GpuSchedule &schedule,
                 DeviceBuffers &buffers)
    : GpuGroup(b, group, schedule, buffers), layout(layout),
      cluster(schedule.clusterBlocks), tile(schedule.blockChannels),
      rowsOfBlock(layout.getRowsOfBlock(schedule)), lanes(countPieceLanes()),
      flatRows(lanes > 1 && areInOrder(group.getDataGenerics())
                   ? layout.getFlatRows(schedule)
                   : std::nullopt),
      exchanged(group) {
  int64_t run = layout.channelsInnermost ? layout.channels : layout.length;
  if (!flatRows &&
      (run % lanes != 0 || (layout.channelsInnermost && tile % lanes != 0)))
    lanes = 1;
  planChannels();
}

int64_t OnePass::countPieceLanes() const {
  for (linalg::GenericOp generic : group.getDataGenerics())
    for (OpOperand &operand : generic->getOpOperands())
      if (isDataMap(generic.getMatchingIndexingMap(&operand)) &&
          (!isContiguous(*this, generic, operand) ||
           !buffers.isAligned(operand.get()))) {
        LDBG() << "no vectors: expected aligned, contiguous data, got "
               << operand.get().getType();
        return 1;
      }
  return countLanes(*this, group.getDataGenerics());
}

namespace {

/// The code of a block. Its elements are flat rows, columns of innermost
/// channels, the rows of one channel, or the rows of several channels.
class BlockCode : BlockPart {
public:
  BlockCode(OpBuilder &b, OnePass &gpu, const TileBlock &block);

  void emit(OpBuilder &b);

private:
  /// Creates the piece of the thread in flat rows.
  void createFlatPieces(OpBuilder &b);
  Value isFlatActive(OpBuilder &b) const;
  /// The threads of a block for the columns of a tile with innermost channels.
  struct Columns {
    ThreadGrid grid;
    Value channel;  // of the first lane
    Value isActive; // whether a thread has a column
  };
  Columns getColumns(OpBuilder &b) const;
  /// Loads the per-channel operands of the elements that a thread computes, if
  /// all these elements share them.
  KeptPieces keepOperands(OpBuilder &b) const;

  /// Emits the sums and the per-channel results of the current stage, which
  /// later stages and the elements then read on chip.
  void emitStage(OpBuilder &b, const Arrivals &arrivals);
  /// The buffers in which the threads exchange the sums of the current stage.
  SmallVector<Value> getScratch() const;
  /// Adds up the sums of this block and stores them to the slots.
  void emitSums(OpBuilder &b, const Arrivals &arrivals) const;
  void emitSumsOfChannel(OpBuilder &b, const Arrivals &arrivals) const;
  void emitSumsOfChannels(OpBuilder &b) const;
  void emitSumsOfColumns(OpBuilder &b, const Arrivals &arrivals) const;
  void emitSumsOfFlatRows(OpBuilder &b, const Arrivals &arrivals) const;
  /// Stores the totals of a channel; only the thread whose `number` is 0 does
  /// so.
  void storeTotals(OpBuilder &b, ValueRange totals, Value number,
                   Value slot) const;
  /// Whether the data of `generic` are on chip and nothing else that it reads
  /// depends on reduced loops.
  bool readsOnChip(linalg::GenericOp generic) const;

  void emitElements(OpBuilder &b) const;
  /// Emits elements for rows of threads. A thread's channels do not change, so
  /// their values stay in registers.
  void emitElementsOfGrid(OpBuilder &b, const ThreadGrid &grid, Value isActive,
                          const Indices &first) const;

  /// The two halves of a barrier of the cluster. Memory is ordered unless the
  /// arrival `isRelaxed`.
  void arrive(OpBuilder &b, bool isRelaxed = false) const;
  void wait(OpBuilder &b) const;

  OnePass &onePass; // enters the stages
  const Value thread;
  TileChannels tileChannels;
  ThreadGrid flatGrid; // the threads for flat rows
  std::unique_ptr<Pieces> pieces;
  FlatPieces *flat = nullptr; // the pieces if they are of flat rows
};

} // namespace

void OnePass::emit(OpBuilder &b) {
  SmallVector<Type> shared;
  for (auto [type, size] : channelBuffers)
    shared.push_back(getSharedType(size, type));
  int64_t scratchSize = threads / CudaChip::kWarpSize;
  if (flatRows) {
    for (linalg::GenericOp generic : group.getDataGenerics())
      for (OpOperand &operand : generic->getOpOperands())
        if (isDataMap(generic.getMatchingIndexingMap(&operand)) &&
            !flatData.contains(operand.get()))
          flatData[operand.get()] = memref::CollapseShapeOp::create(
              b, loc, operand.get(),
              ArrayRef<ReassociationIndices>{{0}, {1, 2}});
    scratchSize = flatRows->rows * tile * flatRows->pieces;
  } else if (layout.channelsInnermost) {
    scratchSize = getScratchSize(countThreadRows(), tile / lanes, lanes);
  }
  for (Type type : exchanged.types)
    shared.push_back(getSharedType(scratchSize, type));
  int64_t tiles = llvm::divideCeil(layout.channels, tile);
  launch(
      b, "one_pass",
      {constant(b, tiles * cluster), threads, shared, /*startsNext=*/false,
       layout.getSharedBytes(schedule), cluster},
      [&](OpBuilder &nested, Kernel kernel) {
        BlockCode(nested, *this, TileBlock(nested, *this, kernel)).emit(nested);
      });
}

TileBlock::TileBlock(OpBuilder &b, const OnePass &gpu, const Kernel &kernel)
    : kernel(kernel) {
  IndexBuilder index = gpu.at(b);
  Value blocks = index.constant(gpu.cluster);
  rank = index.rem(kernel.block, blocks);
  firstChannel =
      index.mul(index.div(kernel.block, blocks), index.constant(gpu.tile));
  int64_t more = gpu.layout.rows % gpu.cluster;
  if (more == 0) {
    rows = index.constant(gpu.rowsOfBlock);
    firstRow = index.mul(rank, rows);
    return;
  }
  // The first blocks have one row more than the others.
  Value least = index.constant(gpu.layout.rows / gpu.cluster);
  Value numLarger = index.constant(more);
  Value isLarger = isBelow(index, rank, numLarger);
  rows = index.select(isLarger, index.constant(gpu.rowsOfBlock), least);
  firstRow = index.add(index.mul(rank, least), index.min(rank, numLarger));
}

BlockCode::BlockCode(OpBuilder &b, OnePass &gpu, const TileBlock &block)
    : BlockPart(gpu, block), onePass(gpu), thread(block.kernel.thread),
      tileChannels(gpu, block) {
  if (gpu.flatRows)
    createFlatPieces(b);
  else
    pieces = std::make_unique<Pieces>(gpu, gpu.lanes);
}

void BlockCode::emit(OpBuilder &b) {
  TileCopies copies(b, gpu, block, *pieces, flat);
  copies.emit(b);
  onePass.enterStage(0);
  bool beginsWithoutSums = !gpu.current.reduction;
  if (beginsWithoutSums)
    tileChannels.finish(b);
  copies.awaitAll(b);
  for (unsigned number :
       llvm::seq<unsigned>(beginsWithoutSums, gpu.group.stages.size())) {
    onePass.enterStage(number);
    tileChannels.load(b);
  }
  pieces->kept = keepOperands(b);
  onePass.enterStage(0);
  if (beginsWithoutSums) {
    gpu.barrier(b);
    tileChannels.readResultsOnChip(b, *pieces, 0);
    onePass.enterStage(gpu.moments ? gpu.moments->sum + 1 : 1);
  }
  auto awaitStep = [&](OpBuilder &nested, Value step) {
    copies.awaitStep(nested, step);
  };
  emitStage(b, {copies.getStepsOfStage(), awaitStep});
  while (gpu.stageNumber + 1 < gpu.group.stages.size()) {
    tileChannels.readResultsOnChip(b, *pieces, gpu.stageNumber);
    onePass.enterStage(gpu.stageNumber + 1);
    emitStage(b, /*arrivals=*/{});
  }
  // Other blocks may still read memory that the results overwrite.
  bool storesLast = gpu.cluster > 1 && gpu.readsResults;
  // No block may exit before the others have read its slots.
  arrive(b, /*isRelaxed=*/!storesLast);
  // The elements need not wait for these stores, as they read results on chip.
  if (!storesLast)
    tileChannels.store(b);
  if (gpu.moments)
    tileChannels.readResultsOnChip(b, *pieces, gpu.moments->sum);
  tileChannels.readResultsOnChip(b, *pieces, gpu.stageNumber);
  emitElements(b);
  wait(b);
  if (storesLast)
    tileChannels.store(b);
}

void BlockCode::emitStage(OpBuilder &b, const Arrivals &arrivals) {
  emitSums(b, arrivals);
  if (gpu.cluster == 1)
    gpu.barrier(b);
  arrive(b);
  wait(b);
  tileChannels.finish(b);
  gpu.barrier(b);
}

SmallVector<Value> BlockCode::getScratch() const {
  ValueRange buffers =
      block.kernel.shared.drop_front(gpu.channelBuffers.size());
  return llvm::map_to_vector(
      gpu.exchanged.buffers[gpu.stageNumber],
      [&](unsigned buffer) -> Value { return buffers[buffer]; });
}

void BlockCode::arrive(OpBuilder &b, bool isRelaxed) const {
  if (gpu.cluster == 1)
    return;
  if (isRelaxed)
    NVVM::ClusterArriveRelaxedOp::create(b, loc, b.getUnitAttr());
  else
    NVVM::ClusterArriveOp::create(b, loc, b.getUnitAttr());
}

void BlockCode::wait(OpBuilder &b) const {
  if (gpu.cluster > 1)
    NVVM::ClusterWaitOp::create(b, loc, b.getUnitAttr());
}

void BlockCode::createFlatPieces(OpBuilder &b) {
  IndexBuilder index = at(b);
  const FlatRows &rows = *gpu.flatRows;
  Value columns = index.constant(rows.columns);
  flatGrid = {rows.rows, rows.columns, index.div(thread, columns),
              index.rem(thread, columns)};
  auto created =
      std::make_unique<FlatPieces>(b, gpu, FlatLayout{rows, layout.length},
                                   flatGrid.column, block.firstChannel);
  Value firstElement =
      index.mul(block.firstChannel, index.constant(layout.length));
  for (auto [memref, view] : gpu.flatData)
    created->views[memref] = {view, index.constant(0), firstElement};
  flat = created.get();
  pieces = std::move(created);
}

KeptPieces BlockCode::keepOperands(OpBuilder &b) const {
  KeptPieces kept;
  Indices indices(gpu.group.numLoops);
  if (flat) {
    indices = flat->getIndices();
  } else if (layout.channelsInnermost) {
    // Threads without a column load the first one.
    Columns columns = getColumns(b);
    indices[gpu.inner] =
        at(b).select(columns.isActive, columns.channel, block.firstChannel);
  } else if (gpu.tile == 1) {
    indices[gpu.group.features.front()] = block.firstChannel;
  } else {
    return kept;
  }
  for (linalg::GenericOp generic : gpu.group.elementwise)
    for (OpOperand *operand : generic.getDpsInputOperands()) {
      Value memref = operand->get();
      AffineMap map = generic.getMatchingIndexingMap(operand);
      bool isOfChannel = isa<MemRefType>(memref.getType()) &&
                         llvm::none_of(gpu.reduced, [&](unsigned loop) {
                           return map.isFunctionOfDim(loop);
                         });
      if (isOfChannel && !gpu.isResult(memref) && !mayChange(gpu, memref) &&
          !generic.getMatchingBlockArgument(operand).use_empty() &&
          !kept.contains({memref, map}))
        kept[{memref, map}] = pieces->load(b, generic, *operand, indices);
    }
  return kept;
}

Value BlockCode::isFlatActive(OpBuilder &b) const {
  if (flatGrid.rows * flatGrid.columns == gpu.threads)
    return arith::ConstantIntOp::create(b, loc, 1, /*width=*/1);
  return isBelow(at(b), flatGrid.row, constant(b, flatGrid.rows));
}

void BlockCode::emitSums(OpBuilder &b, const Arrivals &arrivals) const {
  if (flat)
    emitSumsOfFlatRows(b, arrivals);
  else if (layout.channelsInnermost)
    emitSumsOfColumns(b, arrivals);
  else if (gpu.tile == 1)
    emitSumsOfChannel(b, arrivals);
  else
    emitSumsOfChannels(b);
}

void BlockCode::storeTotals(OpBuilder &b, ValueRange totals, Value number,
                            Value slot) const {
  gpu.emitIf(b, isZero(at(b), number), [&](OpBuilder &nested) {
    tileChannels.storeSlots(nested, totals, slot);
  });
}

void BlockCode::emitSumsOfFlatRows(OpBuilder &b,
                                   const Arrivals &arrivals) const {
  IndexBuilder index = at(b);
  SmallVector<Value> scratch = getScratch();
  Value stride = index.constant(flatGrid.rows);
  Walk walk = gpu.createWalk(b, /*loops=*/{0}, stride, gpu.lanes);
  Value to = index.add(block.firstRow, block.rows);
  gpu.emitIf(b, isFlatActive(b), [&](OpBuilder &nested) {
    Accumulators sums =
        bngrad::emitSums(nested, *flat, walk, flat->getIndices(),
                         {block.firstRow, flatGrid.row, stride, to}, arrivals);
    flat->storeSums(nested, scratch, flatGrid.row, sums);
  });
  gpu.barrier(b);
  Value warpSize = index.constant(CudaChip::kWarpSize);
  auto addChannel = [&](OpBuilder &nested, Value channel) {
    Value lane = at(nested).rem(thread, warpSize);
    SmallVector<Value> totals = flat->addSums(nested, scratch, channel, lane);
    storeTotals(nested, totals, lane, channel);
  };
  gpu.forEach(b, index.div(thread, warpSize), index.constant(gpu.tile),
              index.constant(gpu.threads / CudaChip::kWarpSize), addChannel);
}

bool BlockCode::readsOnChip(linalg::GenericOp generic) const {
  auto isOnChip = [&](OpOperand &operand) {
    AffineMap map = generic.getMatchingIndexingMap(&operand);
    if (isDataMap(map) && !generic.isDpsInput(&operand))
      return false; // a result
    if (generic.getMatchingBlockArgument(&operand).use_empty())
      return true;
    if (!isDataMap(map))
      return llvm::none_of(gpu.reduced, [&](unsigned loop) {
        return map.isFunctionOfDim(loop);
      });
    auto data = pieces->onChip.find(getViewed(operand.get()));
    return data != pieces->onChip.end() && data->second.map == map;
  };
  return llvm::all_of(generic->getOpOperands(), isOnChip) &&
         !generic.hasIndexSemantics();
}

/// All threads work on one channel.
void BlockCode::emitSumsOfChannel(OpBuilder &b,
                                  const Arrivals &arrivals) const {
  IndexBuilder index = at(b);
  Value stride = index.constant(gpu.threads);
  Value length = index.constant(layout.length / gpu.lanes);
  Indices indices(gpu.group.numLoops);
  gpu.delinearize(b, block.firstChannel, gpu.group.features, indices);
  Accumulators sums;
  // The rows of the block are adjacent in shared memory.
  if (llvm::all_of(gpu.computesMoments()
                       ? gpu.group.getReductions()
                       : SmallVector<linalg::GenericOp>{gpu.current.reduction},
                   [&](auto reduction) { return readsOnChip(reduction); })) {
    sums = bngrad::emitSums(
        b, LinearPieces(*pieces),
        gpu.createWalk(b, {gpu.inner}, stride, gpu.lanes), indices,
        {index.constant(0), thread, stride, index.mul(block.rows, length)},
        arrivals);
  } else {
    Value first = index.mul(block.firstRow, length);
    Value to = index.add(first, index.mul(block.rows, length));
    sums = bngrad::emitSums(b, *pieces,
                            gpu.createWalk(b, gpu.reduced, stride, gpu.lanes),
                            indices, {first, thread, stride, to}, arrivals);
  }
  storeTotals(b, addAcrossBlock(b, block.kernel, sums, getScratch()), thread,
              index.constant(0));
}

/// Each warp works on one channel.
void BlockCode::emitSumsOfChannels(OpBuilder &b) const {
  IndexBuilder index = at(b);
  Value stride = index.constant(CudaChip::kWarpSize);
  Value warp = index.div(thread, stride);
  Value lane = index.rem(thread, stride);
  Walk walk = gpu.createWalk(b, gpu.reduced, stride, gpu.lanes);
  Value length = index.constant(layout.length / gpu.lanes);
  Value first = index.mul(block.firstRow, length);
  Value to = index.add(first, index.mul(block.rows, length));
  auto addChannel = [&](OpBuilder &nested, Value channel) {
    Indices indices(gpu.group.numLoops);
    gpu.delinearize(nested, at(nested).add(block.firstChannel, channel),
                    gpu.group.features, indices);
    Accumulators sums = bngrad::emitSums(nested, *pieces, walk, indices,
                                         {first, lane, stride, to});
    SmallVector<Value> totals;
    for (Value sum : gpu.joinErrors(nested, sums))
      totals.push_back(addAcrossWarp(nested, loc, sum, CudaChip::kWarpSize));
    storeTotals(nested, totals, lane, channel);
  };
  gpu.forEach(b, warp, index.constant(gpu.tile),
              index.constant(gpu.threads / CudaChip::kWarpSize), addChannel);
}

BlockCode::Columns BlockCode::getColumns(OpBuilder &b) const {
  IndexBuilder index = at(b);
  int64_t columns = gpu.tile / gpu.lanes, rows = gpu.countThreadRows();
  Value width = index.constant(columns);
  ThreadGrid grid = {rows, columns, index.div(thread, width),
                     index.rem(thread, width)};
  Value channel = index.add(block.firstChannel,
                            index.mul(grid.column, index.constant(gpu.lanes)));
  Value isActive =
      index.bitAnd(isBelow(index, channel, index.constant(layout.channels)),
                   isBelow(index, grid.row, index.constant(rows)));
  return {grid, channel, isActive};
}

/// Adjacent threads work on adjacent columns of channels.
void BlockCode::emitSumsOfColumns(OpBuilder &b,
                                  const Arrivals &arrivals) const {
  IndexBuilder index = at(b);
  Columns columns = getColumns(b);
  const ThreadGrid &grid = columns.grid;
  Value stride = index.constant(grid.rows);
  Walk walk = gpu.createWalk(b, gpu.reduced, stride, gpu.lanes);
  Indices indices(gpu.group.numLoops);
  indices[gpu.inner] = columns.channel;
  Value to = index.add(block.firstRow, block.rows);
  Accumulators sums = fromCarried(gpu.emitIf(
      b, columns.isActive,
      [&](OpBuilder &nested) {
        return toCarried(
            bngrad::emitSums(nested, *pieces, walk, indices,
                             {block.firstRow, grid.row, stride, to}, arrivals));
      },
      toCarried(gpu.zeroSums(b, gpu.lanes))));
  addAcrossRows(b, block.kernel, grid, sums, gpu.lanes, getScratch(),
                [&](OpBuilder &nested, Value element, ValueRange totals) {
                  tileChannels.storeSlots(nested, totals, element);
                });
}

void BlockCode::emitElements(OpBuilder &b) const {
  if (flat) {
    Indices first = flat->getIndices();
    first[0] = block.firstRow;
    return emitElementsOfGrid(b, flatGrid, isFlatActive(b), first);
  }
  if (layout.channelsInnermost) {
    Columns columns = getColumns(b);
    Indices first(gpu.group.numLoops, block.firstRow);
    first[gpu.inner] = columns.channel;
    return emitElementsOfGrid(b, columns.grid, columns.isActive, first);
  }
  IndexBuilder index = at(b);
  SmallVector<unsigned> loops;
  SmallVector<Value> sizes;
  Indices first(gpu.group.numLoops, index.constant(0));
  for (unsigned loop : llvm::seq(gpu.group.numLoops)) {
    if (gpu.group.isFeature(loop)) {
      first[loop] = block.firstChannel;
      // The values of one channel stay in registers.
      if (gpu.tile == 1)
        continue;
      sizes.push_back(index.constant(gpu.tile));
    } else if (loop == gpu.inner) {
      sizes.push_back(index.constant(layout.length / gpu.lanes));
    } else {
      first[loop] = block.firstRow;
      sizes.push_back(block.rows);
    }
    loops.push_back(loop);
  }
  Value stride = index.constant(gpu.threads);
  Walk walk(index, loops, sizes, stride, gpu.inner, gpu.lanes);
  ThreadPieces all = {index.constant(0), thread, stride,
                      walk.countPieces(index)};
  for (linalg::GenericOp generic : gpu.group.elementwise)
    pieces->emitElements(b, generic, walk, first, all);
}

void BlockCode::emitElementsOfGrid(OpBuilder &b, const ThreadGrid &grid,
                                   Value isActive, const Indices &first) const {
  IndexBuilder index = at(b);
  Value stride = index.constant(grid.rows);
  Walk walk(index, gpu.reduced.front(), block.rows, stride, gpu.inner,
            gpu.lanes);
  for (linalg::GenericOp generic : gpu.group.elementwise)
    gpu.emitIf(b, isActive, [&](OpBuilder &nested) {
      pieces->emitElements(nested, generic, walk, first,
                           {index.constant(0), grid.row, stride, block.rows});
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
  // Kernels that access vectors would run only if a part of the data is
  // aligned, and would take half of the time in which a driver loads the
  // module.
  GpuSchedule unaligned = getTwoPassInstead(group, schedule, chip);
  unaligned.accessBits /= getMostLanes(generics, unaligned.accessBits);
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
        result = emitTwoPass(nested, group, unaligned, chip, buffers);
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
