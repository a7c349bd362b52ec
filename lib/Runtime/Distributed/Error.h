//===- Error.h - errors of collectives --------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_DISTRIBUTED_ERROR_H
#define BNGRAD_LIB_RUNTIME_DISTRIBUTED_ERROR_H

#include <exception>
#include <new>
#include <string>

namespace bngrad::distributed {

/// Sets the text of bngradGetCollectiveError() for this thread; returns 1.
[[gnu::format(printf, 1, 2)]] int fail(const char *format, ...);
int fail(const std::string &text);

/// Returns the result of `function`, the body of an exported function, or
/// `onFailure` if memory or threads run out.
template <typename Result, typename Function>
Result guard(Result onFailure, Function function) {
  try {
    return function();
  } catch (const std::bad_alloc &) {
    fail("out of memory");
    return onFailure;
  } catch (const std::exception &error) { // no thread, for example
    fail("%s", error.what());
    return onFailure;
  }
}

} // namespace bngrad::distributed

#endif // BNGRAD_LIB_RUNTIME_DISTRIBUTED_ERROR_H
