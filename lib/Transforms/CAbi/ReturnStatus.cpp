//===- ReturnStatus.cpp - bngrad-return-status ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/CAbi/Status.h"

#include "HelperFunctions.h"

#include "BNGrad/Transforms/CAbi/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-return-status"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADRETURNSTATUSPASS
#include "BNGrad/Transforms/CAbi/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

bool mlir::bngrad::returnsStatus(func::FuncOp function) {
  // Users can also write the attribute, so check the result type.
  return function->hasAttr(kStatusAttrName) && function.getNumResults() > 0 &&
         function.getResultTypes().back().isInteger(32);
}

static void addStatus(func::FuncOp function, ArrayRef<func::CallOp> calls) {
  Type type = IntegerType::get(function.getContext(), 32);
  unsigned last = function.getNumResults();
  (void)function.insertResult(last, type, {});
  function->setAttr(kStatusAttrName, UnitAttr::get(function.getContext()));
  function.walk([](func::ReturnOp op) {
    OpBuilder b(op);
    Value success = arith::ConstantIntOp::create(b, op.getLoc(), 0, 32);
    op->insertOperands(op->getNumOperands(), success);
  });
  for (func::CallOp call : calls) {
    OpBuilder b(call);
    auto checked =
        func::CallOp::create(b, call.getLoc(), function, call.getOperands());
    checked->setDiscardableAttrs(call->getDiscardableAttrDictionary());
    call->replaceAllUsesWith(checked->getResults().drop_back());
    call.erase();
  }
}

void mlir::bngrad::addStatuses(ModuleOp module) {
  llvm::SetVector<Operation *> found;
  for (auto function : module.getOps<func::FuncOp>()) {
    WalkResult mayFail = function.walk([&](Operation *op) {
      auto call = dyn_cast<func::CallOp>(op);
      auto callee = call ? module.lookupSymbol<func::FuncOp>(call.getCallee())
                         : func::FuncOp();
      return isa<memref::AllocOp>(op) || (callee && returnsStatus(callee))
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (mayFail.wasInterrupted())
      found.insert(function);
  }
  // The callers of these functions need a status too, and so do their callers:
  // `found` grows in the loop. Functions may call each other recursively.
  for (size_t i = 0; i < found.size(); ++i) {
    auto function = cast<func::FuncOp>(found[i]);
    std::optional<SmallVector<func::CallOp>> calls =
        findCalls(function, module);
    if (!calls)
      LDBG() << "gets no status, because it has uses other than calls: @"
             << function.getSymName();
    if (!calls || returnsStatus(function))
      continue;
    for (func::CallOp call : *calls)
      if (auto caller = call->getParentOfType<func::FuncOp>())
        found.insert(caller);
    addStatus(function, *calls);
  }
}

namespace {
struct BNGradReturnStatusPass
    : bngrad::impl::BNGradReturnStatusPassBase<BNGradReturnStatusPass> {
  void runOnOperation() override { addStatuses(getOperation()); }
};
} // namespace
