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
/// and the diagnostics about that.
class Source {
public:
  explicit Source(bool allowUnregisteredDialects);

  /// Parses text or bytecode.
  LogicalResult parse(StringRef text);

  MLIRContext *getContext() { return context.get(); }
  ModuleOp getModule() { return module.get(); }

  /// An error without a location.
  LogicalResult emitError(const Twine &message);

  bool hasDiagnostics() const { return !diagnostics.empty(); }

  /// Passes all diagnostics to `take`, as JSON, and returns 1.
  int32_t fail(const bngradTake_t &take);

  /// Gives away the context, whose diagnostics are no longer collected.
  std::unique_ptr<MLIRContext> takeContext();

private:
  std::unique_ptr<MLIRContext> context;
  llvm::json::Array diagnostics;
  std::unique_ptr<ScopedDiagnosticHandler> handler;
  OwningOpRef<ModuleOp> module;
};

/// Passes `text` to `take`, and returns 0.
int32_t succeed(const bngradTake_t &take, StringRef text);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_COMPILER_LIBRARY_SOURCE_H
