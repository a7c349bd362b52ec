//===- AddThreads.cpp - threads arguments of functions --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/CAbi/Threads.h"

#include "HelperFunctions.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::bngrad;

void mlir::bngrad::addThreads(ModuleOp module) {
  auto type = LLVM::LLVMPointerType::get(module.getContext());
  llvm::SetVector<func::FuncOp> found;
  for (auto function : module.getOps<func::FuncOp>()) {
    WalkResult loops = function.walk([](Operation *op) {
      return isa<scf::ParallelOp, NumThreadsOp>(op) ? WalkResult::interrupt()
                                                    : WalkResult::advance();
    });
    if (loops.wasInterrupted())
      found.insert(function);
  }
  // The callers of these functions need the argument too, and so do their
  // callers: `found` grows in the loop.
  DenseMap<Operation *, Value> arguments;
  SmallVector<func::CallOp> updated;
  for (size_t i = 0; i < found.size(); ++i) {
    func::FuncOp function = found[i];
    std::optional<SmallVector<func::CallOp>> calls =
        findCalls(function, module);
    if (!calls)
      continue;
    unsigned number = function.getNumArguments();
    (void)function.insertArgument(number, type, {}, function.getLoc());
    function.setArgAttr(number, kThreadsAttrName,
                        UnitAttr::get(module.getContext()));
    arguments[function] = function.getArgument(number);
    for (func::CallOp call : *calls) {
      updated.push_back(call);
      if (auto caller = call->getParentOfType<func::FuncOp>())
        found.insert(caller);
    }
  }
  for (func::CallOp call : updated) {
    OpBuilder b(call);
    Value threads = arguments.lookup(call->getParentOfType<func::FuncOp>());
    if (!threads)
      threads = LLVM::ZeroOp::create(b, call.getLoc(), type);
    call->insertOperands(call->getNumOperands(), threads);
  }
}
