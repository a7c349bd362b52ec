//===- GpuLoops.cpp - kernels for a group ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `two_pass`: one kernel adds up shares of every channel, one finishes the sums
// and computes what there is once per channel, and one computes the elements.
// Neither the number of shares nor the order in which they are added depends on
// the device.
//
//===----------------------------------------------------------------------===//

#include "GpuLoops.h"
#include "ElementCloner.h"
#include "GpuKernels.h"
#include "GpuSchedule.h"
#include "OnePass.h"
#include "Sums.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

namespace {
class TwoPass : public GpuKernels {
public:
  using GpuKernels::GpuKernels;

  void emit(OpBuilder &b);

private:
  using LanesBody = function_ref<void(OpBuilder &, int64_t)>;

  /// Emits `body` for vectors where `generics` can be read in vectors, and for
  /// single elements where not; what only the run knows is tested there.
  void emitByLanes(OpBuilder &b, ArrayRef<linalg::GenericOp> generics,
                   LanesBody body);

  /// Partial sums, as [sum][share][channel].
  struct Partials {
    SmallVector<Value> memrefs; // by sum
    Value shares;
  };
  Partials createPartials(OpBuilder &b, Value shares);
  /// The number of shares of a channel if blocks that work side by side take
  /// `pieces` each.
  Value countShares(OpBuilder &b, Value tiles, Value pieces, Value perStep);
  /// Threads beside each other in a channel.
  void emitChannelSums(OpBuilder &b, const Partials &partials, int64_t lanes);
  /// Threads beside each other in different channels.
  void emitColumnSums(OpBuilder &b, const Partials &partials, int64_t lanes);
  void emitFinish(OpBuilder &b, const Partials &partials);
  void emitElementwise(OpBuilder &b, linalg::GenericOp generic, int64_t lanes);
};
} // namespace

void TwoPass::emitByLanes(OpBuilder &b, ArrayRef<linalg::GenericOp> generics,
                          LanesBody body) {
  Index index = at(b);
  int64_t lanes = getLanes(generics);
  Value isWhole = index.compare(arith::CmpIPredicate::eq,
                                index.rem(sizes[inner], index.constant(lanes)),
                                index.constant(0));
  // One gather for all lanes is not worth vectors elsewhere.
  for (linalg::GenericOp generic : generics)
    for (OpOperand &operand : generic->getOpOperands())
      if (isDataMap(generic.getMatchingIndexingMap(&operand)) &&
          !isContiguous(generic, operand))
        lanes = 1;
  if (lanes == 1 || matchPattern(isWhole, m_Zero()))
    return body(b, 1);
  Value isVector = isWhole;
  if (Value isAligned = buffers.testAlignment(b, generics, inner))
    isVector = b.createOrFold<arith::AndIOp>(loc, isVector, isAligned);
  if (matchPattern(isVector, m_One()))
    return body(b, lanes);
  scf::IfOp::create(
      b, loc, isVector,
      [&](OpBuilder &nested, Location) {
        body(nested, lanes);
        scf::YieldOp::create(nested, loc);
      },
      [&](OpBuilder &nested, Location) {
        body(nested, 1);
        scf::YieldOp::create(nested, loc);
      });
}

TwoPass::Partials TwoPass::createPartials(OpBuilder &b, Value shares) {
  Partials partials;
  partials.shares = shares;
  for (unsigned i : llvm::seq(numSums())) {
    auto type = MemRefType::get({ShapedType::kDynamic, ShapedType::kDynamic},
                                sumType(i));
    partials.memrefs.push_back(buffers.allocate(b, type, {shares, channels}));
  }
  return partials;
}

Value TwoPass::countShares(OpBuilder &b, Value tiles, Value pieces,
                           Value perStep) {
  Index index = at(b);
  // Enough blocks for the device, but none with less than one chunk to add.
  Value wanted = index.ceilDiv(index.constant(schedule.getBlocks()),
                               index.max(tiles, index.constant(1)));
  Value most =
      index.ceilDiv(pieces, index.mul(perStep, index.constant(kUnroll)));
  return index.max(index.min(wanted, most), index.constant(1));
}

