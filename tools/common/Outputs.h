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

/// Whether `path` is written in place because it cannot be replaced: an open
/// descriptor (/dev/stdout, /dev/stderr, /dev/fd/N, /proc/self/fd/N), a
/// character device, or a pipe.
bool isWrittenInPlace(StringRef path);

/// Whether both paths lead to the same existing or future file.
bool isSameFile(StringRef left, StringRef right);

/// Why a file at `path` cannot be written, as far as this is known without
/// touching it; empty if it can.
std::string findWriteError(StringRef path);

/// Files that get their final names together, once everything has succeeded.
/// Until then they have temporary names in the same folders, and are removed on
/// failure. An existing file keeps its permissions, and a link to it remains a
/// link.
class Outputs {
public:
  Outputs() = default;
  Outputs(const Outputs &) = delete;
  Outputs &operator=(const Outputs &) = delete;
  ~Outputs();

  /// Writes to a descriptor, which stays open; false and an error on failure.
  using Writer = function_ref<bool(int descriptor, std::string &error)>;

  /// Adds a file that `write` writes, at once if it is written in place.
  ///
  /// Errors: one line on standard error and failure.
  LogicalResult add(StringRef path, Writer write);

  /// Adds a file with the bytes `content`.
  ///
  /// Errors: one line on standard error and failure.
  LogicalResult add(StringRef path, StringRef content);

  /// Adds a file that another process will write; returns its temporary name.
  ///
  /// Errors: one line on standard error and failure.
  FailureOr<std::string> addForProcess(StringRef path);

  /// Gives the files their names.
  ///
  /// Errors: one line on standard error and failure.
  LogicalResult keep();

private:
  struct File {
    std::string path; // as given
    std::string target, temporary;
  };

  FailureOr<int> create(StringRef path);

  std::vector<File> files;
};

} // namespace mlir::bngrad

#endif // BNGRAD_TOOLS_COMMON_OUTPUTS_H
