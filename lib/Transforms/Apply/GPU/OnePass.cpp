//===- OnePass.cpp - one kernel that reads each byte once -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block copies its rows of a tile of channels into shared memory, adds up
// the terms, and puts its sums into a slot for each channel. The first block of
// the cluster adds the slots of all blocks, in their order, and computes the
// per-channel results. Then each block computes its elements from the rows that
// it still has in shared memory.
//
//===----------------------------------------------------------------------===//

#include "OnePass.h"
#include "Apply/Sums.h"
#include "GpuKernels.h"
#include "Schedule/OnePassLayout.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-apply-schedule"

using namespace mlir;
using namespace mlir::bngrad;

/// Hint to the wait for a copy: how long a thread may sleep before it looks
/// again, in ns.
static constexpr int64_t kWaitHint = 10'000'000;

namespace {
class OnePass : public GpuKernels {
public:
  OnePass(OpBuilder &b, const ScheduledGroup &group,
          const OnePassLayout &layout, const GpuSchedule &schedule,
          DeviceBuffers &buffers);

  void emit(OpBuilder &b);

private:
  /// How operands get into shared memory.
  enum class Copy { Bulk, AsyncPieces, Elements };

  Copy chooseCopy() const;
  /// Bytes of a run of memory that belongs to a row of a tile.
  int64_t getRunBytes(unsigned operand) const {
    return tile * layout.length * layout.widths[operand];
  }
  void emitKernel(OpBuilder &b, const Kernel &kernel);
  /// Views of shared memory for the operands.
  void createViews(OpBuilder &b);
  /// Rows of this block that are contiguous in memory.
  struct CopiedRows {
    Value first, count;
  };
  /// The copies of rows of all operands, which arrive at the barrier to which
  /// `arrival` points.
  void emitBulkCopy(OpBuilder &b, const CopiedRows &copied,
                    Value arrival) const;
  void emitBulkCopies(OpBuilder &b, const Kernel &kernel);
  void emitCopies(OpBuilder &b, const Kernel &kernel, bool inPieces);
  /// The sums of this block, stored to the slots.
  void emitSumsOfBlock(OpBuilder &b, const Kernel &kernel);
  void emitSumsOfChannel(OpBuilder &b, const Kernel &kernel);
  void emitSumsOfChannels(OpBuilder &b, const Kernel &kernel);
  void emitSumsOfColumns(OpBuilder &b, const Kernel &kernel);
  void finishChannels(OpBuilder &b, const Kernel &kernel);
  void emitElementwise(OpBuilder &b, const Kernel &kernel) const;
  Value loadSlot(OpBuilder &b, unsigned sum, Value channel, Value block) const;
  void synchronize(OpBuilder &b) const;

  OnePassLayout layout;
  int64_t cluster, tile, rowsOfBlock;
  int64_t lanes;
  // In the kernel:
  Value rank;                 // of the block in its cluster
  Value firstRow, rows;       // of this block
  Value firstChannel;         // of the tile
  SmallVector<Value> copies;  // of the operands, in shared memory
  SmallVector<Value> slots;   // by sum
  SmallVector<Value> scratch; // for sums across a block
};
} // namespace

OnePass::OnePass(OpBuilder &b, const ScheduledGroup &group,
                 const OnePassLayout &layout, const GpuSchedule &schedule,
                 DeviceBuffers &buffers)
    : GpuKernels(b, group, schedule, buffers), layout(layout),
      cluster(schedule.clusterBlocks), tile(schedule.blockChannels) {
  rowsOfBlock = layout.getRowsOfBlock(schedule);
  lanes = getLanes(group.getDataGenerics());
  int64_t run = layout.channelsInnermost ? layout.channels : layout.length;
  if (run % lanes != 0 || (layout.channelsInnermost && tile % lanes != 0))
    lanes = 1;
  for (linalg::GenericOp generic : group.getDataGenerics())
    for (OpOperand &operand : generic->getOpOperands())
      if (isDataMap(generic.getMatchingIndexingMap(&operand)) &&
          (!isContiguous(generic, operand) ||
           !buffers.isAligned(operand.get()))) {
        LDBG() << "no vectors: expected aligned, contiguous data, got "
               << operand.get().getType();
        lanes = 1;
      }
}

