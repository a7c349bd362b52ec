//===- FloatBuilder.h - arithmetic on floats --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_APPLY_FLOATBUILDER_H
#define BNGRAD_LIB_TRANSFORMS_APPLY_FLOATBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::bngrad {

/// Arithmetic on floats of one type, scalars or vectors.
struct FloatBuilder {
  OpBuilder &b;
  Location loc;

  Value add(Value l, Value r) const {
    return arith::AddFOp::create(b, loc, l, r);
  }
  Value sub(Value l, Value r) const {
    return arith::SubFOp::create(b, loc, l, r);
  }
  Value mul(Value l, Value r) const {
    return arith::MulFOp::create(b, loc, l, r);
  }
  Value div(Value l, Value r) const {
    return arith::DivFOp::create(b, loc, l, r);
  }
  /// `value`, a scalar or a vector, as f64.
  Value extend(Value value) const {
    return arith::ExtFOp::create(b, loc, withType(value, b.getF64Type()),
                                 value);
  }
  Value truncate(Value value) const {
    return arith::TruncFOp::create(b, loc, withType(value, b.getF32Type()),
                                   value);
  }
  /// A scalar as a vector if `like` is one.
  Value broadcast(Value scalar, Value like) const {
    Type type = withType(like, scalar.getType());
    return type == scalar.getType()
               ? scalar
               : vector::BroadcastOp::create(b, loc, type, scalar);
  }
  /// A number in the type of `like`.
  Value constant(double number, Value like) const {
    Type type = getElementTypeOrSelf(like);
    return broadcast(
        arith::ConstantOp::create(b, loc, b.getFloatAttr(type, number)), like);
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

#endif // BNGRAD_LIB_TRANSFORMS_APPLY_FLOATBUILDER_H
