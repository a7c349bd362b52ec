//===- CpuMemory.cpp - loads, stores and tables of the CPU's loops --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Apply/ElementCloner.h"
#include "CpuLoops.h"
#include "Layout/StridedData.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::bngrad;

/// If a row with gaps has at least this many bytes, streaming its whole lines
/// gains more than is lost at its ends.
static constexpr int64_t kLongRowBytes = 768;

Value mlir::bngrad::castToBits(OpBuilder &b, Location loc, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  return ElementCastOp::create(b, loc, type.clone(b.getI16Type()), memref);
}

Value CpuLoops::getIndex(OpBuilder &b, Value memref, const Run &run,
                         Value position) const {
  IndexBuilder index = at(b);
  if (!hasRowStrides)
    return index.add(run.base, position);
  ArrayRef<Value> strides = rowStrides.at(memref);
  Value row = index.constant(0);
  for (auto [iv, stride] : llvm::zip(ArrayRef(run.ivs).drop_back(), strides))
    row = index.add(row, index.mul(iv, stride));
  return index.add(row, position);
}

Value CpuLoops::load(OpBuilder &b, Value memref, ValueRange indices,
                     const Piece &piece) const {
  memref = castToStorage(b, loc, memref);
  auto type = VectorType::get({piece.lanes}, getElementTypeOrSelf(memref));
  if (!piece.mask)
    return vector::LoadOp::create(b, loc, type, memref, indices);
  VectorType loaded = type;
  if (isHalf(type.getElementType())) {
    loaded = type.clone(b.getI16Type());
    memref = castToBits(b, loc, memref);
  }
  Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(loaded));
  Value value = vector::MaskedLoadOp::create(b, loc, loaded, memref, indices,
                                             piece.mask, zeros);
  return b.createOrFold<arith::BitcastOp>(loc, type, value);
}

/// `value` as a vector of `lanes` elements in their storage type.
static Value toStorage(OpBuilder &b, Location loc, Value value, int64_t lanes) {
  value = broadcastTo(b, loc, value, lanes);
  if (!getElementTypeOrSelf(value).isInteger(1))
    return value;
  auto type = VectorType::get({lanes}, b.getI8Type());
  return arith::ExtUIOp::create(b, loc, type, value);
}

Value mlir::bngrad::toBits(OpBuilder &b, Location loc, Value value) {
  auto type = cast<VectorType>(value.getType());
  return arith::BitcastOp::create(b, loc, type.clone(b.getI16Type()), value);
}

void CpuLoops::store(OpBuilder &b, Value value, Value memref,
                     ValueRange indices, const Piece &piece) const {
  value = toStorage(b, loc, value, piece.lanes);
  Type element = getElementTypeOrSelf(value);
  bool isNarrow = isHalf(element);
  // Slicing joined pairs would shuffle them again.
  bool arePairs = isa_and_present<vector::InterleaveOp>(value.getDefiningOp());
  auto truncation = value.getDefiningOp<arith::TruncFOp>();
  // With a store of bf16, LLVM would move the selection of NaN in the rounding
  // to after the truncation. Most CPUs cannot select bf16, so it would become a
  // jump for each element.
  if (isNarrow && (piece.mask || (element.isBF16() && !arePairs))) {
    value = toBits(b, loc, value);
    memref = castToBits(b, loc, memref);
  }
  if (piece.mask) {
    vector::MaskedStoreOp::create(b, loc, memref, indices, piece.mask, value);
    return;
  }
  if (!isNarrow || piece.lanes <= lanes || arePairs) {
    vector::StoreOp::create(b, loc, value, memref, indices);
    return;
  }
  // Stores the result of each conversion separately; LLVM would join two first.
  // It also joins slices of one conversion, so f16 gets a conversion per slice,
  // unless registers are so short that CPUs may lack the instruction.
  bool isSplit = truncation && element.isF16() && schedule.vectorBits > 128;
  if (isSplit)
    value = truncation.getIn();
  SmallVector<Value> position(indices);
  for (int64_t first = 0; first < piece.lanes; first += lanes) {
    Value slice =
        vector::ExtractStridedSliceOp::create(b, loc, value, first, lanes, 1);
    if (isSplit)
      slice = arith::TruncFOp::create(
          b, loc, VectorType::get({lanes}, b.getF16Type()), slice,
          truncation.getRoundingmodeAttr(), truncation.getFastmathAttr());
    position.back() = at(b).add(indices.back(), constant(b, first));
    vector::StoreOp::create(b, loc, slice, memref, position);
  }
}

