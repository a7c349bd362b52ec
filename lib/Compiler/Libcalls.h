//===- Libcalls.h - library functions of generated code ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_COMPILER_LIBCALLS_H
#define BNGRAD_COMPILER_LIBCALLS_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::bngrad {

/// Checks that `module` calls only libc, libm, and functions whose names begin
/// with one of `prefixes`.
///
/// Errors: a diagnostic at `loc` and failure.
LogicalResult verifyCalls(const llvm::Module &module, Location loc,
                          ArrayRef<StringRef> prefixes);

/// Adds internal conversions of f16 and bf16 to `module` if LLVM would call a
/// compiler's runtime library for them: not every such library has them.
void addFloatConversions(llvm::Module &module);

} // namespace mlir::bngrad

#endif // BNGRAD_COMPILER_LIBCALLS_H
