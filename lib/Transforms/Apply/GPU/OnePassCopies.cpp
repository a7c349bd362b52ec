//===- OnePassCopies.cpp - copies to shared memory ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How `one_pass` copies its operands to shared memory, and how it lays them
// out.
//
//===----------------------------------------------------------------------===//

#include "Layout/StridedData.h"
#include "OnePassKernel.h"
#include "Utils/Utils.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-apply-schedule"

using namespace mlir;
using namespace mlir::bngrad;

/// A hint for waiting for a copy: how long a thread may sleep before it checks
/// again, in ns.
static constexpr int64_t kWaitHint = 10'000'000;
/// The most segments of a row, relative to the least possible number.
static constexpr int64_t kMostSegments = 4;

TileCopies::Copy TileCopies::chooseCopy() const {
  bool isAligned = !layout.operands.empty();
  for (auto [i, operand] : llvm::enumerate(layout.operands)) {
    int64_t strideBytes = layout.channels * layout.length * layout.widths[i];
    isAligned &= gpu.buffers.isAligned(operand) &&
                 cast<MemRefType>(operand.getType()).getLayout().isIdentity() &&
                 getRunBytes(i) % CudaChip::kCopyBytes == 0 &&
                 strideBytes % CudaChip::kCopyBytes == 0;
  }
  if (!isAligned) {
    LDBG() << "copies of single elements: expected runs of whole 16 bytes";
    return Copy::Elements;
  }
  // Copying many short runs would keep one thread busy for long.
  bool isShort = layout.channelsInnermost && gpu.tile < layout.channels;
  return isShort ? Copy::AsyncPieces : Copy::Bulk;
}

TileCopies::TileCopies(OpBuilder &b, const OnePass &gpu, const TileBlock &block,
                       Pieces &pieces, FlatPieces *flat)
    : BlockPart(gpu, block), pieces(pieces) {
  pieces.hasDataOnChip = !layout.operands.empty();
  if (!pieces.hasDataOnChip)
    return;
  IndexBuilder index = at(b);
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto bytesType = MemRefType::get({ShapedType::kDynamic}, b.getI8Type(),
                                   MemRefLayoutAttrInterface(), space);
  Value bytes = gpu::DynamicSharedMemoryOp::create(b, loc, bytesType);
  const ScheduledGroup &group = gpu.group;
  for (auto [i, operand] : llvm::enumerate(layout.operands)) {
    SmallVector<int64_t> shape;
    SmallVector<Value> first;
    for (unsigned loop : llvm::seq(group.numLoops)) {
      shape.push_back(group.isFeature(loop) ? gpu.tile
                      : isRow(loop)         ? gpu.rowsOfBlock
                                            : layout.length);
      first.push_back(group.isFeature(loop) ? block.firstChannel
                      : isRow(loop)         ? block.firstRow
                                            : index.constant(0));
    }
    Value offset = index.constant(layout.getSharedBytes(gpu.schedule, i));
    Type elementType = getElementTypeOrSelf(operand);
    auto createView = [&](ArrayRef<int64_t> dims) -> Value {
      auto type = MemRefType::get(dims, elementType,
                                  MemRefLayoutAttrInterface(), space);
      return memref::ViewOp::create(b, loc, type, bytes, offset, ValueRange());
    };
    copies.push_back(createView(shape));
    pieces.onChip[getViewed(operand)] = {
        copies.back(),
        AffineMap::getMultiDimIdentityMap(group.numLoops, b.getContext()),
        first, createView(ShapedType::getNumElements(shape))};
    if (flat)
      flat->views[operand] = {
          createView({gpu.rowsOfBlock, gpu.tile * layout.length}),
          block.firstRow, index.constant(0)};
  }
}

Value BlockPart::getAddress(OpBuilder &b, Value memref) const {
  return memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
}

Type BlockPart::getPointerType(OpBuilder &b,
                               NVVM::NVVMMemorySpace space) const {
  return LLVM::LLVMPointerType::get(b.getContext(),
                                    static_cast<unsigned>(space));
}

