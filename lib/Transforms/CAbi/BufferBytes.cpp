//===- BufferBytes.cpp - the sizes of buffers in bytes --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BufferBytes.h"

#include "BNGrad/Dialect/BNGrad.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::bngrad;

/// More bytes than any memory has, but few enough that adding many such sizes
/// does not overflow.
static constexpr int64_t kMost = int64_t(1) << 48;

int64_t mlir::bngrad::getElementBytes(Type type) {
  return type.isIndex() ? 8 : getStorageBytes(type);
}

Value BufferBytes::compute(MemRefType type, ValueRange dynamicSizes) const {
  int64_t known = getElementBytes(type.getElementType());
  for (int64_t size : type.getShape())
    if (!ShapedType::isDynamic(size))
      known = std::min<int64_t>(llvm::SaturatingMultiply<uint64_t>(known, size),
                                kMost);
  if (type.hasStaticShape())
    return constant(llvm::alignTo(known, alignment));
  Value bytes = constant(known);
  for (Value size : dynamicSizes)
    bytes = multiply(bytes, fromIndex(size));
  Value padded = add(bytes, constant(alignment - 1));
  return arith::AndIOp::create(builder, loc, padded, constant(-alignment));
}

Value BufferBytes::constant(int64_t value) const {
  return arith::ConstantIntOp::create(builder, loc, value, 64);
}

Value BufferBytes::fromIndex(Value index) const {
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), index);
}

Value BufferBytes::toIndex(Value bytes) const {
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                    bytes);
}

Value BufferBytes::add(Value lhs, Value rhs) const {
  return builder.createOrFold<arith::AddIOp>(loc, lhs, rhs);
}

Value BufferBytes::multiply(Value lhs, Value rhs) const {
  auto product = arith::MulUIExtendedOp::create(builder, loc, lhs, rhs);
  Value most = constant(kMost);
  Value fits = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                     product.getHigh(), constant(0));
  Value low = arith::MinUIOp::create(builder, loc, product.getLow(), most);
  return arith::SelectOp::create(builder, loc, fits, low, most);
}
