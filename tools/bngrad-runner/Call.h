//===- Call.h - calls compiled functions with arrays ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNNER_CALL_H
#define BNGRAD_RUNNER_CALL_H

#include "BNGrad/Compiler/Compiler.h"
#include "BNGrad/Reference/Array.h"

namespace mlir::bngrad {

/// The name of the function that takes pointers to the memrefs of `function`.
std::string getWrapperName(StringRef function);

/// Calls `function` of `program` with the arrays as memrefs, arguments before
/// results.
///
/// Errors: one line on standard error and failure if there is no such function,
///         or if it returns a status (--bngrad-return-status) other than 0.
LogicalResult call(const CompiledProgram &program, StringRef function,
                   MutableArrayRef<::bngrad::Array> arguments,
                   MutableArrayRef<::bngrad::Array> results = {});

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_CALL_H