Value BlockPart::toPointer(OpBuilder &b, Value address,
                           NVVM::NVVMMemorySpace space) const {
  Value integer = arith::IndexCastOp::create(b, loc, b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(b, loc, getPointerType(b, space), integer);
}

void TileCopies::emitBulkCopy(OpBuilder &b, const BulkCopy &copy) const {
  Value toShared = toPointer(b, copy.to, NVVM::NVVMMemorySpace::Shared);
  Value toCluster = LLVM::AddrSpaceCastOp::create(
      b, loc, getPointerType(b, NVVM::NVVMMemorySpace::SharedCluster),
      toShared);
  Value size = arith::IndexCastOp::create(b, loc, b.getI32Type(), copy.bytes);
  NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(
      b, loc, toCluster, toPointer(b, copy.from, NVVM::NVVMMemorySpace::Global),
      toPointer(b, copy.arrival, NVVM::NVVMMemorySpace::Shared), size,
      /*multicastMask=*/Value(), /*l2CacheHint=*/Value());
}

Value TileCopies::getFirstAddress(OpBuilder &b, unsigned operand) const {
  IndexBuilder index = at(b);
  Value first =
      index.add(index.mul(block.firstRow,
                          index.constant(layout.channels * layout.length)),
                index.mul(block.firstChannel, index.constant(layout.length)));
  return index.add(getAddress(b, layout.operands[operand]),
                   index.mul(first, index.constant(layout.widths[operand])));
}

int64_t TileCopies::countSegmentsOfRow(int64_t stepPieces) const {
  int64_t rowPieces = layout.length / gpu.lanes;
  int64_t least = llvm::divideCeil(rowPieces, stepPieces);
  for (int64_t count : llvm::seq_inclusive(least, kMostSegments * least))
    if (rowPieces % count == 0 &&
        llvm::all_of(layout.widths, [&](int64_t width) {
          return layout.length / count * width % CudaChip::kCopyBytes == 0;
        }))
      return count;
  return 1;
}

TileCopies::Stages TileCopies::planStages(Copy copy) const {
  Stages planned;
  if (copy == Copy::Elements)
    return planned;
  planned.count = 1;
  // A warp that adds up channel after channel needs all rows at once.
  if (!gpu.flatRows && !layout.channelsInnermost && gpu.tile > 1)
    return planned;
  planned.stepPieces = gpu.threads;
  if (gpu.flatRows) {
    planned.stepPieces = gpu.flatRows->rows;
  } else if (layout.channelsInnermost) {
    planned.stepPieces = gpu.countThreadRows();
  } else {
    planned.segmentsOfRow = countSegmentsOfRow(planned.stepPieces);
    planned.segmentPieces = layout.length / gpu.lanes / planned.segmentsOfRow;
  }
  int64_t blockPieces =
      gpu.rowsOfBlock * planned.segmentsOfRow * planned.segmentPieces;
  int64_t steps = llvm::divideCeil(blockPieces, planned.stepPieces);
  // A stage has at least one segment.
  planned.steps = llvm::PowerOf2Ceil(
      std::max(llvm::divideCeil(steps, kMostStages),
               llvm::divideCeil(planned.segmentPieces, planned.stepPieces)));
  planned.count = llvm::divideCeil(steps, planned.steps);
  return planned;
}

TileCopies::Segments TileCopies::getSegmentsOfStage(OpBuilder &b,
                                                    Value stage) const {
  IndexBuilder index = at(b);
  Value all = index.mul(block.rows, index.constant(stages.segmentsOfRow));
  if (stages.count == 1)
    return {index.constant(0), all};
  // The first segment of a stage begins in one of its pieces.
  auto getFirst = [&](Value number) {
    Value piece =
        index.mul(number, index.constant(stages.steps * stages.stepPieces));
    Value segment = index.ceilDiv(piece, index.constant(stages.segmentPieces));
    return index.min(segment, all);
  };
  Value first = getFirst(stage);
  Value next = getFirst(index.add(stage, index.constant(1)));
  return {first, index.sub(next, first)};
}

void TileCopies::createMbarriers(OpBuilder &b, int64_t arrivals) {
  IndexBuilder index = at(b);
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto type = nvgpu::MBarrierGroupType::get(b.getContext(), space,
                                            /*numBarriers=*/stages.count);
  mbarriers = nvgpu::MBarrierCreateOp::create(b, loc, type);
  gpu.emitIf(b, isZero(index, block.kernel.thread), [&](OpBuilder &nested) {
    for (int64_t stage : llvm::seq(stages.count))
      nvgpu::MBarrierInitOp::create(nested, loc, mbarriers,
                                    constant(nested, arrivals),
                                    constant(nested, stage), Value());
    // Copies arrive at the mbarriers through another proxy. A fence of
    // mbarrier.init would order only accesses by the cluster's threads.
    NVVM::FenceProxyOp::create(
        nested, loc,
        NVVM::ProxyKindAttr::get(nested.getContext(),
                                 NVVM::ProxyKind::async_shared),
        NVVM::SharedSpaceAttr::get(nested.getContext(),
                                   NVVM::SharedSpace::shared_cta));
  });
  gpu.barrier(b);
}

Value TileCopies::getMbarrierAddress(OpBuilder &b, Value stage) const {
  Value address =
      nvgpu::MBarrierGetOp::create(b, loc, b.getI64Type(), mbarriers, stage);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), address);
}

