//===- StridedData.h - sizes, strides and views of data ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An *order* lists the dims of data from the slowest to the fastest. A view of
// data in an order has its dims in that order.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_LAYOUT_STRIDEDDATA_H
#define BNGRAD_LIB_TRANSFORMS_LAYOUT_STRIDEDDATA_H

#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::bngrad {

/// `memref` itself if vectors of its elements can be loaded and stored. A
/// memref of i1 is cast to i8, its storage type, as a vector of i1 would be
/// loaded as bits.
Value castToStorage(OpBuilder &b, Location loc, Value memref);

/// Where the first element of data lies: `offset` bytes into `bytes`, a
/// memref<?xi8>.
struct DataBytes {
  Value bytes, offset;
};

/// Sizes and strides in elements, by dim.
struct DataDims {
  SmallVector<Value> sizes, strides;
};

/// The sizes and strides by merged loop, valid if `isPossible`, an i1.
struct MergedDims : DataDims {
  Value isPossible;
};

/// A memref with sizes and strides as values.
struct StridedData : DataDims {
  Value memref;
  Value base, offset; // the offset in elements

  explicit StridedData(Value memref) : memref(memref) {}
  static StridedData get(OpBuilder &b, Location loc, Value memref);

  MemRefType getType() const { return cast<MemRefType>(memref.getType()); }
  /// Whether the type is dense.
  bool isDense() const { return getType().getLayout().isIdentity(); }
  /// An i1: whether the strides are those of dense data in `order`. The stride
  /// of a dim of one element does not matter.
  Value isDenseIn(OpBuilder &b, Location loc, ArrayRef<int64_t> order) const;
  /// The strides, by dim, that dense data in `order` would have.
  SmallVector<Value> getDenseStrides(OpBuilder &b, Location loc,
                                     ArrayRef<int64_t> order) const;
  /// Merges the dims at the positions `mergedLoops` in `order`. The strides of
  /// dims of one element do not matter; the last merged dim must have a stride
  /// of 1.
  MergedDims mergeDims(OpBuilder &b, Location loc, ArrayRef<int64_t> order,
                       ArrayRef<ReassociationIndices> mergedLoops) const;

  /// The memory from its base to the last element, in one dim.
  Value getFlatView(OpBuilder &b, Location loc) const;
  DataBytes getBytes(OpBuilder &b, Location loc) const;
  /// Bytes of the elements, as if they were dense.
  Value getByteCount(OpBuilder &b, Location loc) const;
  /// The data at `start`, dense in `order`, with identity layout.
  Value getDenseView(OpBuilder &b, Location loc, DataBytes start,
                     ArrayRef<int64_t> order) const;
  /// The data at `start`, with the strides of `dims` but without an offset.
  Value getStridedView(OpBuilder &b, Location loc, DataBytes start,
                       const DataDims &dims) const;

private:
  int64_t getElementBytes() const;
  Value getView(OpBuilder &b, Location loc, DataBytes start,
                ArrayRef<int64_t> shape, ArrayRef<Value> viewSizes) const;
  MemRefType getFlatType(Type element) const;
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_LAYOUT_STRIDEDDATA_H
