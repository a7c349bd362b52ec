//===- Entries.h - the functions that an output exports ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_COMPILE_ENTRIES_H
#define BNGRAD_COMPILE_ENTRIES_H

#include "BNGrad/Compiler/Interface.h"

namespace mlir::bngrad {

/// Parses the values of --entry, NAME or NAME=C_NAME.
///
/// Errors: one line on standard error for each value, and failure.
FailureOr<std::vector<Entry>> parseEntries(ArrayRef<std::string> values);

} // namespace mlir::bngrad

#endif // BNGRAD_COMPILE_ENTRIES_H
