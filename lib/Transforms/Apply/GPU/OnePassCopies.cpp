//===- OnePassCopies.cpp - copies to shared memory ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the operands of `one_pass` get into shared memory, and how they lie
// there.
//
//===----------------------------------------------------------------------===//

#include "OnePassKernel.h"
#include "Utils/Utils.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-apply-schedule"

using namespace mlir;
using namespace mlir::bngrad;

/// Hint to the wait for a copy: how long a thread may sleep before it looks
/// again, in ns.
static constexpr int64_t kWaitHint = 10'000'000;

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
    if (flatRows)
      flatPiece.views[operand] = {
          memref::ViewOp::create(
              b, loc,
              MemRefType::get({rowsOfBlock, tile * layout.length},
                              type.getElementType(),
                              MemRefLayoutAttrInterface(), space),
              bytes, offset, ValueRange()),
          firstRow, index.constant(0)};
  }
}

Value OnePass::getAddress(OpBuilder &b, Value memref) const {
  return memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
}

Type OnePass::getPointerType(OpBuilder &b, NVVM::NVVMMemorySpace space) const {
  return LLVM::LLVMPointerType::get(b.getContext(),
                                    static_cast<unsigned>(space));
}

Value OnePass::toPointer(OpBuilder &b, Value address,
                         NVVM::NVVMMemorySpace space) const {
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
    Value from = index.add(getAddress(b, operand),
                           index.mul(source, index.constant(layout.widths[i])));
    Value to =
        index.add(getAddress(b, copies[i]), index.mul(copied.first, bytes));
    Value toShared = toPointer(b, to, NVVM::NVVMMemorySpace::Shared);
    Value toCluster = LLVM::AddrSpaceCastOp::create(
        b, loc, getPointerType(b, NVVM::NVVMMemorySpace::SharedCluster),
        toShared);
    Value size = arith::IndexCastOp::create(b, loc, b.getI32Type(),
                                            index.mul(copied.count, bytes));
    NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(
        b, loc, toCluster, toPointer(b, from, NVVM::NVVMMemorySpace::Global),
        arrival, size,
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
    auto loop = scf::ForOp::create(
        nested, loc, zero, rows, one, ValueRange(),
        [&](OpBuilder &run, Location, Value row, ValueRange) {
          emitBulkCopy(run, {row, one}, barPointer);
          scf::YieldOp::create(run, loc);
        });
    // A copy is ten instructions, and the loop of one thread.
    disableUnrolling(loop);
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
