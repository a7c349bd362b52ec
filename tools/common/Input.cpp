//===- Input.cpp - reads IR files -----------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "common/Input.h"
#include "common/Diagnostics.h"

#include "BNGrad/Transforms/Pipelines.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::bngrad;

OwningOpRef<ModuleOp> mlir::bngrad::readModule(MLIRContext *context,
                                               StringRef path) {
  if (path.empty()) {
    (void)reportError("expected a file, got ''");
    return {};
  }
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(path, &error);
  if (!buffer) {
    (void)reportError(error);
    return {};
  }
  setInputName(buffer->getBufferIdentifier());
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  OneLineDiagnostics diagnostics(context);
  return parseSourceFile<ModuleOp>(sources, context);
}

LogicalResult mlir::bngrad::importModule(ModuleOp module) {
  PassManager pm(module.getContext());
  addImportPasses(pm);
  // Without the inliner's own canonicalization: a function is run, and checked,
  // as it was written.
  pm.addPass(createInlinerPass({}, [](OpPassManager &) {}));
  pm.addPass(createSymbolDCEPass());
  if (failed(pm.run(module)))
    return failure();
  WalkResult unknown = module.walk([](Operation *op) {
    // Its lowering calls a library of MLIR's, which nothing is linked with.
    bool prints = isa<vector::PrintOp>(op);
    if (op->isRegistered() && !prints)
      return WalkResult::advance();
    emitError(op->getLoc())
        << "expected "
        << (prints ? "no op that prints" : "an op of a registered dialect")
        << ", got '" << op->getName() << "'";
    return WalkResult::interrupt();
  });
  return failure(unknown.wasInterrupted());
}