void TwoPass::emitChannelSums(OpBuilder &b, const Partials &partials,
                              int64_t lanes) {
  Index index = at(b);
  Value stride = index.constant(threads);
  Walk walk = createWalk(b, reduced, stride, lanes);
  Value pieces = countPieces(b, walk);
  Value share = index.ceilDiv(pieces, partials.shares);
  Value blocks = index.mul(channels, partials.shares);
  launch(b, "reduce", blocks, threads, getSharedTypesForBlock(),
         [&](OpBuilder &nested, Kernel kernel) {
           Index inside = at(nested);
           Value channel = inside.div(kernel.block, partials.shares);
           Value number = inside.rem(kernel.block, partials.shares);
           Indices indices(group.numLoops);
           setFeatures(nested, channel, indices);
           Value from = inside.mul(number, share);
           Value to = inside.min(inside.add(from, share), pieces);
           SmallVector<Value> totals = addAcrossBlock(
               nested, kernel,
               emitSums(nested, walk, indices, from, kernel.thread, stride, to,
                        zeroSums(nested, lanes), lanes));
           Value isFirst = inside.compare(arith::CmpIPredicate::eq,
                                          kernel.thread, inside.constant(0));
           emitIf(nested, isFirst, [&](OpBuilder &store) {
             for (auto [memref, total] :
                  llvm::zip_equal(partials.memrefs, totals))
               memref::StoreOp::create(store, loc, total, memref,
                                       ValueRange{number, channel});
           });
         });
}

void TwoPass::emitColumnSums(OpBuilder &b, const Partials &partials,
                             int64_t lanes) {
  Index index = at(b);
  // Columns of a tile, each of `lanes` elements.
  int64_t columns = std::min<int64_t>(schedule.getColumns(), threads);
  if (std::optional<int64_t> size = getConstantIntValue(sizes[inner]))
    columns = std::min(columns, std::max<int64_t>(*size / lanes, 1));
  // The sums of a block meet in static shared memory, of which there are 48 KB.
  constexpr int64_t kMostBytes = 40 << 10;
  int64_t bytesOfColumn = 0;
  for (unsigned i : llvm::seq(numSums()))
    bytesOfColumn += lanes * sumType(i).getWidth() / 8;
  columns = std::min(columns, kMostBytes / bytesOfColumn);
  int64_t rows =
      std::min(threads / columns, kMostBytes / (columns * bytesOfColumn));
  Value columnsOfRow = index.div(sizes[inner], index.constant(lanes));
  Value tilesOfRow = index.ceilDiv(columnsOfRow, index.constant(columns));
  SmallVector<unsigned> outerFeatures(group.features);
  outerFeatures.pop_back();
  Value outer = index.constant(1);
  for (unsigned loop : outerFeatures)
    outer = index.mul(outer, sizes[loop]);
  Value tiles = index.mul(outer, tilesOfRow);
  Value stride = index.constant(rows);
  Walk walk = createWalk(b, reduced, stride, lanes);
  Value pieces = countPieces(b, walk);
  Value share = index.ceilDiv(pieces, partials.shares);

  SmallVector<Type> shared;
  for (unsigned i : llvm::seq(numSums()))
    shared.push_back(
        getSharedType(getScratchSize(rows, columns, lanes), sumType(i)));
  launch(b, "reduce", index.mul(tiles, partials.shares), threads, shared,
         [&](OpBuilder &nested, Kernel kernel) {
           Index inside = at(nested);
           Value number = inside.rem(kernel.block, partials.shares);
           Value tile = inside.div(kernel.block, partials.shares);
           Value outerChannel = inside.div(tile, tilesOfRow);
           Value width = inside.constant(columns);
           Value column = inside.rem(kernel.thread, width);
           Value row = inside.div(kernel.thread, width);
           Value piece = inside.add(
               inside.mul(inside.rem(tile, tilesOfRow), width), column);
           Value first = inside.mul(piece, inside.constant(lanes));
           Indices indices(group.numLoops);
           Value rest = outerChannel;
           for (unsigned loop : llvm::reverse(outerFeatures)) {
             indices[loop] = inside.rem(rest, sizes[loop]);
             rest = inside.div(rest, sizes[loop]);
           }
           indices[inner] = first;
           Value from = inside.mul(number, share);
           Value to = inside.min(inside.add(from, share), pieces);
           Value isColumn =
               inside.compare(arith::CmpIPredicate::ult, piece, columnsOfRow);
           Value isRow = inside.compare(arith::CmpIPredicate::ult, row,
                                        inside.constant(rows));
           SmallVector<Value> sums = emitIf(
               nested, nested.createOrFold<arith::AndIOp>(loc, isColumn, isRow),
               [&](OpBuilder &active) {
                 return emitSums(active, walk, indices, from, row, stride, to,
                                 zeroSums(active, lanes), lanes);
               },
               zeroSums(nested, lanes));
           SmallVector<Value> totals = addAcrossRows(
               nested, kernel, row, column, columns, rows, sums, lanes);
           Value isFirst = inside.compare(arith::CmpIPredicate::eq, row,
                                          inside.constant(0));
           emitIf(nested,
                  nested.createOrFold<arith::AndIOp>(loc, isColumn, isFirst),
                  [&](OpBuilder &store) {
                    Value channel = at(store).add(
                        at(store).mul(outerChannel, sizes[inner]), first);
                    for (auto [memref, total] :
                         llvm::zip_equal(partials.memrefs, totals)) {
                      if (lanes == 1)
                        memref::StoreOp::create(store, loc, total, memref,
                                                ValueRange{number, channel});
                      else
                        vector::StoreOp::create(store, loc, total, memref,
                                                ValueRange{number, channel});
                    }
                  });
         });
}

