//===- Source.h - modules from text, and their diagnostics ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_COMPILER_LIBRARY_SOURCE_H
#define BNGRAD_LIB_COMPILER_LIBRARY_SOURCE_H

#include "ProgramLibrary.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/JSON.h"

namespace mlir::bngrad {

/// A context with all dialects and stand-ins for foreign ones, a module in it,
/// and the module's diagnostics.
class Source {
public:
  explicit Source(bool allowUnregisteredDialects);

  /// Parses text or bytecode.
  LogicalResult parse(StringRef text);

  MLIRContext *getContext() { return context.get(); }
  ModuleOp getModule() { return module.get(); }

  /// Emits an error without a location.
  LogicalResult emitError(const Twine &message);

  bool hasDiagnostics() const { return !diagnostics.empty(); }

  /// All diagnostics, as JSON.
  std::string takeDiagnostics();

  /// Gives away the context and stops collecting its diagnostics.
  std::unique_ptr<MLIRContext> takeContext();

private:
  std::unique_ptr<MLIRContext> context;
  llvm::json::Array diagnostics;
  std::unique_ptr<ScopedDiagnosticHandler> handler;
  OwningOpRef<ModuleOp> module;
};

/// Calls `function` with a source as one compilation, and passes the resulting
/// text, or the diagnostics after a failure, to `take`. Returns 0, or 1 after a
/// failure.
int32_t runAndTake(const bngradTake_t &take, bool allowUnregisteredDialects,
                   function_ref<FailureOr<std::string>(Source &)> function);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_COMPILER_LIBRARY_SOURCE_H
