//===- Lexer.cpp - the tokens of PTX ----------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lexer.h"

#include "Types.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace ptx {

static bool startsWord(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' ||
         c == '%' || c == '.';
}

static bool continuesWord(char c) {
  return startsWord(c) || std::isdigit(static_cast<unsigned char>(c));
}

namespace {

class Lexer {
public:
  explicit Lexer(std::string_view text) : text(text) {}

  Token next() {
    skipBlanks();
    Token token;
    token.line = line;
    if (position == text.size())
      return token;
    char c = text[position];
    bool dotNumber = c == '.' && std::isdigit(at(position + 1));
    if (std::isdigit(static_cast<unsigned char>(c)) || dotNumber)
      lexNumber(token);
    else if (startsWord(c))
      lexWord(token);
    else if (c == '"')
      lexString(token);
    else {
      token.kind = Token::Punctuation;
      token.text = text.substr(position++, 1);
    }
    return token;
  }

private:
  unsigned char at(size_t index) const {
    return index < text.size() ? text[index] : 0;
  }

  void skipBlanks() {
    while (position < text.size()) {
      if (text[position] == '\n') {
        ++line;
        ++position;
      } else if (std::isspace(at(position))) {
        ++position;
      } else if (text.substr(position, 2) == "//") {
        while (position < text.size() && text[position] != '\n')
          ++position;
      } else if (text.substr(position, 2) == "/*") {
        while (position < text.size() && text.substr(position, 2) != "*/") {
          line += text[position] == '\n';
          ++position;
        }
        position = position + 2 < text.size() ? position + 2 : text.size();
      } else {
        return;
      }
    }
  }

  void lexWord(Token &token) {
    size_t begin = position;
    // Directives may follow each other without a space: `.reg.b32`.
    bool isDirective = text[begin] == '.';
    while (position < text.size()) {
      if (isDirective && position > begin && text[position] == '.')
        break;
      if (continuesWord(text[position]))
        ++position;
      else if (text.substr(position, 2) == "::")
        position += 2;
      else
        break;
    }
    token.kind = Token::Word;
    token.text = text.substr(begin, position - begin);
  }

  void lexString(Token &token) {
    size_t begin = ++position;
    // An unterminated string ends with its line.
    position = std::min(text.find_first_of("\"\n", begin), text.size());
    token.kind = Token::String;
    token.text = text.substr(begin, position - begin);
    position += at(position) == '"';
  }

  void lexNumber(Token &token) {
    size_t begin = position;
    char prefix = std::tolower(at(begin + 1));
    bool isHexFloat = at(begin) == '0' && (prefix == 'f' || prefix == 'd') &&
                      std::isxdigit(at(begin + 2));
    if (isHexFloat) {
      position += 2;
      while (std::isxdigit(at(position)))
        ++position;
      token.kind = Token::Float;
      token.text = text.substr(begin, position - begin);
      uint64_t bits =
          std::strtoull(std::string(token.text.substr(2)).c_str(), nullptr, 16);
      token.real =
          prefix == 'd' ? fromBits<double>(bits) : fromBits<float>(bits);
      return;
    }
    bool isHex = at(begin) == '0' && prefix == 'x';
    bool isBinary = at(begin) == '0' && prefix == 'b';
    bool isFloat = false;
    if (isHex || isBinary)
      position += 2;
    while (std::isxdigit(at(position)) || at(position) == '.' ||
           ((at(position) == '-' || at(position) == '+') && !isHex &&
            std::tolower(at(position - 1)) == 'e')) {
      char c = std::tolower(at(position));
      isFloat |= !isHex && !isBinary && (c == '.' || c == 'e');
      ++position;
    }
    token.text = text.substr(begin, position - begin);
    std::string spelling(token.text);
    if (isFloat) {
      token.kind = Token::Float;
      token.real = std::strtod(spelling.c_str(), nullptr);
    } else {
      token.kind = Token::Integer;
      token.integer = isBinary ? std::strtoull(spelling.c_str() + 2, nullptr, 2)
                               : std::strtoull(spelling.c_str(), nullptr, 0);
    }
    if (at(position) == 'U')
      ++position;
  }

  std::string_view text;
  size_t position = 0;
  unsigned line = 1;
};

} // namespace

std::string quote(std::string_view text) {
  constexpr size_t kMost = 80;
  size_t end = std::min({text.find_first_of("\r\n"), text.size(), kMost});
  return "'" + std::string(text.substr(0, end)) +
         (end < text.size() ? "...'" : "'");
}

std::vector<Token> tokenize(std::string_view text) {
  Lexer lexer(text);
  std::vector<Token> tokens;
  do
    tokens.push_back(lexer.next());
  while (tokens.back().kind != Token::End);
  return tokens;
}

} // namespace ptx