void TwoPass::emitFinish(OpBuilder &b, const Partials &partials) {
  Index index = at(b);
  constexpr int64_t kFinishThreads = 128;
  Value blocks = index.ceilDiv(channels, index.constant(kFinishThreads));
  launch(
      b, "finish", blocks, kFinishThreads, TypeRange(),
      [&](OpBuilder &nested, Kernel kernel) {
        Index inside = at(nested);
        Value channel = inside.add(
            inside.mul(kernel.block, inside.constant(kFinishThreads)),
            kernel.thread);
        Value isChannel =
            inside.compare(arith::CmpIPredicate::ult, channel, channels);
        emitIf(nested, isChannel, [&](OpBuilder &active) {
          Indices indices(group.numLoops);
          setFeatures(active, channel, indices);
          if (group.reduction) {
            auto loop = scf::ForOp::create(
                active, loc, constant(active, 0), partials.shares,
                constant(active, 1), zeroSums(active, 1),
                [&](OpBuilder &body, Location, Value share, ValueRange sums) {
                  SmallVector<Value> addends;
                  for (Value memref : partials.memrefs)
                    addends.push_back(memref::LoadOp::create(
                        body, loc, memref, ValueRange{share, channel}));
                  scf::YieldOp::create(
                      body, loc, addCompensated(body, loc, sums, addends));
                });
            storeSums(active, indices, joinErrors(active, loop.getResults()));
          }
          emitChannelwise(active, indices);
        });
      });
}

void TwoPass::emitElementwise(OpBuilder &b, linalg::GenericOp generic,
                              int64_t lanes) {
  Index index = at(b);
  Value stride = index.constant(threads);
  Walk walk =
      createWalk(b, llvm::to_vector(llvm::seq<unsigned>(0, group.numLoops)),
                 stride, lanes);
  Value pieces = countPieces(b, walk);
  Value chunk = index.constant(threads * kUnroll);
  launch(b, "apply", index.ceilDiv(pieces, chunk), threads, TypeRange(),
         [&](OpBuilder &nested, Kernel kernel) {
           Index inside = at(nested);
           Value from = inside.mul(kernel.block, chunk);
           Value to = inside.min(inside.add(from, chunk), pieces);
           emitElements(nested, generic, walk, Indices(), from, kernel.thread,
                        stride, to, lanes);
         });
}

void TwoPass::emit(OpBuilder &b) {
  Index index = at(b);
  Partials partials;
  if (group.reduction) {
    bool isByColumns = group.isFeature(inner);
    Value tiles = channels, perStep = index.constant(threads);
    if (isByColumns) {
      int64_t columns = std::min<int64_t>(schedule.getColumns(), threads) *
                        getLanes(group.reduction);
      tiles = index.ceilDiv(channels, index.constant(columns));
      perStep =
          index.constant(std::max<int64_t>(threads / schedule.getColumns(), 1));
    }
    SmallVector<Value> reducedSizes;
    for (unsigned loop : reduced)
      reducedSizes.push_back(sizes[loop]);
    partials = createPartials(
        b, countShares(b, tiles, index.product(reducedSizes), perStep));
    emitByLanes(b, group.reduction, [&](OpBuilder &nested, int64_t lanes) {
      if (isByColumns)
        emitColumnSums(nested, partials, lanes);
      else
        emitChannelSums(nested, partials, lanes);
    });
  }
  if (group.reduction || !group.channelwise.empty())
    emitFinish(b, partials);
  for (Value memref : partials.memrefs)
    buffers.free(b, memref);
  for (linalg::GenericOp generic : group.elementwise)
    emitByLanes(b, generic, [&](OpBuilder &nested, int64_t lanes) {
      emitElementwise(nested, generic, lanes);
    });
}

