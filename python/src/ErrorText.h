//===- ErrorText.h - texts of the C library's errors ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_ERRORTEXT_H
#define BNGRAD_PYTHON_SRC_ERRORTEXT_H

#include <cctype>
#include <cstring>
#include <string>

namespace bngrad::python {

/// Replaces the word `statistic` in the text of an error by `name`, the
/// argument's name in Python: variance or inv_std.
inline std::string nameStatistic(std::string text, const char *name) {
  static constexpr char kWord[] = "statistic";
  constexpr size_t kSize = sizeof(kWord) - 1;
  for (size_t at = 0; (at = text.find(kWord, at)) != std::string::npos;) {
    bool isWord = at + kSize == text.size() ||
                  !std::isalpha(static_cast<unsigned char>(text[at + kSize]));
    if (isWord)
      text.replace(at, kSize, name);
    at += isWord ? std::strlen(name) : kSize;
  }
  return text;
}

} // namespace bngrad::python

#endif // BNGRAD_PYTHON_SRC_ERRORTEXT_H
