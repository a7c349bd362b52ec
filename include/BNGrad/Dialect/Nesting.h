//===- Nesting.h - a limit of nesting in modules ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_DIALECT_NESTING_H
#define BNGRAD_DIALECT_NESTING_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mlir::bngrad {

/// Parses a module, which may be bytecode, and limits its nesting, which MLIR
/// does not limit until the stack overflows. In text, brackets, aliases that
/// name others, and operators of an affine expression may be nested; in
/// bytecode, regions, attributes and types.
///
/// Errors: a diagnostic at the place in the buffer, and null.
OwningOpRef<ModuleOp> parseModule(std::unique_ptr<llvm::MemoryBuffer> buffer,
                                  MLIRContext *context);

/// Checks the nesting of a module that others are going to parse. Bytecode is
/// read for this, with the dialects of `context`.
///
/// Errors: a diagnostic at the place in the buffer, for nesting only.
LogicalResult verifyNesting(llvm::MemoryBufferRef buffer, MLIRContext *context);

/// Checks the nesting of files that the passes of a printed `pipeline` are
/// going to read: the libraries of transform-preload-library, or those in a
/// folder. A file that cannot be read is reported by whatever reads it later.
///
/// Errors: a diagnostic at the place in the file, for nesting only.
LogicalResult verifyNestingOfLibraries(StringRef pipeline,
                                       MLIRContext *context);

/// Checks the nesting of an attribute, a pipeline or options of a pass that
/// upstream is going to parse.
///
/// Errors: failure, and one line `reason`.
LogicalResult verifyNesting(StringRef text, std::string &reason);

} // namespace mlir::bngrad

#endif // BNGRAD_DIALECT_NESTING_H
