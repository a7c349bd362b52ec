//===- FloatBuilder.h - arithmetic on floats --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_FLOATBUILDER_H
#define BNGRAD_TRANSFORMS_FLOATBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::bngrad {

/// Arithmetic on floats of one type, scalars or vectors.
struct FloatBuilder {
  OpBuilder &b;
  Location loc;
  /// Those of sums, differences and products.
  arith::FastMathFlags flags = arith::FastMathFlags::none;

  Value add(Value l, Value r) const {
    return arith::AddFOp::create(b, loc, l, r, flags);
  }
  Value sub(Value l, Value r) const {
    return arith::SubFOp::create(b, loc, l, r, flags);
  }
  Value mul(Value l, Value r) const {
    return arith::MulFOp::create(b, loc, l, r, flags);
  }
  Value div(Value l, Value r) const {
    return arith::DivFOp::create(b, loc, l, r);
  }
  /// The greater one; NaN if either is.
  Value max(Value l, Value r) const {
    return arith::MaximumFOp::create(b, loc, l, r);
  }
  /// Converts to another float type, exactly or with one rounding.
  Value convert(Value value, FloatType to) const {
    auto from = cast<FloatType>(getElementTypeOrSelf(value));
    if (from == to)
      return value;
    Type type = withType(value, to);
    if (from.getWidth() < to.getWidth())
      return arith::ExtFOp::create(b, loc, type, value);
    return arith::TruncFOp::create(b, loc, type, value);
  }
  Value toF64(Value value) const { return convert(value, b.getF64Type()); }
  Value toF32(Value value) const { return convert(value, b.getF32Type()); }
  /// A scalar as a vector if `like` is one.
  Value broadcast(Value scalar, Value like) const {
    Type type = withType(like, scalar.getType());
    return type == scalar.getType()
               ? scalar
               : vector::BroadcastOp::create(b, loc, type, scalar);
  }
  Value constant(double number, Type type) const {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, number));
  }
  /// A number in the type of `like`.
  Value constant(double number, Value like) const {
    return broadcast(constant(number, getElementTypeOrSelf(like)), like);
  }
  /// An integer of type index as f64.
  Value toDouble(Value number) const {
    Value integer = arith::IndexCastOp::create(b, loc, b.getI64Type(), number);
    return b.createOrFold<arith::SIToFPOp>(loc, b.getF64Type(), integer);
  }
  /// `value`, or `other` where `value` is infinite or NaN.
  Value selectFinite(Value value, Value other) const {
    Value difference = sub(value, value);
    Value isFinite = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ORD,
                                           difference, difference);
    return arith::SelectOp::create(b, loc, isFinite, value, other);
  }

private:
  /// `type`, or a vector of it if `like` is one.
  static Type withType(Value like, Type type) {
    auto vector = dyn_cast<VectorType>(like.getType());
    return vector ? vector.clone(type) : type;
  }
};

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_FLOATBUILDER_H
