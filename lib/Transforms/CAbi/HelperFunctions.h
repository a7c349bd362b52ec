//===- HelperFunctions.h - functions that generated code calls  -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_CABI_HELPERFUNCTIONS_H
#define BNGRAD_LIB_TRANSFORMS_CABI_HELPERFUNCTIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::bngrad {

/// Checks that `symbol`, which has the name of a C library function, declares
/// that function with `type`. `purpose` says in the error what the function is
/// needed for, such as "end the process".
LogicalResult verifyLibraryFunction(Operation *symbol, Type type,
                                    StringRef purpose);

/// Adds the functions and globals in `text`, LLVM dialect assembly, to the
/// start of `module`. Fails if the module has a conflicting symbol of the same
/// name; `purpose` is as above. `text` has a line per op; builder calls would
/// have two or three, and bitcode of C would depend on the compiler's version.
LogicalResult addHelperFunctions(ModuleOp module, StringRef text,
                                 StringRef purpose);

/// Returns the calls of `function`, or nothing if it has other uses, so that
/// its type cannot be changed. References in attributes of functions do not
/// count as uses.
std::optional<SmallVector<func::CallOp>> findCalls(func::FuncOp function,
                                                   ModuleOp module);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_CABI_HELPERFUNCTIONS_H