Value TileCopies::getMbarrier(OpBuilder &b, Value stage) const {
  return toPointer(b, getMbarrierAddress(b, stage),
                   NVVM::NVVMMemorySpace::Shared);
}

void TileCopies::awaitStage(OpBuilder &b, Value stage) const {
  // Upstream's op waits in a loop with uniform branches, but lanes may differ:
  // one lane's wait can end before another's.
  Value arrival = getMbarrier(b, stage);
  Value parity = arith::ConstantIntOp::create(b, loc, 0, /*width=*/32);
  Value hint = arith::ConstantIntOp::create(b, loc, kWaitHint, /*width=*/32);
  scf::WhileOp::create(
      b, loc, TypeRange(), ValueRange(),
      [&](OpBuilder &nested, Location, ValueRange) {
        Value isThere = NVVM::MBarrierTryWaitOp::create(
            nested, loc, nested.getI1Type(), arrival, parity, hint);
        Value isMissing = arith::XOrIOp::create(
            nested, loc, isThere,
            arith::ConstantIntOp::create(nested, loc, 1, /*width=*/1));
        scf::ConditionOp::create(nested, loc, isMissing, ValueRange());
      },
      [&](OpBuilder &nested, Location, ValueRange) {
        scf::YieldOp::create(nested, loc);
      });
}

void TileCopies::awaitStep(OpBuilder &b, Value step) const {
  awaitStage(b, at(b).div(step, constant(b, stages.steps)));
}

void TileCopies::emitRunCopies(OpBuilder &b) const {
  disableUnrolling(gpu.forEach(
      b, constant(b, 0), constant(b, stages.count), constant(b, 1),
      [&](OpBuilder &nested, Value stage) {
        Segments copied = getSegmentsOfStage(nested, stage);
        Value hasRows = at(nested).compare(arith::CmpIPredicate::ugt,
                                           copied.count, constant(nested, 0));
        gpu.emitIf(nested, hasRows, [&](OpBuilder &inner) {
          IndexBuilder index = at(inner);
          Value arrival = getMbarrierAddress(inner, stage);
          for (unsigned i : llvm::seq(layout.operands.size())) {
            Value bytes = index.constant(getRunBytes(i));
            Value offset = index.mul(copied.first, bytes);
            emitBulkCopy(inner,
                         {index.add(getFirstAddress(inner, i), offset),
                          index.add(getAddress(inner, copies[i]), offset),
                          index.mul(copied.count, bytes), arrival});
          }
        });
      }));
}

