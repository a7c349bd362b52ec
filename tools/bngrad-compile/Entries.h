//===- Entries.h - the functions that an output exports ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_COMPILE_ENTRIES_H
#define BNGRAD_COMPILE_ENTRIES_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace mlir::bngrad {

/// A function to export, and its name in C.
struct Entry {
  std::string function, name;
};

/// Parses the values of --entry, NAME or NAME=C_NAME.
///
/// Errors: one line on standard error for each value, and failure.
FailureOr<std::vector<Entry>> parseEntries(ArrayRef<std::string> values);

/// Makes `entries` the public functions of `module`, under their names in C.
/// Without entries, `module` is as it was.
///
/// Errors: one line on standard error and failure: a function that is not
/// there.
LogicalResult selectEntries(ModuleOp module, ArrayRef<Entry> entries);

} // namespace mlir::bngrad

#endif // BNGRAD_COMPILE_ENTRIES_H
