//===- ReturnAllocs.cpp - bngrad-return-allocs ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Bufferize/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-return-allocs"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADRETURNALLOCSPASS
#include "BNGrad/Transforms/Bufferize/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// If `value` is a cast of a memref.alloc that only forgets sizes, allocates it
/// with `value`'s type instead.
static void allocateAs(Value value) {
  auto cast = value.getDefiningOp<memref::CastOp>();
  if (!cast)
    return;
  auto alloc = cast.getSource().getDefiningOp<memref::AllocOp>();
  auto type = dyn_cast<MemRefType>(cast.getType());
  if (!alloc || !type || !type.getLayout().isIdentity() ||
      !alloc.getType().hasStaticShape()) {
    LDBG() << "returned by a cast: expected an allocation of static shape as a "
              "memref without layout: "
           << cast;
    return;
  }
  OpBuilder b(alloc);
  SmallVector<Value> sizes;
  for (int64_t dim : llvm::seq(type.getRank()))
    if (type.isDynamicDim(dim))
      sizes.push_back(arith::ConstantIndexOp::create(
          b, alloc.getLoc(), alloc.getType().getDimSize(dim)));
  auto forgetful = memref::AllocOp::create(b, alloc.getLoc(), type, sizes,
                                           alloc.getAlignmentAttr());
  Value back =
      memref::CastOp::create(b, alloc.getLoc(), alloc.getType(), forgetful);
  cast.replaceAllUsesWith(forgetful.getResult());
  cast.erase();
  alloc.replaceAllUsesWith(back);
  alloc.erase();
}

namespace {
struct BNGradReturnAllocsPass
    : bngrad::impl::BNGradReturnAllocsPassBase<BNGradReturnAllocsPass> {
  void runOnOperation() override {
    getOperation().walk([](func::ReturnOp op) {
      for (unsigned i : llvm::seq(op->getNumOperands()))
        allocateAs(op->getOperand(i));
    });
  }
};
} // namespace
