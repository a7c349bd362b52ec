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
/// Its operations are read without building them. Nothing beyond an error of
/// the encoding counts, as MLIR's reader stops there as well.
bool hasDeepRegions(StringRef bytecode, unsigned mostNesting);

/// Whether the bytecode has groups of more attributes or types than it
/// declares, beyond whose table MLIR's reader would write.
bool hasExcessEntries(StringRef bytecode);

/// Calls the function with each attribute and type that the bytecode has as
/// text.
void forEachText(StringRef bytecode, function_ref<void(StringRef)> function);

/// Makes the reader of bytecode refuse attributes and types that are nested
/// more than `mostNesting` deep, and set the flag, if there is one.
void limitNesting(ParserConfig &config, unsigned mostNesting,
                  bool *isTooDeep = nullptr);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_DIALECT_BYTECODENESTING_H
