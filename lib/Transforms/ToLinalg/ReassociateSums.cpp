//===- ReassociateSums.cpp - bngrad-reassociate-sums ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/ToLinalg/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-reassociate-sums"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADREASSOCIATESUMSPASS
#include "BNGrad/Transforms/ToLinalg/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;

/// Replaces the element extracted from a one-element tensor by the scalar in
/// it. The conversion of a StableHLO reduction wraps each scalar in this way.
static void foldScalarTensors(linalg::LinalgOp op) {
  op->walk([](tensor::ExtractOp extract) {
    auto tensor = extract.getTensor().getDefiningOp<tensor::FromElementsOp>();
    if (!tensor || tensor.getElements().size() != 1)
      return;
    extract.replaceAllUsesWith(tensor.getElements().front());
    extract.erase();
    if (tensor.use_empty())
      tensor.erase();
  });
}

/// Lets the terms of the sums of `op` be added in any order.
static void reassociateSums(linalg::LinalgOp op) {
  if (op.getNumReductionLoops() == 0)
    return;
  foldScalarTensors(op);
  for (unsigned i : llvm::seq<unsigned>(op.getNumDpsInits())) {
    SmallVector<Operation *> combiners;
    if (!matchReduction(op.getRegionOutputArgs(), i, combiners) ||
        combiners.size() != 1)
      continue;
    auto add = dyn_cast<arith::AddFOp>(combiners.front());
    if (!add)
      continue;
    LDBG() << "result " << i << " of " << op->getName() << " at "
           << op->getLoc();
    add.setFastmath(add.getFastmath() | arith::FastMathFlags::reassoc);
  }
}

namespace {
class BNGradReassociateSums final
    : public mlir::bngrad::impl::BNGradReassociateSumsPassBase<
          BNGradReassociateSums> {
public:
  void runOnOperation() override {
    // Other named ops do not print their flags, and schedules skip them.
    getOperation().walk([](linalg::LinalgOp op) {
      if (isa<linalg::GenericOp, linalg::ReduceOp>(op))
        reassociateSums(op);
    });
  }
};
} // namespace
