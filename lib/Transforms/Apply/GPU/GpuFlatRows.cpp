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
#include "GpuKernels.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::bngrad;

FlatPiece GpuKernels::getFlatPiece(OpBuilder &b, const FlatLayout &layout,
                                   Value column, Value tileChannel) const {
  IndexBuilder index = at(b);
  Value size = index.constant(layout.length);
  FlatPiece piece;
  piece.column = column;
  Value start = index.mul(column, index.constant(layout.rows.lanes));
  piece.start = start;
  piece.channelOfTile = index.div(start, size);
  piece.firstChannel = index.add(tileChannel, piece.channelOfTile);
  Value element = index.rem(start, size);
  for (int64_t lane : llvm::seq(layout.rows.lanes)) {
    Value next = index.add(element, index.constant(lane));
    Value isFirst = index.compare(arith::CmpIPredicate::ult, next, size);
    if (lane == 0)
      isFirst = arith::ConstantIntOp::create(b, loc, 1, /*width=*/1);
    piece.isFirst.push_back(isFirst);
    piece.elements.push_back(
        index.select(isFirst, next, index.sub(next, size)));
  }
  piece.lastChannel =
      index.select(piece.isFirst.back(), piece.firstChannel,
                   index.add(piece.firstChannel, index.constant(1)));
  return piece;
}

std::pair<Value, SmallVector<Value>>
GpuKernels::locateFlatPiece(OpBuilder &b, Value memref,
                            const Indices &indices) const {
  IndexBuilder index = at(b);
  const FlatView &view = flat->views.at(memref);
  return {view.memref,
          {index.sub(indices.front(), view.firstRow),
           index.add(flat->start, view.firstElement)}};
}

Value GpuKernels::loadFlatPiece(OpBuilder &b, linalg::GenericOp generic,
                                OpOperand &operand, const Indices &indices,
                                int64_t lanes) const {
  constexpr unsigned feature = 1;
  AffineMap map = generic.getMatchingIndexingMap(&operand);
  if (isDataMap(map)) {
    auto [memref, position] = locateFlatPiece(b, operand.get(), indices);
    return loadVector(b, memref, position, lanes);
  }
  auto load = [&](Value channel, Value element) -> Value {
    auto [memref, position] =
        locate(b, operand.get(), map, {indices.front(), channel, element});
    return memref::LoadOp::create(b, loc, memref, position);
  };
  bool ofElement = map.isFunctionOfDim(inner);
  Value first = load(flat->firstChannel, flat->elements.front());
  if (!ofElement && !map.isFunctionOfDim(feature))
    return first;
  SmallVector<Value> values;
  Value last = ofElement ? Value() : load(flat->lastChannel, Value());
  for (auto [isFirst, element] : llvm::zip_equal(flat->isFirst, flat->elements))
    values.push_back(ofElement ? load(at(b).select(isFirst, flat->firstChannel,
                                                   flat->lastChannel),
                                      element)
                               : at(b).select(isFirst, first, last));
  auto type = VectorType::get({lanes}, first.getType());
  return vector::FromElementsOp::create(b, loc, type, values);
}

Value GpuKernels::getFlatIndices(OpBuilder &b, unsigned loop) const {
  SmallVector<Value> values(flat->elements);
  if (loop != inner)
    for (auto [value, isFirst] : llvm::zip_equal(values, flat->isFirst))
      value = at(b).select(isFirst, flat->firstChannel, flat->lastChannel);
  auto type =
      VectorType::get({static_cast<int64_t>(values.size())}, b.getIndexType());
  return vector::FromElementsOp::create(b, loc, type, values);
}

/// The first piece of a flat row with elements of a channel of the tile.
static Value getFirstPiece(IndexBuilder index, const FlatLayout &layout,
                           Value channelOfTile) {
  return index.div(index.mul(channelOfTile, index.constant(layout.length)),
                   index.constant(layout.rows.lanes));
}

