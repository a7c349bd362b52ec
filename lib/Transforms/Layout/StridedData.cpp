//===- StridedData.cpp - sizes, strides and views of data -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StridedData.h"
#include "Utils/IndexBuilder.h"

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace mlir::bngrad;

Value mlir::bngrad::castToStorage(OpBuilder &b, Location loc, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.getElementType().isInteger(1))
    return memref;
  return ElementCastOp::create(b, loc, type.clone(b.getI8Type()), memref);
}

static Value isEqual(const IndexBuilder &index, Value l, Value r) {
  return index.compare(arith::CmpIPredicate::eq, l, r);
}

StridedData StridedData::get(OpBuilder &b, Location loc, Value memref) {
  auto op = memref::ExtractStridedMetadataOp::create(b, loc, memref);
  auto toValues = [&](ArrayRef<OpFoldResult> mixed) {
    return getValueOrCreateConstantIndexOp(b, loc, mixed);
  };
  StridedData data(memref);
  data.base = op.getBaseBuffer();
  data.offset =
      getValueOrCreateConstantIndexOp(b, loc, op.getConstifiedMixedOffset());
  data.sizes = toValues(op.getConstifiedMixedSizes());
  data.strides = toValues(op.getConstifiedMixedStrides());
  return data;
}

int64_t StridedData::getElementBytes() const {
  return llvm::divideCeil(getType().getElementTypeBitWidth(), 8);
}

/// The number of elements from the first element to the last one in memory. It
/// does not count elements before the first, which negative strides would
/// reach.
static Value getExtent(OpBuilder &b, Location loc, const DataDims &dims) {
  IndexBuilder index = {b, loc};
  Value extent = index.constant(1);
  for (auto [size, stride] : llvm::zip_equal(dims.sizes, dims.strides)) {
    Value last = index.mul(index.sub(size, index.constant(1)), stride);
    extent = index.add(extent, index.max(last, index.constant(0)));
  }
  return extent;
}

MemRefType StridedData::getFlatType(Type element) const {
  return MemRefType::get({ShapedType::kDynamic}, element,
                         MemRefLayoutAttrInterface(),
                         getType().getMemorySpace());
}

//===----------------------------------------------------------------------===//
// Strides
//===----------------------------------------------------------------------===//

SmallVector<Value> StridedData::getDenseStrides(OpBuilder &b, Location loc,
                                                ArrayRef<int64_t> order) const {
  IndexBuilder index = {b, loc};
  SmallVector<Value> dense(order.size());
  Value stride = index.constant(1);
  for (int64_t dim : llvm::reverse(order)) {
    dense[dim] = stride;
    stride = index.mul(stride, sizes[dim]);
  }
  return dense;
}

Value StridedData::isDenseIn(OpBuilder &b, Location loc,
                             ArrayRef<int64_t> order) const {
  IndexBuilder index = {b, loc};
  Value one = index.constant(1);
  Value result = arith::ConstantIntOp::create(b, loc, 1, 1);
  for (auto [size, stride, dense] :
       llvm::zip_equal(sizes, strides, getDenseStrides(b, loc, order)))
    result = index.bitAnd(result, index.bitOr(isEqual(index, stride, dense),
                                              isEqual(index, size, one)));
  return result;
}

MergedDims
StridedData::mergeDims(OpBuilder &b, Location loc, ArrayRef<int64_t> order,
                       ArrayRef<ReassociationIndices> mergedLoops) const {
  IndexBuilder index = {b, loc};
  Value one = index.constant(1);
  MergedDims merged;
  merged.isPossible = arith::ConstantIntOp::create(b, loc, 1, 1);
  for (const ReassociationIndices &positions : mergedLoops) {
    Value size = one, stride = one;
    for (int64_t position : llvm::reverse(positions)) {
      Value nextSize = sizes[order[position]];
      Value nextStride = strides[order[position]];
      Value isUnit = isEqual(index, nextSize, one);
      Value isFirst = isEqual(index, size, one);
      Value fits = isEqual(index, nextStride, index.mul(size, stride));
      merged.isPossible = index.bitAnd(
          merged.isPossible, index.bitOr(fits, index.bitOr(isUnit, isFirst)));
      stride = index.select(isUnit, stride,
                            index.select(isFirst, nextStride, stride));
      size = index.mul(size, nextSize);
    }
    merged.sizes.push_back(size);
    merged.strides.push_back(stride);
  }
  merged.isPossible = index.bitAnd(
      merged.isPossible, index.bitOr(isEqual(index, merged.strides.back(), one),
                                     isEqual(index, merged.sizes.back(), one)));
  return merged;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value StridedData::getFlatView(OpBuilder &b, Location loc) const {
  Value count = IndexBuilder{b, loc}.add(getExtent(b, loc, *this), offset);
  return memref::ReinterpretCastOp::create(
      b, loc, getFlatType(getType().getElementType()), base,
      OpFoldResult(b.getIndexAttr(0)), ArrayRef<OpFoldResult>{count},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
}

DataBytes StridedData::getBytes(OpBuilder &b, Location loc) const {
  IndexBuilder index = {b, loc};
  Value flat = getFlatView(b, loc);
  Value bytes = ElementCastOp::create(b, loc, getFlatType(b.getI8Type()), flat);
  return {bytes, index.mul(offset, index.constant(getElementBytes()))};
}

Value StridedData::getByteCount(OpBuilder &b, Location loc) const {
  IndexBuilder index = {b, loc};
  return index.mul(index.product(sizes), index.constant(getElementBytes()));
}

/// Uses memref.view because, unlike memref.reinterpret_cast, it can start at an
/// offset and still have an identity layout.
Value StridedData::getView(OpBuilder &b, Location loc, DataBytes start,
                           ArrayRef<int64_t> shape,
                           ArrayRef<Value> viewSizes) const {
  SmallVector<Value> dynamicSizes;
  for (auto [known, size] : llvm::zip_equal(shape, viewSizes))
    if (ShapedType::isDynamic(known))
      dynamicSizes.push_back(size);
  auto viewType =
      MemRefType::get(shape, getType().getElementType(),
                      MemRefLayoutAttrInterface(), getType().getMemorySpace());
  return memref::ViewOp::create(b, loc, viewType, start.bytes, start.offset,
                                dynamicSizes);
}

Value StridedData::getDenseView(OpBuilder &b, Location loc, DataBytes start,
                                ArrayRef<int64_t> order) const {
  return getView(b, loc, start, applyPermutation(getType().getShape(), order),
                 applyPermutation(ArrayRef(sizes), order));
}

Value StridedData::getStridedView(OpBuilder &b, Location loc, DataBytes start,
                                  const DataDims &dims) const {
  Value flat =
      getView(b, loc, start, ShapedType::kDynamic, getExtent(b, loc, dims));
  auto toStatic = [](ArrayRef<OpFoldResult> values) {
    SmallVector<Value> dynamic;
    SmallVector<int64_t> numbers;
    dispatchIndexOpFoldResults(values, dynamic, numbers);
    return numbers;
  };
  SmallVector<OpFoldResult> viewSizes = getAsOpFoldResult(dims.sizes);
  SmallVector<OpFoldResult> viewStrides = getAsOpFoldResult(dims.strides);
  auto layout = StridedLayoutAttr::get(b.getContext(), /*offset=*/0,
                                       toStatic(viewStrides));
  auto viewType =
      MemRefType::get(toStatic(viewSizes), getType().getElementType(), layout,
                      getType().getMemorySpace());
  return memref::ReinterpretCastOp::create(
      b, loc, viewType, flat, b.getIndexAttr(0), viewSizes, viewStrides);
}
