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

/// Checks that `symbol` is the function of the C library with that `type`,
/// which serves `purpose`.
LogicalResult verifyLibraryFunction(Operation *symbol, Type type,
                                    StringRef purpose);

/// Adds the functions and the data of `text`, in the LLVM dialect, to the start
/// of `module`. Fails if the module has other symbols of their names.
LogicalResult addHelperFunctions(ModuleOp module, StringRef text,
                                 StringRef purpose);

/// The calls of `function`; nothing if it is used in any other way, so that its
/// type must stay. An attribute of a function is no use.
std::optional<SmallVector<func::CallOp>> findCalls(func::FuncOp function,
                                                   ModuleOp module);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_CABI_HELPERFUNCTIONS_H