/// Emits `one_pass` for data that are aligned as its copies need; for others,
/// which only the run can tell, `two_pass`.
static void emitAlignedOnePass(OpBuilder &b, const ScheduledGroup &group,
                               ScheduleAttr schedule, DeviceBuffers &buffers) {
  Location loc = group.getMembers().front().getLoc();
  SmallVector<linalg::GenericOp> generics = group.getDataGenerics();
  // Data with gaps are read element by element, wherever they start.
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
  if (!isAligned)
    return emitOnePass(b, group, schedule, buffers);
  scf::IfOp::create(
      b, loc, isAligned,
      [&](OpBuilder &nested, Location) {
        buffers.setAligned(true);
        emitOnePass(nested, group, schedule, buffers);
        buffers.setAligned(false);
        scf::YieldOp::create(nested, loc);
      },
      [&](OpBuilder &nested, Location) {
        TwoPass(nested, group, getTwoPassInstead(schedule), buffers)
            .emit(nested);
        scf::YieldOp::create(nested, loc);
      });
}

/// True if the integers in `generic` fill bytes, or are i1. Vectors of others
/// are packed by some of what lowers kernels, and not by the rest.
static bool hasWholeBytes(linalg::GenericOp generic) {
  auto isWhole = [](Type type) {
    auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
    return !integer || integer.getWidth() == 1 ||
           (integer.getWidth() >= 8 && llvm::isPowerOf2_32(integer.getWidth()));
  };
  WalkResult walk = generic.getRegion().walk([&](Operation *op) {
    return llvm::all_of(op->getOperandTypes(), isWhole) &&
                   llvm::all_of(op->getResultTypes(), isWhole)
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return !walk.wasInterrupted() &&
         llvm::all_of(generic.getRegion().getArgumentTypes(), isWhole);
}

LogicalResult mlir::bngrad::emitGpuLoops(RewriterBase &rewriter,
                                         const GroupMembers &members,
                                         ScheduleAttr schedule,
                                         bool deviceArguments,
                                         std::string &reason) {
  std::optional<ScheduledGroup> group = ScheduledGroup::get(members, reason);
  if (!group)
    return failure();
  if (!llvm::all_of(members, [](linalg::GenericOp generic) {
        return generic.hasPureBufferSemantics();
      })) {
    reason = "expected memrefs";
    return failure();
  }
  if (!llvm::all_of(members, hasWholeBytes)) {
    reason = "expected integers of 1, 8, 16, 32 or 64 bits";
    return failure();
  }
  reason = findObstacleBetween(members);
  if (!reason.empty())
    return failure();
  OpBuilder::InsertionGuard guard(rewriter);
  // The members beside each other, after all that makes their operands.
  GroupMembers onDevice(members);
  for (linalg::GenericOp member : ArrayRef(members).drop_back())
    rewriter.moveOpBefore(member, members.back());
  rewriter.setInsertionPoint(members.front());
  DeviceBuffers buffers(rewriter, *group, deviceArguments);
  mergeLoops(rewriter, onDevice);
  group = ScheduledGroup::get(onDevice, reason);
  rewriter.setInsertionPoint(onDevice.back());
  if (schedule.getKind() == ScheduleKind::OnePass &&
      !fitsOnePass(*group, schedule, reason)) {
    emitMissed(onDevice.front(), "bngrad-apply-schedule",
               "two passes instead of one: " + reason);
    schedule = getTwoPassInstead(schedule);
  }
  if (schedule.getKind() == ScheduleKind::TwoPass)
    TwoPass(rewriter, *group, schedule, buffers).emit(rewriter);
  else
    emitAlignedOnePass(rewriter, *group, schedule, buffers);
  buffers.finish(rewriter);
  for (linalg::GenericOp generic : onDevice)
    rewriter.eraseOp(generic);
  return success();
}