OnePass::Copy OnePass::chooseCopy() const {
  bool isAligned = true;
  for (auto [i, operand] : llvm::enumerate(layout.operands)) {
    int64_t strideBytes = layout.channels * layout.length * layout.widths[i];
    isAligned &= buffers.isAligned(operand) &&
                 cast<MemRefType>(operand.getType()).getLayout().isIdentity() &&
                 getRunBytes(i) % CudaChip::kCopyBytes == 0 &&
                 strideBytes % CudaChip::kCopyBytes == 0;
  }
  if (!isAligned) {
    LDBG() << "copies of single elements: expected runs of whole 16 bytes";
    return Copy::Elements;
  }
  // Short runs would keep one thread busy for long.
  bool isShort = layout.channelsInnermost && tile < layout.channels;
  return isShort ? Copy::AsyncPieces : Copy::Bulk;
}

void OnePass::emit(OpBuilder &b) {
  SmallVector<Type> shared;
  for (unsigned i : llvm::seq(numSums()))
    shared.push_back(getSharedType(tile, sumType(i)));
  if (layout.channelsInnermost) {
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
  firstRow = index.mul(rank, index.constant(rowsOfBlock));
  rows = index.max(index.min(index.sub(index.constant(layout.rows), firstRow),
                             index.constant(rowsOfBlock)),
                   index.constant(0));
  slots.assign(kernel.shared.begin(), kernel.shared.begin() + numSums());
  scratch.assign(kernel.shared.begin() + numSums(), kernel.shared.end());
  createViews(b);
  switch (chooseCopy()) {
  case Copy::Bulk:
    emitBulkCopies(b, kernel);
    break;
  case Copy::AsyncPieces:
    emitCopies(b, kernel, /*inPieces=*/true);
    break;
  case Copy::Elements:
    emitCopies(b, kernel, /*inPieces=*/false);
    break;
  }
  emitSumsOfBlock(b, kernel);
  synchronize(b);
  finishChannels(b, kernel);
  synchronize(b);
  emitElementwise(b, kernel);
}

void OnePass::emitElementwise(OpBuilder &b, const Kernel &kernel) const {
  IndexBuilder index = at(b);
  Walk walk;
  walk.loops = llvm::to_vector(llvm::seq<unsigned>(0, group.numLoops));
  Indices first(group.numLoops, index.constant(0));
  for (unsigned loop : walk.loops) {
    if (group.isFeature(loop)) {
      first[loop] = firstChannel;
      // The last tile may have fewer channels.
      Value channelsOfTile = index.constant(tile);
      if (layout.channels % tile != 0)
        channelsOfTile =
            index.min(channelsOfTile,
                      index.sub(index.constant(layout.channels), firstChannel));
      walk.sizes.push_back(
          loop == inner ? index.div(channelsOfTile, index.constant(lanes))
                        : channelsOfTile);
    } else if (loop == inner) {
      walk.sizes.push_back(index.constant(layout.length / lanes));
    } else {
      first[loop] = firstRow;
      walk.sizes.push_back(rows);
    }
  }
  Value stride = index.constant(threads);
  walk.strides = delinearize(b, walk, stride);
  for (linalg::GenericOp generic : group.elementwise) {
    emitElements(
        b, generic, walk, first,
        {index.constant(0), kernel.thread, stride, countPieces(b, walk)},
        lanes);
    // The next one may read results of another thread.
    if (generic != group.elementwise.back())
      barrier(b);
  }
}

void OnePass::createViews(OpBuilder &b) {
  onChip.clear();
  copies.clear();
  if (layout.operands.empty())
    return;
  IndexBuilder index = at(b);
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto bytesType = MemRefType::get({ShapedType::kDynamic}, b.getI8Type(),
                                   MemRefLayoutAttrInterface(), space);
  Value bytes = gpu::DynamicSharedMemoryOp::create(b, loc, bytesType);
  for (auto [i, operand] : llvm::enumerate(layout.operands)) {
    SmallVector<int64_t> shape;
    SmallVector<Value> first;
    for (unsigned loop : llvm::seq(group.numLoops)) {
      bool isRow = !group.isFeature(loop) && loop != inner;
      isRow |= layout.channelsInnermost && !group.isFeature(loop);
      shape.push_back(group.isFeature(loop) ? tile
                      : isRow               ? rowsOfBlock
                                            : layout.length);
      first.push_back(group.isFeature(loop) ? firstChannel
                      : isRow               ? firstRow
                                            : index.constant(0));
    }
    auto type = MemRefType::get(shape, getElementTypeOrSelf(operand),
                                MemRefLayoutAttrInterface(), space);
    Value offset = index.constant(layout.getSharedBytes(schedule, i));
    Value view =
        memref::ViewOp::create(b, loc, type, bytes, offset, ValueRange());
    copies.push_back(view);
    onChip[operand] = {view, first};
  }
}

/// `memref`'s first byte, as an integer.
static Value getAddress(OpBuilder &b, Location loc, Value memref) {
  return memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
}

static Type getPointerType(OpBuilder &b, NVVM::NVVMMemorySpace space) {
  return LLVM::LLVMPointerType::get(b.getContext(),
                                    static_cast<unsigned>(space));
}

static Value toPointer(OpBuilder &b, Location loc, Value address,
                       NVVM::NVVMMemorySpace space) {
  Value integer = arith::IndexCastOp::create(b, loc, b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(b, loc, getPointerType(b, space), integer);
}

void OnePass::emitBulkCopy(OpBuilder &b, const CopiedRows &copied,
                           Value arrival) const {
  IndexBuilder index = at(b);
  for (auto [i, operand] : llvm::enumerate(layout.operands)) {
    Value bytes = index.constant(getRunBytes(i));
    Value source =
        index.add(index.mul(index.add(firstRow, copied.first),
                            index.constant(layout.channels * layout.length)),
                  index.mul(firstChannel, index.constant(layout.length)));
    Value from = index.add(getAddress(b, loc, operand),
                           index.mul(source, index.constant(layout.widths[i])));
    Value to = index.add(getAddress(b, loc, copies[i]),
                         index.mul(copied.first, bytes));
    Value toShared = toPointer(b, loc, to, NVVM::NVVMMemorySpace::Shared);
    Value toCluster = LLVM::AddrSpaceCastOp::create(
        b, loc, getPointerType(b, NVVM::NVVMMemorySpace::SharedCluster),
        toShared);
    Value size = arith::IndexCastOp::create(b, loc, b.getI32Type(),
                                            index.mul(copied.count, bytes));
    NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(
        b, loc, toCluster,
        toPointer(b, loc, from, NVVM::NVVMMemorySpace::Global), arrival, size,
        /*multicastMask=*/Value(), /*l2CacheHint=*/Value());
  }
}

void OnePass::emitBulkCopies(OpBuilder &b, const Kernel &kernel) {
  IndexBuilder index = at(b);
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto barrierType =
      nvgpu::MBarrierGroupType::get(b.getContext(), space, /*numBarriers=*/1);
  Value bar = nvgpu::MBarrierCreateOp::create(b, loc, barrierType);
  Value zero = index.constant(0), one = index.constant(1);
  Value isFirst = index.compare(arith::CmpIPredicate::eq, kernel.thread, zero);
  emitIf(b, isFirst, [&](OpBuilder &nested) {
    nvgpu::MBarrierInitOp::create(nested, loc, bar, one, zero, Value());
    // Copies arrive at the barrier through another proxy. A fence of
    // mbarrier.init alone would order only accesses of the cluster's threads.
    NVVM::FenceProxyOp::create(
        nested, loc,
        NVVM::ProxyKindAttr::get(nested.getContext(),
                                 NVVM::ProxyKind::async_shared),
        NVVM::SharedSpaceAttr::get(nested.getContext(),
                                   NVVM::SharedSpace::shared_cta));
  });
  barrier(b);
  emitIf(b, isFirst, [&](OpBuilder &nested) {
    IndexBuilder inside = at(nested);
    int64_t bytesOfRow = 0;
    for (unsigned i : llvm::seq(layout.operands.size()))
      bytesOfRow += getRunBytes(i);
    nvgpu::MBarrierArriveExpectTxOp::create(
        nested, loc, bar, inside.mul(rows, inside.constant(bytesOfRow)), zero,
        Value());
    Value barAddress = nvgpu::MBarrierGetOp::create(
        nested, loc, nested.getI64Type(), bar, zero);
    Value barPointer = LLVM::IntToPtrOp::create(
        nested, loc, getPointerType(nested, NVVM::NVVMMemorySpace::Shared),
        barAddress);
    // Where a tile has all channels, its rows are one run.
    if (layout.channelsInnermost) {
      Value hasRows = inside.compare(arith::CmpIPredicate::ugt, rows, zero);
      emitIf(nested, hasRows, [&](OpBuilder &run) {
        emitBulkCopy(run, {zero, rows}, barPointer);
      });
      return;
    }
    scf::ForOp::create(nested, loc, zero, rows, one, ValueRange(),
                       [&](OpBuilder &run, Location, Value row, ValueRange) {
                         emitBulkCopy(run, {row, one}, barPointer);
                         scf::YieldOp::create(run, loc);
                       });
  });
  Value parity = arith::ConstantIntOp::create(b, loc, 0, /*width=*/1);
  nvgpu::MBarrierTryWaitParityOp::create(b, loc, bar, parity,
                                         index.constant(kWaitHint), zero);
}

void OnePass::emitCopies(OpBuilder &b, const Kernel &kernel, bool inPieces) {
  IndexBuilder index = at(b);
  Value stride = index.constant(threads);
  for (auto [i, operand] : llvm::enumerate(layout.operands)) {
    // Upstream's op counts the bits of i1, which has a byte in memory.
    bool isPiece = inPieces && !getElementTypeOrSelf(operand).isInteger(1);
    int64_t elements = isPiece ? CudaChip::kCopyBytes / layout.widths[i] : 1;
    // [row, channel, element], one of which is innermost.
    Walk walk;
    walk.loops = llvm::to_vector(llvm::seq<unsigned>(0, group.numLoops));
    for (unsigned loop : walk.loops) {
      int64_t size = group.isFeature(loop) ? tile : layout.length;
      if (loop == inner)
        size /= elements;
      bool isRow =
          !group.isFeature(loop) && (loop != inner || layout.channelsInnermost);
      walk.sizes.push_back(isRow ? rows : index.constant(size));
    }
    walk.strides = delinearize(b, walk, stride);
    Value source = operand, copy = copies[i];
    SmallVector<Value> first = onChip[operand].first;
    scf::ForOp::create(
        b, loc, kernel.thread, countPieces(b, walk), stride,
        delinearize(b, walk, kernel.thread),
        [&](OpBuilder &nested, Location, Value, ValueRange position) {
          IndexBuilder inside = at(nested);
          Indices to = getIndices(nested, walk, Indices(group.numLoops),
                                  position, elements);
          Indices from(to);
          for (auto [position, start] : llvm::zip_equal(from, first))
            position = inside.add(position, start);
          auto emitPiece = [&](OpBuilder &piece) {
            if (isPiece) {
              nvgpu::DeviceAsyncCopyOp::create(
                  piece, loc, copy, to, source, from,
                  piece.getIndexAttr(elements), /*srcElements=*/Value(),
                  /*bypassL1=*/piece.getUnitAttr());
              return;
            }
            Value value = memref::LoadOp::create(piece, loc, source, from);
            memref::StoreOp::create(piece, loc, value, copy, to);
          };
          // The last tile may have fewer channels.
          if (layout.channels % tile == 0) {
            emitPiece(nested);
          } else {
            Value isChannel =
                inside.compare(arith::CmpIPredicate::ult, from[inner],
                               inside.constant(layout.channels));
            emitIf(nested, isChannel, emitPiece);
          }
          scf::YieldOp::create(nested, loc, advance(nested, walk, position));
        });
  }
  if (inPieces) {
    NVVM::CpAsyncCommitGroupOp::create(b, loc);
    NVVM::CpAsyncWaitGroupOp::create(b, loc, 0);
  }
  barrier(b);
}

void OnePass::emitSumsOfBlock(OpBuilder &b, const Kernel &kernel) {
  if (layout.channelsInnermost)
    emitSumsOfColumns(b, kernel);
  else if (tile == 1)
    emitSumsOfChannel(b, kernel);
  else
    emitSumsOfChannels(b, kernel);
}

/// All threads for one channel.
void OnePass::emitSumsOfChannel(OpBuilder &b, const Kernel &kernel) {
  IndexBuilder index = at(b);
  Value stride = index.constant(threads);
  Walk walk = createWalk(b, reduced, stride, lanes);
  Value length = index.constant(layout.length / lanes);
  Value first = index.mul(firstRow, length);
  Value to = index.add(first, index.mul(rows, length));
  Indices indices(group.numLoops);
  delinearize(b, firstChannel, group.features, indices);
  SmallVector<Value> sums =
      emitSums(b, walk, indices, {first, kernel.thread, stride, to}, lanes);
  SmallVector<Value> totals =
      addAcrossBlock(b, {kernel.block, kernel.thread, scratch}, sums);
  Value zero = index.constant(0);
  emitIf(b, index.compare(arith::CmpIPredicate::eq, kernel.thread, zero),
         [&](OpBuilder &nested) { storeTotals(nested, totals, slots, zero); });
}

/// A warp for each channel.
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
        SmallVector<Value> sums =
            emitSums(nested, walk, indices, {first, lane, stride, to}, lanes);
        SmallVector<Value> totals;
        for (Value sum : joinErrors(nested, sums)) {
          if (isa<VectorType>(sum.getType()))
            sum = vector::ReductionOp::create(nested, loc,
                                              vector::CombiningKind::ADD, sum);
          totals.push_back(addAcrossWarp(nested, sum, CudaChip::kWarpSize));
        }
        Value isFirst =
            inside.compare(arith::CmpIPredicate::eq, lane, inside.constant(0));
        emitIf(nested, isFirst, [&](OpBuilder &store) {
          storeTotals(store, totals, slots, channel);
        });
        scf::YieldOp::create(nested, loc);
      });
}

