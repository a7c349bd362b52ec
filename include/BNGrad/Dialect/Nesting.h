//===- Nesting.h - a limit of nesting in MLIR's text ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_DIALECT_NESTING_H
#define BNGRAD_DIALECT_NESTING_H

#include "mlir/IR/MLIRContext.h"

namespace mlir::bngrad {

/// Checks the nesting of a module's text, for which MLIR's parser has no limit
/// but the stack: that of brackets, of aliases that name others, and of
/// operators of an affine expression. Bytecode has none of these.
///
/// Errors: a diagnostic at the place in `file`.
LogicalResult verifyNesting(StringRef text, StringRef file,
                            MLIRContext *context);

} // namespace mlir::bngrad

#endif // BNGRAD_DIALECT_NESTING_H
