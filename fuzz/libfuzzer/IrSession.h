//===- IrSession.h - IR through passes in one process --------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_FUZZ_IRSESSION_H
#define BNGRAD_FUZZ_IRSESSION_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/ADT/StringMap.h"

#include <memory>
#include <string>
#include <vector>

namespace bngrad::fuzz {

/// The start of an input; a pass pipeline and a line break follow.
inline constexpr llvm::StringLiteral kHeader = "// passes: ";

/// Splits an input into its pipeline and its IR; false if it does not begin
/// with a header.
bool splitInput(llvm::StringRef data, llvm::StringRef &pipeline,
                llvm::StringRef &ir);

/// One context for many inputs; the dialects are loaded once. Faults other than
/// crashes also end the process: a pass that fails without an error, and
/// invalid IR after a pass of BNGrad.
///
/// With BNGRAD_FUZZ_TRACE=<dir>, the IR before each pass is written to
/// `<dir>/before.mlir` and the pass to `<dir>/pass`, so that a crash can be
/// reproduced without BNGrad.
class IrSession {
public:
  IrSession();
  ~IrSession();

  /// Parses `ir`, text or bytecode, and runs `pipeline`. Returns false if the
  /// pipeline is not BNGrad's or the IR is invalid.
  bool run(llvm::StringRef pipeline, llvm::StringRef ir);

  /// Bytecode of textual IR; empty if the IR is invalid.
  std::string toBytecode(llvm::StringRef ir);

  /// Each function (or other op) of a module that is valid alone, as text
  /// without attribute aliases.
  std::vector<std::string> splitFunctions(llvm::StringRef ir);

private:
  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef ir);
  mlir::PassManager *getPipeline(llvm::StringRef text);
  void renewContext();

  struct State;
  std::unique_ptr<State> state;
};

/// The session of the process.
IrSession &getSession();

} // namespace bngrad::fuzz

#endif // BNGRAD_FUZZ_IRSESSION_H
