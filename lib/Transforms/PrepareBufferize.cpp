//===- PrepareBufferize.cpp - bngrad-prepare-bufferize --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils.h"

#include "BNGrad/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADPREPAREBUFFERIZEPASS
#include "BNGrad/Transforms/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;
using bufferization::BufferizationDialect;

static void unshareInits(func::FuncOp function) {
  SmallVector<OpOperand *> inits;
  function.walk([&](linalg::LinalgOp op) {
    for (OpOperand &init : op.getDpsInitsMutable())
      inits.push_back(&init);
  });
  for (OpOperand *init : inits)
    if (Operation *def = init->get().getDefiningOp();
        def && !init->get().hasOneUse()) {
      OpBuilder b(def);
      if (Value cloned = cloneInit(b, init->get()))
        init->set(cloned);
    }
}

static void protectArguments(func::FuncOp function) {
  Builder b(function.getContext());
  StringRef name = BufferizationDialect::kWritableAttrName;
  for (BlockArgument argument : function.getArguments()) {
    unsigned i = argument.getArgNumber();
    if (isa<TensorType>(argument.getType()) && !function.getArgAttr(i, name))
      function.setArgAttr(i, name, b.getBoolAttr(false));
  }
}

/// The value whose buffer `value` will share, as far as that is known to be
/// more than a guess.
static Value getSource(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
            def))
      break;
    value = def->getOperand(0);
  }
  return value;
}

static void copyRepeatedResults(func::FuncOp function) {
  function.walk([&](func::ReturnOp op) {
    DenseSet<Value> returned;
    for (OpOperand &operand : op->getOpOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand.get().getType());
      if (!type || returned.insert(getSource(operand.get())).second)
        continue;
      OpBuilder b(op);
      operand.set(bufferization::AllocTensorOp::create(
          b, op.getLoc(), type, ValueRange(), operand.get()));
    }
  });
}

namespace {
struct BNGradPrepareBufferizePass
    : bngrad::impl::BNGradPrepareBufferizePassBase<BNGradPrepareBufferizePass> {
  void runOnOperation() override {
    unshareInits(getOperation());
    protectArguments(getOperation());
    copyRepeatedResults(getOperation());
  }
};
} // namespace
