//===- ImportModule.cpp - from any level to the bngrad level --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Compiler/Compiler.h"
#include "BNGrad/Compiler/Interface.h"
#include "BNGrad/InitAll.h"
#include "BNGrad/Transforms/ToLinalg/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::bngrad;

/// Reports a recursive function: it cannot be inlined, and whether it ends
/// depends on data. `active` are the callers of `function`, `done` those that
/// call none of them.
static LogicalResult verifyNoRecursion(func::FuncOp function, ModuleOp module,
                                       SetVector<Operation *> &active,
                                       DenseSet<Operation *> &done) {
  if (done.contains(function))
    return success();
  active.insert(function);
  WalkResult result = function.walk([&](Operation *op) {
    // A function whose address is taken counts as called there.
    StringRef name;
    if (auto call = dyn_cast<func::CallOp>(op))
      name = call.getCallee();
    else if (auto constant = dyn_cast<func::ConstantOp>(op))
      name = constant.getValue();
    auto callee = module.lookupSymbol<func::FuncOp>(name);
    if (name.empty() || !callee)
      return WalkResult::advance();
    if (!active.contains(callee))
      return failed(verifyNoRecursion(callee, module, active, done))
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    InFlightDiagnostic error = op->emitError()
                               << "expected @" << callee.getSymName()
                               << " not to call itself, got a call";
    if (callee != function)
      error << " by @" << function.getSymName();
    return WalkResult::interrupt();
  });
  active.remove(function);
  done.insert(function);
  return failure(result.wasInterrupted());
}

/// Reports an op that nothing lowers as it is meant.
static LogicalResult verifyOp(Operation *op) {
  // Its lowering calls a library of MLIR's, which nothing is linked with.
  bool prints = isa<vector::PrintOp>(op);
  if (!op->isRegistered() || prints)
    return emitError(op->getLoc())
           << "expected "
           << (prints ? "no op that prints" : "an op of a registered dialect")
           << ", got '" << op->getName() << "'";
  // Upstream folds loads from the buffer to elements of the tensor.
  auto toBuffer = dyn_cast<bufferization::ToBufferOp>(op);
  if (toBuffer && !toBuffer.getReadOnly() && isWritten(toBuffer.getBuffer()))
    return toBuffer.emitOpError(
        "expected the buffer of a tensor to be read only, got one that may be "
        "written to: use an allocation or a memref argument");
  return success();
}

/// Checks the functions that remain after inlining.
static LogicalResult verifyFunctions(ModuleOp module) {
  SetVector<Operation *> active;
  DenseSet<Operation *> done;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      return function.emitError()
             << "expected @" << function.getSymName()
             << ", which is called, to have a body: what is compiled calls no "
                "other code";
    if (failed(verifyNoRecursion(function, module, active, done)))
      return failure();
  }
  return success();
}

LogicalResult mlir::bngrad::importModule(ModuleOp module,
                                         const ImportOptions &options) {
  // The interfaces by which ops are bufferized and translated, too.
  DialectRegistry registry;
  mlir::bngrad::registerAllDialects(registry);
  module.getContext()->appendDialectRegistry(registry);
  PassManager pm(module.getContext());
  if (options.reassociateSums)
    pm.addNestedPass<func::FuncOp>(createBNGradReassociateSumsPass());
  addImportPasses(pm);
  // Without the inliner's own canonicalization: a function is run, and checked,
  // as it was written.
  pm.addPass(createInlinerPass({}, [](OpPassManager &) {}));
  pm.addPass(createSymbolDCEPass());
  if (failed(pm.run(module)))
    return failure();
  // An op is reported before those of its regions.
  WalkResult unknown = module.walk<WalkOrder::PreOrder>(
      [](Operation *op) -> WalkResult { return verifyOp(op); });
  return failure(unknown.wasInterrupted() || failed(verifyFunctions(module)));
}
