//===- Link.h - shared objects in memory ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_COMPILER_LIBRARY_LINK_H
#define BNGRAD_LIB_COMPILER_LIBRARY_LINK_H

#include "mlir/Support/LLVM.h"

#include <string>

namespace mlir::bngrad {

/// Links an object file to a shared object, with `library` unless that is null.
/// No file is written.
///
/// Errors: failure, and one line in `error`.
FailureOr<std::string> link(StringRef object, const char *library,
                            std::string &error);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_COMPILER_LIBRARY_LINK_H
