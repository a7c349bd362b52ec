//===- LoopChecks.cpp - run-time checks of loops --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopChecks.h"

#include "CheckBuilder.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

using namespace mlir;
using namespace mlir::bngrad;

using arith::CmpIPredicate;

// Upstream checks this only if every loop has iterations. It must hold even if
// one has none, because the sizes of the results may be computed from any dim
// of a loop.
void mlir::bngrad::addLoopChecks(linalg::LinalgOp op) {
  CheckBuilder checks(op, op.getLoc());
  SmallVector<Value> sizes(op.getNumLoops());
  SmallVector<std::string> names(op.getNumLoops());
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<ShapedType>(operand.get().getType()))
      continue;
    for (auto [dim, expr] :
         llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      if (!loop)
        continue;
      Value size = checks.sizeOf(operand.get(), dim);
      std::string what = llvm::formatv("size of dim {0} of operand {1}", dim,
                                       operand.getOperandNumber());
      unsigned i = loop.getPosition();
      if (!sizes[i]) {
        sizes[i] = size;
        names[i] = what;
        continue;
      }
      checks.verifyEqual(size, sizes[i],
                         "expected " + what + " to be " + names[i]);
    }
  }
}

namespace {
/// Emits the checks of one loop before it.
class LoopChecks : CheckBuilder {
public:
  explicit LoopChecks(LoopLikeOpInterface loop)
      : CheckBuilder(loop, loop.getLoc()), loop(loop) {}

  void checkSteps();
  void checkBounds();

private:
  Value toIndex(OpFoldResult number) {
    return b.createOrFold<arith::IndexCastOp>(loc, b.getIndexType(),
                                              toValue(number));
  }

  LoopLikeOpInterface loop;
};
} // namespace

void LoopChecks::checkSteps() {
  std::optional<SmallVector<OpFoldResult>> steps = loop.getLoopSteps();
  if (!steps)
    return;
  for (OpFoldResult step : *steps)
    if (!getConstantIntValue(step)) // Verifiers check constant steps.
      verifyAtLeast(toIndex(step), 1, "step");
}

/// The difference of the bounds must not overflow, because the workspace for
/// the iterations is computed from it.
void LoopChecks::checkBounds() {
  std::optional<SmallVector<OpFoldResult>> lower = loop.getLoopLowerBounds();
  std::optional<SmallVector<OpFoldResult>> upper = loop.getLoopUpperBounds();
  if (!lower || !upper)
    return;
  for (auto [from, to] : llvm::zip_equal(*lower, *upper)) {
    if (getConstantIntValue(from).value_or(-1) >= 0)
      continue;
    Value first = toIndex(from), zero = constant(0);
    Value most = constant(std::numeric_limits<int64_t>::max());
    Value limit = arith::AddIOp::create(
        b, loc, most, arith::MinSIOp::create(b, loc, first, zero));
    verify(CmpIPredicate::sle, toIndex(to), limit,
           "expected upper bound to be at most");
  }
}

void mlir::bngrad::addLoopChecks(LoopLikeOpInterface loop) {
  LoopChecks checks(loop);
  checks.checkSteps();
  checks.checkBounds();
}
