//===- GpuFlatRows.cpp - pieces of rows that are adjacent -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rows of several channels are adjacent in a sample. A thread takes the
// same piece of them in each sample, so that the channels of its lanes do not
// change and their values stay in registers.
//
//===----------------------------------------------------------------------===//

#include "Apply/ElementCloner.h"
#include "GpuSums.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::bngrad;

FlatPieces::FlatPieces(OpBuilder &b, const GpuGroup &gpu,
                       const FlatLayout &layout, Value column,
                       Value tileChannel)
    : Pieces(gpu, layout.rows.lanes), layout(layout), column(column) {
  IndexBuilder index = at(b);
  Value size = index.constant(layout.length);
  start = index.mul(column, index.constant(lanes));
  channelOfTile = index.div(start, size);
  firstChannel = index.add(tileChannel, channelOfTile);
  Value element = index.rem(start, size);
  for (int64_t lane : llvm::seq(lanes)) {
    Value next = index.add(element, index.constant(lane));
    Value ofFirst = isBelow(index, next, size);
    if (lane == 0)
      ofFirst = arith::ConstantIntOp::create(b, loc, 1, /*width=*/1);
    isFirst.push_back(ofFirst);
    elements.push_back(index.select(ofFirst, next, index.sub(next, size)));
  }
  lastChannel = index.select(isFirst.back(), firstChannel,
                             index.add(firstChannel, index.constant(1)));
}

std::pair<Value, SmallVector<Value>>
FlatPieces::locateOutput(OpBuilder &b, linalg::GenericOp, OpOperand &output,
                         const Indices &indices) const {
  const FlatView &view = views.at(output.get());
  return {view.memref,
          {at(b).sub(indices.front(), view.firstRow),
           at(b).add(start, view.firstElement)}};
}

Value FlatPieces::loadLanes(OpBuilder &b, linalg::GenericOp generic,
                            OpOperand &operand, const Indices &indices) const {
  constexpr unsigned feature = 1;
  AffineMap map = generic.getMatchingIndexingMap(&operand);
  if (isDataMap(map)) {
    auto [memref, position] = locateOutput(b, generic, operand, indices);
    return loadVector(b, memref, position);
  }
  auto load = [&](Value channel, Value element) -> Value {
    auto [memref, position] =
        locate(b, operand.get(), map, {indices.front(), channel, element});
    return memref::LoadOp::create(b, loc, memref, position);
  };
  bool ofElement = map.isFunctionOfDim(gpu.inner);
  Value first = load(firstChannel, elements.front());
  if (!ofElement && !map.isFunctionOfDim(feature))
    return first;
  SmallVector<Value> values;
  Value last = ofElement ? Value() : load(lastChannel, Value());
  for (auto [ofFirst, element] : llvm::zip_equal(isFirst, elements))
    values.push_back(ofElement ? load(getChannel(b, ofFirst), element)
                               : at(b).select(ofFirst, first, last));
  auto type = VectorType::get({lanes}, first.getType());
  return vector::FromElementsOp::create(b, loc, type, values);
}

Value FlatPieces::getIndex(OpBuilder &b, unsigned loop,
                           const Indices &indices) const {
  if (loop == 0)
    return indices.front();
  SmallVector<Value> values(elements);
  if (loop != gpu.inner)
    for (auto [value, ofFirst] : llvm::zip_equal(values, isFirst))
      value = getChannel(b, ofFirst);
  auto type = VectorType::get({lanes}, b.getIndexType());
  return vector::FromElementsOp::create(b, loc, type, values);
}

Value FlatPieces::getFirstPiece(OpBuilder &b, Value channel) const {
  IndexBuilder index = at(b);
  return index.div(index.mul(channel, index.constant(layout.length)),
                   index.constant(layout.rows.lanes));
}

void FlatPieces::storeSums(OpBuilder &b, ValueRange scratch, Value row,
                           ArrayRef<Accumulator> sums) const {
  IndexBuilder index = at(b);
  SmallVector<Value> totals = gpu.joinErrors(b, sums);
  // Adds up the lanes of the first or of the last channel.
  auto addLanes = [&](OpBuilder &nested, unsigned i, bool ofFirst) {
    SmallVector<Value> values;
    for (int64_t lane : llvm::seq(lanes)) {
      Value value = vector::ExtractOp::create(nested, loc, totals[i], lane);
      Value none = gpu.zero(nested, i);
      values.push_back(at(nested).select(isFirst[lane], ofFirst ? value : none,
                                         ofFirst ? none : value));
    }
    return addTree(nested, loc, values);
  };
  auto getSlot = [&](OpBuilder &nested, Value channel, Value piece) {
    IndexBuilder inside = at(nested);
    Value line =
        inside.add(inside.mul(channel, inside.constant(layout.rows.rows)), row);
    return inside.add(inside.mul(line, inside.constant(layout.rows.pieces)),
                      piece);
  };
  Value piece = index.sub(column, getFirstPiece(b, channelOfTile));
  for (unsigned i : llvm::seq(gpu.numSums()))
    memref::StoreOp::create(b, loc, addLanes(b, i, /*ofFirst=*/true),
                            scratch[i], getSlot(b, channelOfTile, piece));
  Value hasNext = arith::XOrIOp::create(
      b, loc, isFirst.back(),
      arith::ConstantIntOp::create(b, loc, 1, /*width=*/1));
  gpu.emitIf(b, hasNext, [&](OpBuilder &nested) {
    Value next = at(nested).add(channelOfTile, gpu.constant(nested, 1));
    for (unsigned i : llvm::seq(gpu.numSums()))
      memref::StoreOp::create(
          nested, loc, addLanes(nested, i, /*ofFirst=*/false), scratch[i],
          getSlot(nested, next, gpu.constant(nested, 0)));
  });
}

SmallVector<Value> FlatPieces::addSums(OpBuilder &b, ValueRange scratch,
                                       Value channel, Value lane) const {
  IndexBuilder index = at(b);
  // Some channels have elements in fewer pieces than others.
  Value first = getFirstPiece(b, channel);
  Value end = index.mul(index.add(channel, index.constant(1)),
                        index.constant(layout.length));
  Value count = index.sub(index.ceilDiv(end, index.constant(lanes)), first);
  int64_t pieces = layout.rows.pieces, slots = layout.rows.rows * pieces;
  Value start = index.mul(channel, index.constant(slots));
  SmallVector<SmallVector<Value>> values(gpu.numSums());
  for (int64_t from = 0; from < slots; from += CudaChip::kWarpSize) {
    Value slot = index.add(lane, index.constant(from));
    Value isPiece =
        isBelow(index, index.rem(slot, index.constant(pieces)), count);
    if (from + CudaChip::kWarpSize > slots)
      isPiece =
          index.bitAnd(isPiece, isBelow(index, slot, index.constant(slots)));
    // A warp must not read a slot that was not written.
    slot = index.select(isPiece, slot, index.constant(0));
    for (auto [i, memref] : llvm::enumerate(scratch)) {
      Value value =
          memref::LoadOp::create(b, loc, memref, index.add(start, slot));
      values[i].push_back(index.select(isPiece, value, gpu.zero(b, i)));
    }
  }
  SmallVector<Value> totals;
  for (const SmallVector<Value> &ofSum : values)
    totals.push_back(
        addAcrossWarp(b, loc, addTree(b, loc, ofSum), CudaChip::kWarpSize));
  return totals;
}
