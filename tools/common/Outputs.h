//===- Outputs.h - files that are written whole or not at all ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TOOLS_COMMON_OUTPUTS_H
#define BNGRAD_TOOLS_COMMON_OUTPUTS_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::bngrad {

/// Whether `path` is written in place, as it is no file that could be replaced:
/// an open descriptor (/dev/stdout, /dev/stderr, /dev/fd/N, /proc/self/fd/N), a
/// device that takes characters, a pipe.
bool isWrittenInPlace(StringRef path);

/// Whether both paths are those of one file that is there, or will be.
bool isSameFile(StringRef left, StringRef right);

/// Why a file at `path` cannot be written, as far as can be known without
/// touching it; empty: it can.
std::string findWriteError(StringRef path);

/// Files that get their names all together, once everything has succeeded;
/// until then they lie beside under names that are removed if it has not. A
/// file that is there keeps its permissions, and a link to it stays one.
class Outputs {
public:
  Outputs() = default;
  Outputs(const Outputs &) = delete;
  Outputs &operator=(const Outputs &) = delete;
  ~Outputs();

  /// Writes to a descriptor, which stays open; false and an error.
  using Writer = function_ref<bool(int descriptor, std::string &error)>;

  /// Adds a file that `write` writes, at once if it is written in place.
  ///
  /// Errors: one line on standard error and failure.
  LogicalResult add(StringRef path, Writer write);

  /// Adds a file with the bytes `content`.
  ///
  /// Errors: one line on standard error and failure.
  LogicalResult add(StringRef path, StringRef content);

  /// Adds a file that another process will write; returns the name that it has
  /// until then.
  ///
  /// Errors: one line on standard error and failure.
  FailureOr<std::string> addForProcess(StringRef path);

  /// Gives the files their names.
  ///
  /// Errors: one line on standard error and failure.
  LogicalResult keep();

private:
  struct File {
    std::string path; // as it was given
    std::string target, temporary;
  };

  FailureOr<int> create(StringRef path);

  std::vector<File> files;
};

} // namespace mlir::bngrad

#endif // BNGRAD_TOOLS_COMMON_OUTPUTS_H
