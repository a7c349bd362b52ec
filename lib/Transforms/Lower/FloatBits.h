//===- FloatBits.h - arithmetic on the bits of floats -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_LOWER_FLOATBITS_H
#define BNGRAD_LIB_TRANSFORMS_LOWER_FLOATBITS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir {
class RewritePatternSet;
} // namespace mlir

namespace mlir::bngrad {

/// `type`, or a shaped type like `like` with elements of `type`.
inline Type withShapeOf(Type like, Type type) {
  if (auto shaped = dyn_cast<ShapedType>(like))
    return shaped.clone(type);
  return type;
}

inline Value constantBits(OpBuilder &b, Location loc, Type type,
                          uint64_t bits) {
  auto element = cast<IntegerType>(getElementTypeOrSelf(type));
  TypedAttr attr = b.getIntegerAttr(element, APInt(element.getWidth(), bits));
  if (auto shaped = dyn_cast<ShapedType>(type))
    attr = DenseElementsAttr::get(shaped, cast<Attribute>(attr));
  return arith::ConstantOp::create(b, loc, attr);
}

/// Adds patterns that convert between f16 and f32 by integer arithmetic, except
/// in `gpu.launch`.
void populateExpandF16Patterns(RewritePatternSet &patterns);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_LOWER_FLOATBITS_H
