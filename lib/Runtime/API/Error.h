//===- Error.h - errors of the C library ---------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_ERROR_H
#define BNGRAD_LIB_RUNTIME_API_ERROR_H

#include "BNGrad/Runtime/Runtime.h"

namespace bngrad {

/// Sets the text that bngradGetLastError() returns in this thread, given as a
/// format of printf, and returns `status`.
[[gnu::format(printf, 2, 3)]] bngradStatus_t fail(bngradStatus_t status,
                                                  const char *format, ...);

/// A copy of the text of bngradGetLastError().
class ErrorText {
public:
  ErrorText();
  const char *get() const { return text; }

private:
  char text[4096];
};

/// The status of a call whose kernel has returned `code`.
bngradStatus_t getStatus(int32_t code);

/// Removes the text and returns BNGRAD_SUCCESS.
bngradStatus_t succeed();

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_ERROR_H
