//===- OutOfMemory.h - memory that runs out is an error ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_REFERENCE_OUTOFMEMORY_H
#define BNGRAD_REFERENCE_OUTOFMEMORY_H

#include <new>
#include <string>

namespace bngrad {

/// Returns the result of `function`, which is false with a line in `error` if
/// it fails. Running out of memory is a failure with the line
/// `<path>: out of memory`, or without the path if it is empty or if there is
/// no memory for the line.
template <typename Function>
bool orOutOfMemory(const std::string &path, std::string &error,
                   Function function) {
  constexpr char kText[] = "out of memory";
  try {
    return function();
  } catch (const std::bad_alloc &) {
    // Short enough to need no allocation.
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

#endif // BNGRAD_REFERENCE_OUTOFMEMORY_H
