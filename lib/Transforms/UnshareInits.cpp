//===- UnshareInits.cpp - bngrad-unshare-inits: an init per use -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADUNSHAREINITSPASS
#include "BNGrad/Transforms/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// A copy of the tensor.empty, or of the linalg.fill of one, that defines
/// `init`, beside it; null if it is neither.
static Value cloneInit(Value init) {
  Operation *def = init.getDefiningOp();
  OpBuilder b(init.getContext());
  IRMapping mapping;
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(def)) {
    Value target = fill.getDpsInits()[0];
    Value cloned = cloneInit(target);
    if (!cloned)
      return {};
    mapping.map(target, cloned);
  } else if (!isa_and_present<tensor::EmptyOp>(def)) {
    return {};
  }
  b.setInsertionPoint(def);
  return b.clone(*def, mapping)->getResult(0);
}

namespace {
struct BNGradUnshareInitsPass
    : bngrad::impl::BNGradUnshareInitsPassBase<BNGradUnshareInitsPass> {
  void runOnOperation() override {
    SmallVector<OpOperand *> inits;
    getOperation().walk([&](linalg::LinalgOp op) {
      for (OpOperand &init : op.getDpsInitsMutable())
        inits.push_back(&init);
    });
    for (OpOperand *init : inits)
      if (!init->get().hasOneUse())
        if (Value cloned = cloneInit(init->get()))
          init->set(cloned);
  }
};
} // namespace
