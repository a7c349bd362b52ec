//===- CheckBuilder.h - arithmetic of run-time checks -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_CABI_CHECKBUILDER_H
#define BNGRAD_LIB_TRANSFORMS_CABI_CHECKBUILDER_H

#include "BNGrad/Transforms/CAbi/ShapeFunction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::bngrad {

/// The positions of the first and last element of a buffer in memory, in
/// elements relative to its aligned pointer.
struct Extent {
  Value first, last;
};

/// Emits conditions on index values as cf.assert. The sizes may come from a
/// caller and have any value, so products and sums of them are guarded against
/// overflow.
class CheckBuilder {
public:
  CheckBuilder(Operation *insertBefore, Location loc)
      : b(insertBefore), loc(loc) {}

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value toValue(OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, loc, size);
  }
  Value sizeOf(Value shaped, int64_t dim) {
    if (isa<MemRefType>(shaped.getType()))
      return b.createOrFold<memref::DimOp>(loc, shaped, dim);
    return b.createOrFold<tensor::DimOp>(loc, shaped, dim);
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
  }
  Value select(Value condition, Value lhs, Value rhs) {
    return arith::SelectOp::create(b, loc, condition, lhs, rhs);
  }
  Value subtract(Value lhs, Value rhs) {
    return b.createOrFold<arith::SubIOp>(loc, lhs, rhs);
  }
  /// Requires that the comparison holds; otherwise, both values are reported
  /// after the message.
  void verify(arith::CmpIPredicate predicate, Value actual, Value expected,
              const Twine &message);
  void verifyEqual(Value actual, Value expected, const Twine &message) {
    verify(arith::CmpIPredicate::eq, actual, expected, message);
  }
  void verifyNotNegative(Value size, const Twine &what) {
    verifyAtLeast(size, 0, what);
  }
  void verifyAtLeast(Value actual, int64_t least, const Twine &what) {
    verify(arith::CmpIPredicate::sge, actual, constant(least),
           "expected " + what + " to be at least");
  }
  /// Requires that no product of some of `sizes`, which are nonnegative,
  /// overflows.
  void verifyProduct(ValueRange sizes);
  /// The saturated product of nonnegative numbers.
  Value multiply(ValueRange sizes);
  Value multiply(Value product, Value size);
  /// The product of the sizes that `getSize` emits for 0 to `count` - 1.
  Value multiplyAll(Value count, function_ref<Value(Value)> getSize);
  /// Requires that the sum of `sizes`, which are nonnegative, does not
  /// overflow. The message is about the last of them, which `what` names.
  void verifySum(ValueRange sizes, const Twine &what);
  /// The saturated number of elements of `shaped`.
  Value countElements(Value shaped);
  /// The product, and an i1 that is true unless it overflowed.
  std::pair<Value, Value> multiplySigned(Value lhs, Value rhs);
  /// The extent of a nonempty buffer, clamped to +-kMostElements where it could
  /// overflow.
  Extent findExtent(Value offset, ValueRange sizes, ValueRange strides);

protected:
  OpBuilder b;
  Location loc;
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_CABI_CHECKBUILDER_H
