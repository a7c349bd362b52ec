//===- IndexBuilder.h - index arithmetic, folded ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_UTILS_INDEXBUILDER_H
#define BNGRAD_LIB_TRANSFORMS_UTILS_INDEXBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace mlir::bngrad {

/// Index arithmetic at an insertion point, folded where possible. Operands of
/// div and rem are not negative.
struct IndexBuilder {
  OpBuilder &b;
  Location loc;

  Value constant(int64_t value) const {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value add(Value l, Value r) const { return fold<arith::AddIOp>(l, r); }
  Value sub(Value l, Value r) const { return fold<arith::SubIOp>(l, r); }
  Value mul(Value l, Value r) const { return fold<arith::MulIOp>(l, r); }
  Value div(Value l, Value r) const { return fold<arith::DivUIOp>(l, r); }
  Value rem(Value l, Value r) const { return fold<arith::RemUIOp>(l, r); }
  Value min(Value l, Value r) const { return fold<arith::MinSIOp>(l, r); }
  Value max(Value l, Value r) const { return fold<arith::MaxSIOp>(l, r); }
  Value ceilDiv(Value l, Value r) const {
    return div(add(l, sub(r, constant(1))), r);
  }
  Value compare(arith::CmpIPredicate predicate, Value l, Value r) const {
    return b.createOrFold<arith::CmpIOp>(loc, predicate, l, r);
  }
  Value bitAnd(Value l, Value r) const { return fold<arith::AndIOp>(l, r); }
  Value bitOr(Value l, Value r) const { return fold<arith::OrIOp>(l, r); }
  Value select(Value condition, Value l, Value r) const {
    return b.createOrFold<arith::SelectOp>(loc, condition, l, r);
  }
  Value product(ArrayRef<Value> factors) const {
    Value result = constant(1);
    for (Value factor : factors)
      result = mul(result, factor);
    return result;
  }

private:
  template <typename OpTy> Value fold(Value l, Value r) const {
    return b.createOrFold<OpTy>(loc, l, r);
  }
};

/// Emits one of two bodies. Creates no op for a constant condition.
void emitIf(OpBuilder &b, Location loc, Value condition,
            function_ref<void(OpBuilder &)> thenBody,
            function_ref<void(OpBuilder &)> elseBody);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_UTILS_INDEXBUILDER_H