void TileCopies::emitRowCopies(OpBuilder &b) const {
  // Advance addresses from copy to copy, so that the thread that begins them
  // computes nothing else meanwhile.
  unsigned numOperands = layout.operands.size();
  SmallVector<Value> first; // by operand: from and to
  for (unsigned i : llvm::seq(numOperands)) {
    first.push_back(getFirstAddress(b, i));
    first.push_back(getAddress(b, copies[i]));
  }
  // Uniform registers have 32 bits.
  auto number = [&](OpBuilder &nested, int64_t value) -> Value {
    return arith::ConstantIntOp::create(nested, loc, value, /*width=*/32);
  };
  // The mbarrier of a stage, and a piece of the stage.
  first.push_back(getMbarrierAddress(b, constant(b, 0)));
  first.push_back(number(b, 0));
  auto copySegment = [&](OpBuilder &nested, Location, Value, ValueRange state) {
    IndexBuilder index = at(nested);
    Value arrival = state[2 * numOperands], piece = state[2 * numOperands + 1];
    SmallVector<Value> next;
    for (unsigned i : llvm::seq(numOperands)) {
      Value from = state[2 * i], to = state[2 * i + 1];
      Value bytes = index.constant(getRunBytes(i) / stages.segmentsOfRow);
      emitBulkCopy(nested, {from, to, bytes, arrival});
      next.push_back(index.add(from, bytes));
      next.push_back(index.add(to, bytes));
    }
    // A stage has at least one segment, so the next segment is of the same
    // stage or of the next one.
    Value piecesOfStage = number(nested, stages.steps * stages.stepPieces);
    Value nextPiece = index.add(piece, number(nested, stages.segmentPieces));
    Value isNext =
        index.compare(arith::CmpIPredicate::uge, nextPiece, piecesOfStage);
    if (stages.count == 1)
      isNext = arith::ConstantIntOp::create(nested, loc, 0, /*width=*/1);
    next.push_back(index.select(
        isNext, index.add(arrival, index.constant(kMbarrierBytes)), arrival));
    next.push_back(
        index.select(isNext, index.sub(nextPiece, piecesOfStage), nextPiece));
    scf::YieldOp::create(nested, loc, next);
  };
  auto rowLoop = scf::ForOp::create(
      b, loc, constant(b, 0), block.rows, constant(b, 1), first,
      [&](OpBuilder &nested, Location, Value, ValueRange state) {
        auto segments =
            scf::ForOp::create(nested, loc, constant(nested, 0),
                               constant(nested, stages.segmentsOfRow),
                               constant(nested, 1), state, copySegment);
        disableUnrolling(segments);
        SmallVector<Value> next(segments.getResults());
        for (unsigned i : llvm::seq(numOperands))
          next[2 * i] = at(nested).add(
              state[2 * i], constant(nested, layout.channels * layout.length *
                                                 layout.widths[i]));
        scf::YieldOp::create(nested, loc, next);
      });
  disableUnrolling(rowLoop);
}

void TileCopies::emitBulkCopies(OpBuilder &b) {
  createMbarriers(b, /*arrivals=*/1);
  IndexBuilder index = at(b);
  gpu.emitIf(b, isZero(index, block.kernel.thread), [&](OpBuilder &nested) {
    IndexBuilder inside = at(nested);
    int64_t bytes = 0; // of a segment
    for (unsigned i : llvm::seq(layout.operands.size()))
      bytes += getRunBytes(i) / stages.segmentsOfRow;
    for (int64_t i : llvm::seq(stages.count)) {
      Value stage = inside.constant(i);
      Value count = getSegmentsOfStage(nested, stage).count;
      nvgpu::MBarrierArriveExpectTxOp::create(
          nested, loc, mbarriers, inside.mul(count, inside.constant(bytes)),
          stage, Value());
    }
  });
  // Addresses and sizes are the same in all lanes, and `elect.sync` tells ptxas
  // that only one lane copies. For a test of the thread's number it would add a
  // loop over the lanes to each copy.
  Value isFirstWarp =
      isBelow(index, block.kernel.thread, index.constant(CudaChip::kWarpSize));
  gpu.emitIf(b, isFirstWarp, [&](OpBuilder &warp) {
    Value isElected = NVVM::ElectSyncOp::create(warp, loc, warp.getI1Type(),
                                                /*membermask=*/Value());
    gpu.emitIf(warp, isElected, [&](OpBuilder &nested) {
      if (layout.channelsInnermost)
        emitRunCopies(nested);
      else
        emitRowCopies(nested);
    });
  });
}

