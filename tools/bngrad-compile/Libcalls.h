//===- Libcalls.h - library functions of generated code ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_COMPILE_LIBCALLS_H
#define BNGRAD_COMPILE_LIBCALLS_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::bngrad {

/// Checks that `module` calls nothing but the libraries of C and mathematics,
/// and functions whose names begin with one of `prefixes`.
///
/// Errors: one line on standard error, which begins with `path`, and failure.
LogicalResult verifyCalls(const llvm::Module &module, StringRef path,
                          ArrayRef<StringRef> prefixes);

/// Gives `module` conversions of f16 and bf16 of its own, where LLVM would call
/// those of a compiler's library: not every such library has them. They are
/// internal to the module.
void addFloatConversions(llvm::Module &module);

} // namespace mlir::bngrad

#endif // BNGRAD_COMPILE_LIBCALLS_H
