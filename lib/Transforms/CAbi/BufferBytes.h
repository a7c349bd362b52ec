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

/// The number of bytes that an element of a buffer occupies, or 0 if unknown.
int64_t getElementBytes(Type type);

/// Emits sizes in bytes as i64 values. A size too large for any memory
/// saturates at 2^48 or more, which leaves room to add many of them without
/// overflow.
class BufferBytes {
public:
  /// Buffer sizes are rounded up to multiples of `alignment`, a power of 2.
  BufferBytes(OpBuilder &builder, Location loc, int64_t alignment)
      : builder(builder), loc(loc), alignment(alignment) {}

  /// The size of a buffer of `type`, whose element size must be known.
  Value compute(MemRefType type, ValueRange dynamicSizes) const;
  Value constant(int64_t value) const;
  Value fromIndex(Value index) const;
  Value toIndex(Value bytes) const;
  Value add(Value lhs, Value rhs) const;
  /// The product, saturated at 2^48.
  Value multiply(Value lhs, Value rhs) const;

private:
  OpBuilder &builder;
  Location loc;
  int64_t alignment;
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_CABI_BUFFERBYTES_H
