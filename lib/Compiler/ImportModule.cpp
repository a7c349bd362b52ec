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
#include "BNGrad/Transforms/CAbi/Passes.h"
#include "BNGrad/Transforms/CAbi/ShapeFunction.h"
#include "BNGrad/Transforms/ToLinalg/Passes.h"

#include "mlir/Conversion/ControlFlowToSCF/ControlFlowToSCF.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

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

/// Reports a type with more elements than any memory has, because products of
/// its sizes would overflow.
static LogicalResult verifyType(Location loc, Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasRank())
    return success();
  uint64_t product = 1;
  for (int64_t size : shaped.getShape())
    if (!ShapedType::isDynamic(size))
      product = llvm::SaturatingMultiply<uint64_t>(product,
                                                   std::max<int64_t>(size, 1));
  if (product <= kMostElements)
    return success();
  return emitError(loc) << "expected a product of sizes of at most "
                        << kMostElements << ", got " << type;
}

/// Reports an op that no pass lowers correctly.
static LogicalResult verifyOp(Operation *op) {
  auto report = [&](const Twine &expected) {
    return emitError(op->getLoc())
           << "expected " << expected << ", got '" << op->getName() << "'";
  };
  if (!op->isRegistered())
    return report("an op of a registered dialect");
  // Its lowering calls MLIR's runner library, which is not linked.
  if (isa<vector::PrintOp>(op))
    return report("no op that prints");
  if (isa<LLVM::CallIntrinsicOp, LLVM::InlineAsmOp>(op))
    return report("an op that MLIR knows the effects of");
  // No pass defines any other poison.
  if (isa<ub::PoisonOp>(op))
    return report("poison of a number or a vector");
  for (Type type : op->getResultTypes())
    if (failed(verifyType(op->getLoc(), type)))
      return failure();
  for (Region &region : op->getRegions())
    for (Value argument : region.getArguments())
      if (failed(verifyType(op->getLoc(), argument.getType())))
        return failure();
  // Upstream folds loads from the buffer to elements of the tensor.
  auto toBuffer = dyn_cast<bufferization::ToBufferOp>(op);
  if (toBuffer && !toBuffer.getReadOnly() && isWritten(toBuffer.getBuffer()))
    return toBuffer.emitOpError(
        "expected the buffer of a tensor to be read only, got one that may be "
        "written to: use memref.alloc or a memref argument");
  return success();
}

/// Reports a call that was not inlined, or the address of a function.
static LogicalResult verifyInlined(Operation *op) {
  if (auto call = dyn_cast<func::CallOp>(op))
    return op->emitError("expected a call that can be inlined in '")
           << op->getParentOp()->getName() << "', got one of @"
           << call.getCallee();
  if (isa<func::CallIndirectOp, func::ConstantOp>(op))
    return op->emitError(
               "expected calls of functions that are known by name, got '")
           << op->getName() << "'";
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
  WalkResult result = module.walk(
      [](Operation *op) -> WalkResult { return verifyInlined(op); });
  return failure(result.wasInterrupted());
}

LogicalResult mlir::bngrad::importModule(ModuleOp module,
                                         const ImportOptions &options) {
  // This also registers the interfaces that bufferize and translate ops.
  DialectRegistry registry;
  mlir::bngrad::registerAllDialects(registry);
  module.getContext()->appendDialectRegistry(registry);
  PassManager pm(module.getContext());
  if (options.reassociateSums)
    pm.addNestedPass<func::FuncOp>(createBNGradReassociateSumsPass());
  addImportPasses(pm);
  // A function with several blocks cannot be inlined into a region, and the
  // checks do not follow branches between blocks.
  pm.addPass(createLiftControlFlowToSCFPass());
  addInlinePasses(pm);
  pm.addPass(createSymbolDCEPass());
  if (failed(pm.run(module)))
    return failure();
  // An op is reported before the ops in its regions.
  WalkResult unknown = module.walk<WalkOrder::PreOrder>(
      [](Operation *op) -> WalkResult { return verifyOp(op); });
  return failure(unknown.wasInterrupted() || failed(verifyFunctions(module)));
}