void CpuLoops::storeStreaming(OpBuilder &b, Value value, Value memref,
                              ValueRange indices, const Piece &piece) const {
  value = toStorage(b, loc, value, piece.lanes);
  if (isHalf(getElementTypeOrSelf(value))) {
    value = toBits(b, loc, value);
    memref = castToBits(b, loc, memref);
  }
  int64_t pieceBytes =
      piece.lanes * getElementTypeOrSelf(value).getIntOrFloatBitWidth() / 8;
  vector::StoreOp::create(b, loc, value, memref, indices, /*nontemporal=*/true,
                          llvm::MaybeAlign(std::min(kLineBytes, pieceBytes)));
}

TableMemory CpuLoops::createTables(OpBuilder &b,
                                   ArrayRef<TableType> types) const {
  TableMemory result;
  if (types.empty())
    return result;
  IndexBuilder index = at(b);
  auto getMemRefType = [](Type element) {
    return MemRefType::get({ShapedType::kDynamic}, element);
  };
  Value size = index.constant(0);
  SmallVector<Value> offsets, lengths;
  for (auto [entries, type] : types) {
    // Round up to whole lines. Vectors may start at any entry, and the rows of
    // `rows` up to a line later.
    Value length =
        index.add(entries, index.constant(2 * wide + 2 * kLineBytes - 1));
    length = index.sub(length, index.rem(length, index.constant(kLineBytes)));
    offsets.push_back(size);
    lengths.push_back(length);
    int64_t width = llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
    size = index.add(size, index.mul(length, index.constant(width)));
  }
  result.memory = memref::AllocOp::create(b, loc, getMemRefType(b.getI8Type()),
                                          ValueRange{size}, ValueRange(),
                                          b.getI64IntegerAttr(kLineBytes));
  for (auto [type, offset, length] : llvm::zip_equal(types, offsets, lengths))
    result.tables.push_back(
        memref::ViewOp::create(b, loc, getMemRefType(type.element),
                               result.memory, offset, ValueRange{length}));
  return result;
}

void CpuLoops::deallocate(OpBuilder &b, const TableMemory &tables) const {
  if (tables.memory)
    memref::DeallocOp::create(b, loc, tables.memory);
}

Value CpuLoops::isStoredPast(OpBuilder &b, linalg::GenericOp generic) const {
  // Two results would be two streams that start at different lines.
  if (generic.getNumDpsInits() != 1)
    return arith::ConstantIntOp::create(b, loc, 0, 1);
  if (!hasRowStrides)
    return isStreamed;
  // Short rows have few whole lines, unless all their lines are whole.
  Value areWhole = hasWholeLines(b, generic);
  if (!group.isFeature(group.numLoops - 1)) {
    Value elements = constant(b, getElementBytes(getFlatResult(generic)));
    Value areLong = at(b).compare(arith::CmpIPredicate::uge,
                                  at(b).mul(sizes.back(), elements),
                                  constant(b, kLongRowBytes));
    areWhole = at(b).bitOr(areWhole, areLong);
  }
  return at(b).bitAnd(isStreamed, areWhole);
}

Value CpuLoops::hasWholeLines(OpBuilder &b, linalg::GenericOp generic) const {
  IndexBuilder index = at(b);
  Value result = generic.getDpsInitOperand(0)->get();
  Value width = index.constant(getElementBytes(result));
  SmallVector<Value> starts = {
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, getFlat(result))};
  for (Value elements : llvm::concat<const Value>(
           ArrayRef(rowStrides.at(result)).drop_back(), ArrayRef(sizes.back())))
    starts.push_back(index.mul(elements, width));
  Value areWhole = arith::ConstantIntOp::create(b, loc, 1, 1);
  for (Value start : starts)
    areWhole = index.bitAnd(
        areWhole, index.compare(arith::CmpIPredicate::eq,
                                index.rem(start, index.constant(kLineBytes)),
                                index.constant(0)));
  return areWhole;
}

Value CpuLoops::getElementsToLine(OpBuilder &b, Value address,
                                  int64_t width) const {
  IndexBuilder index = at(b);
  Value line = index.constant(kLineBytes);
  Value bytesToLine =
      index.rem(index.sub(line, index.rem(address, line)), line);
  return index.div(bytesToLine, index.constant(width));
}
