//===- SerializeShortLoops.cpp - bngrad-serialize-short-loops -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/OpenMP/OpenMPDialect.h"
#include "mlir/IR/Matchers.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADSERIALIZESHORTLOOPSPASS
#include "BNGrad/Transforms/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;

namespace {
struct BNGradSerializeShortLoopsPass
    : bngrad::impl::BNGradSerializeShortLoopsPassBase<
          BNGradSerializeShortLoopsPass> {
  void runOnOperation() override {
    getOperation()->walk([](omp::LoopNestOp loop) {
      auto parallel = loop->getParentOfType<omp::ParallelOp>();
      if (!parallel || parallel.getIfExpr() || loop.getNumLoops() != 1)
        return;
      Value from = loop.getLoopLowerBounds()[0];
      Value to = loop.getLoopUpperBounds()[0];
      Value step = loop.getLoopSteps()[0];
      auto isOutside = [&](Value value) {
        return !parallel->isAncestor(value.getParentBlock()->getParentOp());
      };
      if (!isOutside(from) || !isOutside(to) || !isOutside(step))
        return;
      OpBuilder b(parallel);
      Location loc = parallel.getLoc();
      Value second = b.createOrFold<arith::AddIOp>(loc, from, step);
      Value hasSecond = b.createOrFold<arith::CmpIOp>(
          loc, arith::CmpIPredicate::slt, second, to);
      if (!matchPattern(hasSecond, m_One()))
        parallel.getIfExprMutable().assign(hasSecond);
    });
  }
};
} // namespace
