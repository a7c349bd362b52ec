//===- CommandLine.h - values of options ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TOOLS_COMMON_COMMANDLINE_H
#define BNGRAD_TOOLS_COMMON_COMMANDLINE_H

#include "mlir/Support/LLVM.h"

#include <optional>
#include <string>

namespace llvm::opt {
class InputArgList;
} // namespace llvm::opt

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace mlir::bngrad {

/// Parses the value of option `id`, a whole number from 1 to `most`; an option
/// that is not given leaves `count` alone.
///
/// Errors: one line on standard error, which names `other` as another valid
///         value, and failure.
LogicalResult parseCount(const llvm::opt::InputArgList &args, unsigned id,
                         StringRef name, unsigned most,
                         std::optional<unsigned> &count,
                         const char *other = "");

/// The only positional argument of the command line.
///
/// Errors: one line on standard error and failure.
FailureOr<std::string> parseInput(const llvm::opt::InputArgList &args,
                                  unsigned inputId);

/// Whether `schedule` is the text of a schedule.
///
/// Errors: one line on standard error and failure.
LogicalResult verifySchedule(StringRef schedule, MLIRContext *context);

/// Registers the dialects and translations of a tool that reads any file of IR.
void prepareContext(MLIRContext &context);

/// The path of BNGrad's shared library `name` in the folder of libraries that
/// belongs to the folder of the running tool.
std::string getOwnLibrary(StringRef name);

} // namespace mlir::bngrad

#endif // BNGRAD_TOOLS_COMMON_COMMANDLINE_H
