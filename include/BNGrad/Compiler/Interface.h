//===- Interface.h - exported functions of a module -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_COMPILER_INTERFACE_H
#define BNGRAD_COMPILER_INTERFACE_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace mlir::bngrad {

/// An argument or a result, as C sees it.
struct Parameter {
  /// An identifier that no other parameter of the function has.
  std::string name;
  /// A tensor, a memref or a scalar.
  Type type;
  /// The strided layout of a tensor's buffer; null if it is row-major.
  MemRefLayoutAttrInterface layout;
  bool isResult = false;
  /// Whether it is a memref that the function may write to.
  bool isWritten = false;
  /// For each dim of a result, its dynamic size as a C expression; empty if it
  /// is unknown.
  std::vector<std::string> sizes;

  bool isScalar() const { return !isa<ShapedType>(type); }
  /// Whether a pointer is enough to pass it.
  bool isStatic() const;
};

/// A function that the output exports.
struct ExportedFunction {
  std::string name;
  std::vector<Parameter> parameters; // arguments, then results

  /// Whether it is exported under its own name, too.
  bool hasPointerForm() const;
};

/// A function to export, and its name in C.
struct Entry {
  std::string function, name;
};

/// Prints `@name` on one line: special characters are escaped, and a long name
/// is cut off.
std::string printSymbol(StringRef name);

/// Whether the function of `buffer` may write to it.
bool isWritten(Value buffer);

/// Makes `entries` the public functions of `module`, under their names in C.
/// Without entries, `module` is unchanged.
///
/// Errors: failure, and a `reason` such as "to be a function with a body (@f,
///         @g), got @h".
LogicalResult selectEntries(ModuleOp module, ArrayRef<Entry> entries,
                            std::string &reason);

/// Finds the public functions of `module`, which is at the bngrad level, and
/// names each parameter by the location of the argument, else by its role in a
/// gradient, else by number. Parameters of functions with shard annotations
/// have the types of shards.
///
/// Errors: a diagnostic and failure: a type that C cannot pass, or an
/// annotation that `--bngrad-partition` rejects.
FailureOr<std::vector<ExportedFunction>> findExportedFunctions(ModuleOp module);

} // namespace mlir::bngrad

#endif // BNGRAD_COMPILER_INTERFACE_H
