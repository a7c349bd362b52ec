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

/// A use of LLVM by a function of this library; each function has one. fork()
/// and exit() wait for those of other threads: the child of a fork would find
/// LLVM's locks taken for ever, and exit() destroys LLVM's objects. When exit()
/// has begun, those that other threads begin wait for the end of the process,
/// or are refused.
class Compilation {
public:
  enum class AtEnd { Wait, Refuse };
  explicit Compilation(AtEnd atEnd = AtEnd::Wait);
  ~Compilation();
  Compilation(const Compilation &) = delete;
  Compilation &operator=(const Compilation &) = delete;

  /// False, and why, in the thread that has called exit(): LLVM's objects may
  /// be gone.
  explicit operator bool() const { return isAllowed; }
  static constexpr char kError[] =
      "expected a process that goes on, got one that has called exit";

  /// Waits for the compilations of other threads, before the process ends.
  static void end();

private:
  bool isAllowed;
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_COMPILER_LIBRARY_COMPILATION_H