/// Threads beside each other for columns of channels.
void OnePass::emitSumsOfColumns(OpBuilder &b, const Kernel &kernel) {
  IndexBuilder index = at(b);
  int64_t columns = tile / lanes;
  int64_t rowsOfThreads = std::max<int64_t>(threads / columns, 1);
  Value width = index.constant(columns);
  Value column = index.rem(kernel.thread, width);
  Value row = index.div(kernel.thread, width);
  Value stride = index.constant(rowsOfThreads);
  Walk walk = createWalk(b, reduced, stride, lanes);
  Value channel = index.mul(column, index.constant(lanes));
  Indices indices(group.numLoops);
  indices[inner] = index.add(firstChannel, channel);
  auto isBelow = [&](Value value, int64_t bound) {
    return index.compare(arith::CmpIPredicate::ult, value,
                         index.constant(bound));
  };
  Value isActive = index.bitAnd(isBelow(indices[inner], layout.channels),
                                isBelow(row, rowsOfThreads));
  Value to = index.add(firstRow, rows);
  SmallVector<Value> sums = emitIf(
      b, isActive,
      [&](OpBuilder &nested) {
        return emitSums(nested, walk, indices, {firstRow, row, stride, to},
                        lanes);
      },
      zeroSums(b, lanes));
  SmallVector<Value> totals =
      addAcrossRows(b, {kernel.block, kernel.thread, scratch},
                    {rowsOfThreads, columns, row, column}, sums, lanes);
  Value isFirst =
      index.compare(arith::CmpIPredicate::eq, row, index.constant(0));
  emitIf(b, isFirst, [&](OpBuilder &nested) {
    storeTotals(nested, totals, slots, channel);
  });
}

