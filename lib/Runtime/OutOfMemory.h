//===- OutOfMemory.h - memory that runs out is an error ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNTIME_OUTOFMEMORY_H
#define BNGRAD_RUNTIME_OUTOFMEMORY_H

#include <new>
#include <string>

namespace bngrad {

/// What `function` returns, which is false with a line in `error` where it
/// fails; memory that runs out in it is such a failure. Its line is
/// `<path>: out of memory`, without a path if that is empty or if there is not
/// even memory for the line.
template <typename Function>
bool orOutOfMemory(const std::string &path, std::string &error,
                   Function function) {
  constexpr char kText[] = "out of memory";
  try {
    return function();
  } catch (const std::bad_alloc &) {
    // So short that every string has room for it.
    error = kText;
  }
  try {
    if (!path.empty())
      error = path + ": " + kText;
  } catch (const std::bad_alloc &) {
  }
  return false;
}

} // namespace bngrad

#endif // BNGRAD_RUNTIME_OUTOFMEMORY_H
