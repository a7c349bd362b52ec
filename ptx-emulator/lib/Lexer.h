//===- Lexer.h - the tokens of PTX ------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_LEXER_H
#define PTX_EMULATOR_LIB_LEXER_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptx {

struct Token {
  enum Kind {
    End,
    Word, // instruction names with their modifiers, directives, identifiers
    Integer,
    Float,
    String,
    Punctuation // one character
  };
  Kind kind = End;
  unsigned line = 0;
  std::string_view text;
  uint64_t integer = 0;
  double real = 0;

  bool is(char punctuation) const {
    return kind == Punctuation && text[0] == punctuation;
  }
  bool is(std::string_view word) const { return kind == Word && text == word; }
};

/// The first line of `text` in quotes, for a message; long text is truncated.
std::string quote(std::string_view text);

/// Splits `text`, which must outlive the tokens; the last token is End.
std::vector<Token> tokenize(std::string_view text);

} // namespace ptx

#endif // PTX_EMULATOR_LIB_LEXER_H
