//===- Compilation.h - compilations, fork and exit --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_COMPILER_LIBRARY_COMPILATION_H
#define BNGRAD_LIB_COMPILER_LIBRARY_COMPILATION_H

namespace mlir::bngrad {

/// Held by each function of this library while it uses LLVM. fork() waits until
/// no other thread holds one, because otherwise its child would find LLVM's
/// locks taken forever.
class Compilation {
public:
  Compilation();
  ~Compilation();
  Compilation(const Compilation &) = delete;
  Compilation &operator=(const Compilation &) = delete;
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_COMPILER_LIBRARY_COMPILATION_H
