//===- Diagnostics.h - one-line errors ------------------------ -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TOOLS_COMMON_DIAGNOSTICS_H
#define BNGRAD_TOOLS_COMMON_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <functional>

namespace mlir::bngrad {

/// Sets the name that errors begin with; `name` lives as long as the process.
void setToolName(StringRef name);

/// Prints the versions of BNGrad and LLVM, for --version.
void printVersion(raw_ostream &os);

/// Sets the name that is printed for locations outside of any file.
void setInputName(StringRef name);
/// From now on, running out of memory ends the process with status 1 and one
/// line in the form of reportError.
void reportOutOfMemory();

/// Passes the lines of reportError, without the name of the tool, to `handler`
/// instead of printing them; null restores printing.
void setErrorHandler(std::function<void(StringRef line)> handler);

/// Prints `<tool>: error: <message>` on one line and returns failure.
LogicalResult reportError(const Twine &message);

/// Prints the first error of MLIR as one line
/// `<file>:<line>:<column>: <message>`, in the form of reportError, and drops
/// the others.
class OneLineDiagnostics {
public:
  explicit OneLineDiagnostics(MLIRContext *context);

private:
  bool hasReported = false;
  ScopedDiagnosticHandler handler;
};

/// `<file>:<line>:<column>` if `location` has one, else the name of the input.
std::string printLocation(Location location);

} // namespace mlir::bngrad

#endif // BNGRAD_TOOLS_COMMON_DIAGNOSTICS_H
