//===- IrSession.h - IR through passes, many times in one process -*- C++
//-*-===//
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

/// What an input begins with; a pass pipeline follows, and a line's end.
inline constexpr llvm::StringLiteral kHeader = "// passes: ";

/// Splits an input into its pipeline and its IR; false if it does not begin
/// with a header.
bool splitInput(llvm::StringRef data, llvm::StringRef &pipeline,
                llvm::StringRef &ir);

/// One context for many inputs; the dialects are loaded once. A fault that is
/// not a crash ends the process: a pass that fails without an error, and IR
/// that is not valid after a pass of ours.
///
/// With BNGRAD_FUZZ_TRACE=<dir>, the IR before each pass is left in
/// `<dir>/before.mlir` and the pass in `<dir>/pass`, so that a crash can be
/// tried without us.
class IrSession {
public:
  IrSession();
  ~IrSession();

  /// Parses `ir`, text or bytecode, and runs `pipeline`. False if the pipeline
  /// is none of ours or the IR is not valid.
  bool run(llvm::StringRef pipeline, llvm::StringRef ir);

  /// Bytecode of textual IR; empty if it is not valid.
  std::string toBytecode(llvm::StringRef ir);

  /// Each function (or other op) of a module that is valid alone, as text with
  /// nothing shared between ops.
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
