//===- LinalgToLoops.cpp - bngrad-linalg-to-loops -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils/Utils.h"

#include "BNGrad/Transforms/Apply/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADLINALGTOLOOPSPASS
#include "BNGrad/Transforms/Apply/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;

namespace {
struct BNGradLinalgToLoopsPass
    : bngrad::impl::BNGradLinalgToLoopsPassBase<BNGradLinalgToLoopsPass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](linalg::LinalgOp op) {
      if (!op.hasPureBufferSemantics())
        return;
      rewriter.setInsertionPoint(op);
      FailureOr<linalg::LinalgLoops> loops =
          linalg::linalgOpToLoops(rewriter, op);
      if (failed(loops))
        return;
      rewriter.eraseOp(op);
      for (Operation *loop : ArrayRef(*loops).drop_back(!loops->empty()))
        bngrad::disableUnrolling(loop);
    });
  }
};
} // namespace
