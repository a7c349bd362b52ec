//===- StridedData.h - sizes, strides and views of data ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An *order* lists the dims of data from the slowest to the fastest. In a view
// of the data in an order, the dims are permuted to that order.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_LAYOUT_STRIDEDDATA_H
#define BNGRAD_LIB_TRANSFORMS_LAYOUT_STRIDEDDATA_H

#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::bngrad {

/// Makes vectors of the elements of `memref` loadable. A memref of i1 is cast
/// to i8, its storage type, because a vector of i1 would be loaded as packed
/// bits. Any other memref is returned as it is.
Value castToStorage(OpBuilder &b, Location loc, Value memref);

/// The position of the first element of data: `offset` bytes into `bytes`, a
/// memref<?xi8>.
struct DataBytes {
  Value bytes, offset;
};

/// Sizes and strides in elements, by dim.
struct DataDims {
  SmallVector<Value> sizes, strides;
};

/// The sizes and strides by merged loop. They are valid if `isPossible`, an i1,
/// is true.
struct MergedDims : DataDims {
  Value isPossible;
};

/// A memref whose sizes and strides are available as values.
struct StridedData : DataDims {
  Value memref;
  Value base, offset; // the offset in elements

  explicit StridedData(Value memref) : memref(memref) {}
  static StridedData get(OpBuilder &b, Location loc, Value memref);

  MemRefType getType() const { return cast<MemRefType>(memref.getType()); }
  /// Whether the type is dense.
  bool isDense() const { return getType().getLayout().isIdentity(); }
  /// Emits an i1: whether the data are dense in `order`. The stride of a dim
  /// with one element does not matter.
  Value isDenseIn(OpBuilder &b, Location loc, ArrayRef<int64_t> order) const;
  /// Emits the strides, by dim, that dense data in `order` would have.
  SmallVector<Value> getDenseStrides(OpBuilder &b, Location loc,
                                     ArrayRef<int64_t> order) const;
  /// Merges the dims whose positions in `order` are grouped in `mergedLoops`.
  /// This is possible if each group has a common stride and the last merged dim
  /// has stride 1; the strides of dims with one element do not matter.
  MergedDims mergeDims(OpBuilder &b, Location loc, ArrayRef<int64_t> order,
                       ArrayRef<ReassociationIndices> mergedLoops) const;

  /// A one-dimensional view of the memory from the base to the last element.
  Value getFlatView(OpBuilder &b, Location loc) const;
  DataBytes getBytes(OpBuilder &b, Location loc) const;
  /// The number of bytes that the elements would take if they were dense.
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
