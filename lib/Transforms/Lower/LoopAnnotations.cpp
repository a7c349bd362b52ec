//===- LoopAnnotations.cpp - bngrad-loop-annotations ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADLOOPANNOTATIONSPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;

namespace {
struct BNGradLoopAnnotationsPass
    : bngrad::impl::BNGradLoopAnnotationsPassBase<BNGradLoopAnnotationsPass> {
  void runOnOperation() override {
    StringRef name = "llvm.loop_annotation";
    getOperation()->walk([&](LLVM::BrOp branch) {
      auto annotation = dyn_cast_or_null<LLVM::LoopAnnotationAttr>(
          branch->getDiscardableAttr(name));
      if (!annotation)
        return;
      branch.setLoopAnnotationAttr(annotation);
      branch->removeDiscardableAttr(name);
    });
  }
};
} // namespace
