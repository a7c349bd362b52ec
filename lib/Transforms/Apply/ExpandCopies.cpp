//===- ExpandCopies.cpp - bngrad-expand-copies ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Apply/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADEXPANDCOPIESPASS
#include "BNGrad/Transforms/Apply/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;

/// Whether upstream copies such a buffer by memcpy.
static bool isContiguous(Value buffer) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  return type && (type.getLayout().isIdentity() ||
                  (type.hasStaticShape() && type.getNumElements() > 0 &&
                   memref::isStaticShapeAndContiguousRowMajor(type)));
}

namespace {
struct BNGradExpandCopiesPass
    : bngrad::impl::BNGradExpandCopiesPassBase<BNGradExpandCopiesPass> {
  void runOnOperation() override {
    getOperation().walk([](memref::CopyOp op) {
      if (isContiguous(op.getSource()) && isContiguous(op.getTarget()))
        return;
      // An unranked buffer has no loops.
      if (!isa<MemRefType>(op.getSource().getType()) ||
          !isa<MemRefType>(op.getTarget().getType()))
        return;
      OpBuilder b(op);
      linalg::makeMemRefCopyOp(b, op.getLoc(), op.getSource(), op.getTarget());
      op.erase();
    });
  }
};
} // namespace
