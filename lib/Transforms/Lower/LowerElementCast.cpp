//===- LowerElementCast.cpp - bngrad-lower-element-cast -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/Lower/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADLOWERELEMENTCASTPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

static int64_t getElementBytes(MemRefType type) {
  return getStorageBytes(type.getElementType());
}

/// Emits the size of `result`, which has rank 1 and as many bytes as `source`.
static OpFoldResult getSize(OpBuilder &b, Location loc,
                            TypedValue<MemRefType> source, MemRefType result) {
  if (result.hasStaticShape())
    return b.getIndexAttr(result.getDimSize(0));
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value bytes =
      arith::MulIOp::create(b, loc, memref::DimOp::create(b, loc, source, 0),
                            constant(getElementBytes(source.getType())));
  return arith::DivUIOp::create(b, loc, bytes,
                                constant(getElementBytes(result)))
      .getResult();
}

namespace {
struct LowerElementCast : OpRewritePattern<ElementCastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ElementCastOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto source = cast<TypedValue<MemRefType>>(op.getSource());
    auto result = cast<MemRefType>(op.getType());
    // Memrefs that differ only in the element type have the same LLVM type.
    auto type =
        cast<MemRefType>(source.getType().clone(result.getElementType()));
    Value memref =
        UnrealizedConversionCastOp::create(rewriter, loc, type, source)
            .getResult(0);
    if (getElementBytes(source.getType()) != getElementBytes(result))
      memref = memref::ReinterpretCastOp::create(
          rewriter, loc, result, memref, rewriter.getIndexAttr(0),
          getSize(rewriter, loc, source, result),
          ArrayRef<OpFoldResult>(rewriter.getIndexAttr(1)));
    rewriter.replaceOp(op, memref);
    return success();
  }
};

struct LowerElementCastPass final
    : public bngrad::impl::BNGradLowerElementCastPassBase<
          LowerElementCastPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<LowerElementCast>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
