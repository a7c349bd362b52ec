//===- Jit.h - runs a module in the LLVM dialect -------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNNER_JIT_H
#define BNGRAD_RUNNER_JIT_H

#include "BNGrad/Runtime/Array.h"

#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::bngrad {

/// Machine code of one module, for the host.
class Jit {
public:
  /// A symbol that generated code may call, and its address.
  using Symbol = std::pair<StringRef, void *>;

  /// Code may call functions of the shared library `library`, too; empty: none.
  ///
  /// Errors: one line on standard error and null.
  static std::unique_ptr<Jit> create(ModuleOp module,
                                     ArrayRef<Symbol> symbols = {},
                                     StringRef library = "");

  /// Compiles `function` now rather than at its first call.
  LogicalResult compile(StringRef function);

  /// Calls `function` with the arrays as memrefs, arguments before results.
  ///
  /// Errors: one line on standard error and failure if there is no such
  ///         function, or if it returns a status (--bngrad-return-status) other
  ///         than 0.
  LogicalResult call(StringRef function,
                     MutableArrayRef<::bngrad::Array> arguments,
                     MutableArrayRef<::bngrad::Array> results = {});

private:
  std::unique_ptr<ExecutionEngine> engine;
};

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_JIT_H