void GpuKernels::storeFlatSums(OpBuilder &b, ArrayRef<Value> scratch,
                               const FlatLayout &layout, Value row,
                               ArrayRef<Accumulator> sums) const {
  IndexBuilder index = at(b);
  SmallVector<Value> totals = joinErrors(b, sums);
  // Adds up the lanes of the first or of the last channel.
  auto addLanes = [&](OpBuilder &nested, unsigned i, bool ofFirst) {
    SmallVector<Value> values;
    for (int64_t lane : llvm::seq(layout.rows.lanes)) {
      Value value = vector::ExtractOp::create(nested, loc, totals[i], lane);
      Value isFirst = flat->isFirst[lane], none = zero(nested, i);
      values.push_back(at(nested).select(isFirst, ofFirst ? value : none,
                                         ofFirst ? none : value));
    }
    return addTree(nested, values);
  };
  auto getSlot = [&](OpBuilder &nested, Value channel, Value piece) {
    IndexBuilder inside = at(nested);
    Value line =
        inside.add(inside.mul(channel, inside.constant(layout.rows.rows)), row);
    return inside.add(inside.mul(line, inside.constant(layout.rows.pieces)),
                      piece);
  };
  Value channel = flat->channelOfTile;
  Value piece = index.sub(flat->column, getFirstPiece(index, layout, channel));
  for (unsigned i : llvm::seq(numSums()))
    memref::StoreOp::create(b, loc, addLanes(b, i, /*ofFirst=*/true),
                            scratch[i], getSlot(b, channel, piece));
  Value hasNext = arith::XOrIOp::create(
      b, loc, flat->isFirst.back(),
      arith::ConstantIntOp::create(b, loc, 1, /*width=*/1));
  emitIf(b, hasNext, [&](OpBuilder &nested) {
    Value next = at(nested).add(channel, constant(nested, 1));
    for (unsigned i : llvm::seq(numSums()))
      memref::StoreOp::create(
          nested, loc, addLanes(nested, i, /*ofFirst=*/false), scratch[i],
          getSlot(nested, next, constant(nested, 0)));
  });
}

SmallVector<Value> GpuKernels::addFlatSums(OpBuilder &b,
                                           ArrayRef<Value> scratch,
                                           const FlatLayout &layout,
                                           Value channelOfTile,
                                           Value lane) const {
  IndexBuilder index = at(b);
  const auto &[lanes, columns, rows, pieces] = layout.rows;
  // Some channels have elements in fewer pieces than others.
  Value first = getFirstPiece(index, layout, channelOfTile);
  Value end = index.mul(index.add(channelOfTile, index.constant(1)),
                        index.constant(layout.length));
  Value count = index.sub(index.ceilDiv(end, index.constant(lanes)), first);
  int64_t slots = rows * pieces;
  Value start = index.mul(channelOfTile, index.constant(slots));
  SmallVector<SmallVector<Value>> values(numSums());
  for (int64_t from = 0; from < slots; from += CudaChip::kWarpSize) {
    Value slot = index.add(lane, index.constant(from));
    Value isPiece =
        index.compare(arith::CmpIPredicate::ult,
                      index.rem(slot, index.constant(pieces)), count);
    if (from + CudaChip::kWarpSize > slots)
      isPiece =
          index.bitAnd(isPiece, index.compare(arith::CmpIPredicate::ult, slot,
                                              index.constant(slots)));
    // A warp must not read a slot that was not written.
    slot = index.select(isPiece, slot, index.constant(0));
    for (auto [i, memref] : llvm::enumerate(scratch)) {
      Value value =
          memref::LoadOp::create(b, loc, memref, index.add(start, slot));
      values[i].push_back(index.select(isPiece, value, zero(b, i)));
    }
  }
  SmallVector<Value> totals;
  for (const SmallVector<Value> &ofSum : values)
    totals.push_back(addAcrossWarp(b, addTree(b, ofSum), CudaChip::kWarpSize));
  return totals;
}
