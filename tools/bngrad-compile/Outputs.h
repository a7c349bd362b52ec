//===- Outputs.h - files that are written whole or not at all ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_COMPILE_OUTPUTS_H
#define BNGRAD_COMPILE_OUTPUTS_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <vector>

namespace mlir::bngrad {

/// Files that get their names all together, once everything has succeeded;
/// until then they lie beside under names that are removed if it has not.
class Outputs {
public:
  Outputs() = default;
  Outputs(const Outputs &) = delete;
  Outputs &operator=(const Outputs &) = delete;
  ~Outputs();

  /// Adds a file with the bytes `content`.
  ///
  /// Errors: one line on standard error and failure.
  LogicalResult add(StringRef path, StringRef content);

  /// Adds a shared object linked of the object file `object`, libm and, where
  /// something is called of them, `libraries`, which it finds beside it, if
  /// `besideToo`, or where they lie now.
  ///
  /// Errors: one line on standard error and failure: no linker on PATH, what
  ///         the linker says first.
  LogicalResult addSharedObject(StringRef path, StringRef object,
                                ArrayRef<std::string> libraries,
                                bool besideToo);

  /// Gives the files their names.
  ///
  /// Errors: one line on standard error and failure.
  LogicalResult keep();

private:
  struct File {
    std::string path, temporary;
  };

  /// Adds a file that is there under its temporary name from now on.
  FailureOr<int> create(StringRef path);

  std::vector<File> files;
};

} // namespace mlir::bngrad

#endif // BNGRAD_COMPILE_OUTPUTS_H
