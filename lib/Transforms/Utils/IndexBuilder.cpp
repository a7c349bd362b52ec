//===- IndexBuilder.cpp - index arithmetic and branches -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IndexBuilder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::bngrad;

void mlir::bngrad::emitIf(OpBuilder &b, Location loc, Value condition,
                          function_ref<void(OpBuilder &)> thenBody,
                          function_ref<void(OpBuilder &)> elseBody) {
  if (matchPattern(condition, m_One()))
    return thenBody(b);
  if (matchPattern(condition, m_Zero()))
    return elseBody(b);
  scf::IfOp::create(
      b, loc, condition,
      [&](OpBuilder &nested, Location) {
        thenBody(nested);
        scf::YieldOp::create(nested, loc);
      },
      [&](OpBuilder &nested, Location) {
        elseBody(nested);
        scf::YieldOp::create(nested, loc);
      });
}