void TileCopies::forEachPiece(OpBuilder &b, unsigned i, const Segments &copied,
                              int64_t elements, CopyPiece copy) const {
  IndexBuilder index = at(b);
  // [row, channel, element], one of which is innermost.
  auto loops = llvm::to_vector(llvm::seq<unsigned>(0, gpu.group.numLoops));
  SmallVector<Value> sizes;
  Indices start(loops.size(), index.constant(0));
  for (unsigned loop : loops) {
    int64_t size = gpu.group.isFeature(loop) ? gpu.tile : layout.length;
    if (loop == gpu.inner)
      size /= elements;
    sizes.push_back(isRow(loop) ? copied.count : index.constant(size));
    if (isRow(loop))
      start[loop] = copied.first;
  }
  Value stride = index.constant(gpu.threads);
  Walk walk(index, loops, sizes, stride, gpu.inner, elements);
  const SmallVector<Value> &first =
      pieces.onChip.at(getViewed(layout.operands[i])).first;
  scf::ForOp::create(
      b, loc, block.kernel.thread, walk.countPieces(index), stride,
      walk.delinearize(index, block.kernel.thread),
      [&](OpBuilder &nested, Location, Value, ValueRange position) {
        IndexBuilder inside = at(nested);
        Indices to =
            walk.getIndices(inside, Indices(gpu.group.numLoops), position);
        for (auto [index, offset] : llvm::zip_equal(to, start))
          index = inside.add(index, offset);
        Indices from(to);
        for (auto [index, offset] : llvm::zip_equal(from, first))
          index = inside.add(index, offset);
        // The last tile may have fewer channels.
        Value isChannel = arith::ConstantIntOp::create(nested, loc, 1, 1);
        if (layout.channelsInnermost && layout.channels % gpu.tile != 0)
          isChannel = isBelow(inside, from[gpu.inner],
                              inside.constant(layout.channels));
        gpu.emitIf(nested, isChannel,
                   [&](OpBuilder &piece) { copy(piece, to, from); });
        scf::YieldOp::create(nested, loc, walk.advance(inside, position));
      });
}

void TileCopies::emitAsyncPieces(OpBuilder &b) {
  createMbarriers(b, /*arrivals=*/gpu.threads);
  IndexBuilder index = at(b);
  disableUnrolling(gpu.forEach(
      b, index.constant(0), index.constant(stages.count), index.constant(1),
      [&](OpBuilder &nested, Value stage) {
        Segments copied = getSegmentsOfStage(nested, stage);
        for (auto [i, operand] : llvm::enumerate(layout.operands)) {
          // Upstream's op counts bits of i1, but each takes a byte in memory.
          Value source = castToStorage(nested, loc, operand);
          Value copy = castToStorage(nested, loc, copies[i]);
          int64_t elements = CudaChip::kCopyBytes / layout.widths[i];
          forEachPiece(
              nested, i, copied, elements,
              [&](OpBuilder &piece, const Indices &to, const Indices &from) {
                nvgpu::DeviceAsyncCopyOp::create(
                    piece, loc, copy, to, source, from,
                    piece.getIndexAttr(elements), /*srcElements=*/Value(),
                    /*bypassL1=*/piece.getUnitAttr());
              });
        }
        NVVM::CpAsyncMBarrierArriveOp::create(
            nested, loc, getMbarrier(nested, stage), /*noinc=*/true);
      }));
}

void TileCopies::emitElementCopies(OpBuilder &b) const {
  Value zero = constant(b, 0);
  for (auto [i, operand] : llvm::enumerate(layout.operands)) {
    Value source = operand, copy = copies[i];
    forEachPiece(b, i, {zero, block.rows}, /*elements=*/1,
                 [&](OpBuilder &piece, const Indices &to, const Indices &from) {
                   Value value =
                       memref::LoadOp::create(piece, loc, source, from);
                   memref::StoreOp::create(piece, loc, value, copy, to);
                 });
  }
  gpu.barrier(b);
}

void TileCopies::awaitAll(OpBuilder &b) const {
  if (stages.count == 1)
    awaitStage(b, constant(b, 0));
}

void TileCopies::emit(OpBuilder &b) {
  Copy copy = chooseCopy();
  stages = planStages(copy);
  switch (copy) {
  case Copy::Bulk:
    return emitBulkCopies(b);
  case Copy::AsyncPieces:
    return emitAsyncPieces(b);
  case Copy::Elements:
    return emitElementCopies(b);
  }
}
