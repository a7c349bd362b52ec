//===- BufferBytes.h - the sizes of buffers in bytes ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_CABI_BUFFERBYTES_H
#define BNGRAD_LIB_TRANSFORMS_CABI_BUFFERBYTES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace mlir::bngrad {

/// The bytes of an element of a buffer; 0 if its size in memory is not known.
int64_t getElementBytes(Type type);

/// Emits sizes in bytes, as i64. A size that no memory holds is 2^48 or more,
/// and sums of them are exact.
class BufferBytes {
public:
  /// `alignment`: sizes of buffers are multiples of it, a power of 2.
  BufferBytes(OpBuilder &builder, Location loc, int64_t alignment)
      : builder(builder), loc(loc), alignment(alignment) {}

  /// The size of a buffer whose elements have a known size.
  Value compute(MemRefType type, ValueRange dynamicSizes) const;
  Value constant(int64_t value) const;
  Value fromIndex(Value index) const;
  Value toIndex(Value bytes) const;
  Value add(Value lhs, Value rhs) const;
  /// The product, at most 2^48.
  Value multiply(Value lhs, Value rhs) const;

private:
  OpBuilder &builder;
  Location loc;
  int64_t alignment;
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_CABI_BUFFERBYTES_H
