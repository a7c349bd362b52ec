//===- Error.cpp - errors of collectives ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"

#include "BNGrad/Runtime/Collectives.h"

#include <cstdarg>
#include <cstdio>

using namespace bngrad;

/// One per thread. It has no destructor, as threads may outlive the library.
static thread_local char text[4096];

int distributed::fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return 1;
}

int distributed::fail(const std::string &message) {
  return fail("%s", message.c_str());
}

const char *bngradGetCollectiveError(void) { return text; }
