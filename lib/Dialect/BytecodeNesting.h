//===- BytecodeNesting.h - how deep bytecode is nested ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_DIALECT_BYTECODENESTING_H
#define BNGRAD_LIB_DIALECT_BYTECODENESTING_H

#include "mlir/IR/AsmState.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::bngrad {

/// Whether the regions of the bytecode are nested more than `mostNesting` deep.
/// Reads operations without building them. Stops at an error of the encoding,
/// as MLIR's reader does.
bool hasDeepRegions(StringRef bytecode, unsigned mostNesting);

/// Whether the bytecode has groups of more attributes or types than it
/// declares: MLIR's reader would write past the end of its table.
bool hasExcessEntries(StringRef bytecode);

/// Calls the function with each attribute and type that is stored as text.
void forEachText(StringRef bytecode, function_ref<void(StringRef)> function);

/// Makes the bytecode reader reject attributes and types that are nested more
/// than `mostNesting` deep, and then set the flag, if given.
void limitNesting(ParserConfig &config, unsigned mostNesting,
                  bool *isTooDeep = nullptr);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_DIALECT_BYTECODENESTING_H