void OnePass::synchronize(OpBuilder &b) const {
  if (cluster == 1)
    return barrier(b);
  NVVM::ClusterArriveOp::create(b, loc, b.getUnitAttr());
  NVVM::ClusterWaitOp::create(b, loc, b.getUnitAttr());
}

Value OnePass::loadSlot(OpBuilder &b, unsigned sum, Value channel,
                        Value block) const {
  if (cluster == 1)
    return memref::LoadOp::create(b, loc, slots[sum], channel);
  IndexBuilder index = at(b);
  Value bytes = index.constant(sumType(sum).getWidth() / 8);
  Value address =
      index.add(getAddress(b, loc, slots[sum]), index.mul(channel, bytes));
  Value own = toPointer(b, loc, address, NVVM::NVVMMemorySpace::Shared);
  Value number = arith::IndexCastOp::create(b, loc, b.getI32Type(), block);
  Value other = NVVM::MapaOp::create(
      b, loc, getPointerType(b, NVVM::NVVMMemorySpace::SharedCluster), own,
      number);
  return LLVM::LoadOp::create(b, loc, sumType(sum), other);
}

void OnePass::finishChannels(OpBuilder &b, const Kernel &kernel) {
  IndexBuilder index = at(b);
  Value zero = index.constant(0);
  Value isFirstBlock = index.compare(arith::CmpIPredicate::eq, rank, zero);
  emitIf(b, isFirstBlock, [&](OpBuilder &active) {
    Value most = at(active).min(
        constant(active, tile),
        at(active).sub(constant(active, layout.channels), firstChannel));
    scf::ForOp::create(
        active, loc, kernel.thread, most, constant(active, threads),
        ValueRange(), [&](OpBuilder &nested, Location, Value slot, ValueRange) {
          IndexBuilder inside = at(nested);
          auto blocks = scf::ForOp::create(
              nested, loc, inside.constant(0), inside.constant(cluster),
              inside.constant(1), zeroSums(nested),
              [&](OpBuilder &body, Location, Value block, ValueRange sums) {
                SmallVector<Value> addends;
                for (unsigned i : llvm::seq(numSums()))
                  addends.push_back(loadSlot(body, i, slot, block));
                scf::YieldOp::create(body, loc,
                                     addCompensated(body, loc, sums, addends));
              });
          Indices indices(group.numLoops);
          delinearize(nested, inside.add(firstChannel, slot), group.features,
                      indices);
          storeSums(nested, indices, joinErrors(nested, blocks.getResults()));
          emitChannelwise(nested, pick(indices, group.features));
          scf::YieldOp::create(nested, loc);
        });
  });
}

void mlir::bngrad::emitOnePass(OpBuilder &b, const ScheduledGroup &group,
                               const OnePassLayout &layout,
                               const GpuSchedule &schedule,
                               DeviceBuffers &buffers) {
  OnePass(b, group, layout, schedule, buffers).emit(b);
}
