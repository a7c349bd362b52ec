//===- MemoryFile.h - names of files in memory ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_COMPILER_LIBRARY_MEMORYFILE_H
#define BNGRAD_LIB_COMPILER_LIBRARY_MEMORYFILE_H

#include <unistd.h>

namespace bngrad {

/// Why files in memory have no paths by which they can be linked and loaded;
/// null if they have.
inline const char *findNamesError() {
  return access("/proc/self/fd", X_OK) == 0
             ? nullptr
             : "expected /proc, where files in memory have names, got none";
}

} // namespace bngrad

#endif // BNGRAD_LIB_COMPILER_LIBRARY_MEMORYFILE_H
