//===- Description.h - how a gradient is computed, as text ---- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_DESCRIPTION_H
#define BNGRAD_LIB_RUNTIME_API_DESCRIPTION_H

#include "BNGrad/Runtime/Runtime.h"

#include <cinttypes>
#include <cstdio>

namespace bngrad {

/// Lines of the form key=value, which docs/runtime.md lists.
class Description {
public:
  void add(const char *key, const char *value) {
    append(std::snprintf(getEnd(), getRest(), "%s=%s\n", key, value));
  }
  void add(const char *key, int64_t value) {
    append(std::snprintf(getEnd(), getRest(), "%s=%" PRId64 "\n", key, value));
  }

  const char *getText() const { return text; }
  /// Includes the terminating zero.
  size_t getSize() const { return length + 1; }

private:
  char *getEnd() { return text + length; }
  size_t getRest() const { return sizeof(text) - length; }
  void append(int count) { length += static_cast<size_t>(count); }

  /// Twice the size of the longest reason and numbers.
  char text[BNGRAD_DESCRIPTION_SIZE] = "";
  size_t length = 0;
};

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_DESCRIPTION_H
