//===- Input.cpp - reads IR files -----------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "common/Input.h"
#include "common/Diagnostics.h"

#include "BNGrad/Transforms/ToLinalg/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

#include <unistd.h>

using namespace mlir;
using namespace mlir::bngrad;

/// Limit for inputs other than files, which may be endless.
static constexpr size_t kMostBytes = size_t(1) << 30;

/// The bytes of `path` ("-": standard input); null and an error.
static std::unique_ptr<llvm::MemoryBuffer> readInput(StringRef path,
                                                     std::string &error) {
  namespace fs = llvm::sys::fs;
  fs::file_status status;
  std::error_code code =
      path == "-" ? fs::status(STDIN_FILENO, status) : fs::status(path, status);
  if (code || fs::is_regular_file(status) || fs::is_directory(status))
    return openInputFile(path, &error);
  llvm::Expected<fs::file_t> file =
      path == "-" ? llvm::Expected<fs::file_t>(fs::getStdinHandle())
                  : fs::openNativeFileForRead(path);
  auto fail = [&](const Twine &why) {
    error = ("cannot open input file '" + path + "': " + why).str();
    return nullptr;
  };
  if (!file)
    return fail(llvm::toString(file.takeError()));
  llvm::scope_exit close([&] {
    if (path != "-")
      (void)fs::closeFile(*file);
  });
  std::string bytes;
  constexpr size_t kChunk = size_t(1) << 20;
  while (bytes.size() <= kMostBytes) {
    size_t size = bytes.size();
    bytes.resize(size + kChunk);
    llvm::Expected<size_t> count =
        fs::readNativeFile(*file, {bytes.data() + size, kChunk});
    if (!count)
      return fail(llvm::toString(count.takeError()));
    bytes.resize(size + *count);
    if (*count == 0)
      return llvm::MemoryBuffer::getMemBufferCopy(bytes, path == "-" ? "<stdin>"
                                                                     : path);
  }
  return fail("expected at most 2^30 bytes of what is no file, got more");
}

OwningOpRef<ModuleOp> mlir::bngrad::readModule(MLIRContext *context,
                                               StringRef path) {
  if (path.empty()) {
    (void)reportError("expected a file, got ''");
    return {};
  }
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = readInput(path, error);
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
  return failure(unknown.wasInterrupted() || failed(verifyFunctions(module)));
}
