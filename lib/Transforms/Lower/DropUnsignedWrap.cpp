//===- DropUnsignedWrap.cpp - bngrad-drop-unsigned-wrap -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADDROPUNSIGNEDWRAPPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;

namespace {
struct BNGradDropUnsignedWrapPass
    : bngrad::impl::BNGradDropUnsignedWrapPassBase<BNGradDropUnsignedWrapPass> {
  void runOnOperation() override {
    auto dropFrom = [](auto op) {
      op.setOverflowFlags(
          bitEnumClear(op.getOverflowFlags(), LLVM::IntegerOverflowFlags::nuw));
    };
    getOperation()->walk([&](Operation *op) {
      if (auto product = dyn_cast<LLVM::MulOp>(op))
        dropFrom(product);
      else if (auto sum = dyn_cast<LLVM::AddOp>(op))
        dropFrom(sum);
      else if (auto gep = dyn_cast<LLVM::GEPOp>(op))
        gep.setNoWrapFlags(
            bitEnumClear(gep.getNoWrapFlags(), LLVM::GEPNoWrapFlags::nuw));
    });
  }
};
} // namespace
