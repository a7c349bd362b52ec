//===- NpyHeader.cpp - the text of an npy header ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The header of an npy file is a Python literal. It is first split into the
// texts of its three values. These are checked afterwards, so that an error can
// print any dtype, even a structured one.
//
//===----------------------------------------------------------------------===//

#include "NpyHeader.h"

#include <algorithm>
#include <cassert>

namespace bngrad {

std::string printable(std::string_view text) {
  constexpr size_t kMaxLength = 200;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  for (char c : text.substr(0, kMaxLength)) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      result += c;
      continue;
    }
    result += "\\x";
    result += kDigits[byte >> 4];
    result += kDigits[byte & 15];
  }
  if (text.size() > kMaxLength)
    result += "...";
  return result;
}

std::string tupleOf(const std::vector<int64_t> &shape) {
  std::string result = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0)
      result += ", ";
    result += std::to_string(shape[i]);
  }
  result += shape.size() == 1 ? ",)" : ")";
  return result;
}
namespace {
/// The values of the three keys, as the file spells them.
struct Header {
  std::string_view descr;
  std::string_view fortranOrder;
  std::string_view shape;
};

/// Splits a header into its values. There is no recursion, so no nesting can
/// exhaust the stack.
class HeaderParser {
public:
  HeaderParser(std::string_view text, std::string &error)
      : text(text), error(error) {}

  bool parse(Header &header);

private:
  bool expect(char c);
  bool parseString(std::string_view &contents);
  bool parseValue(std::string_view &value);
  bool fail(const std::string &expected);

  bool isAtEnd() const { return position == text.size(); }
  /// 0 at the end, which no rule of the grammar accepts.
  char peek() const { return isAtEnd() ? '\0' : text[position]; }
  void skipSpace() {
    while (!isAtEnd() && isSpace(peek()))
      ++position;
  }
  static bool isSpace(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
  }

  std::string_view text;
  std::string &error;
  size_t position = 0;
};
} // namespace

bool HeaderParser::fail(const std::string &expected) {
  error = "expected " + expected + " at byte " + std::to_string(position) +
          " of the header, got ";
  if (isAtEnd())
    error += "its end";
  else
    error += "'" + printable(text.substr(position, 1)) + "'";
  return false;
}

bool HeaderParser::expect(char c) {
  skipSpace();
  if (peek() != c)
    return fail(std::string("'") + c + "'");
  ++position;
  return true;
}

/// A string without prefix. Escapes are skipped but not interpreted, as no
/// known header contains any.
bool HeaderParser::parseString(std::string_view &contents) {
  char quote = peek();
  if (quote != '\'' && quote != '"')
    return fail("a string");
  size_t begin = ++position;
  while (!isAtEnd() && peek() != quote)
    position = std::min(position + (peek() == '\\' ? 2 : 1), text.size());
  if (isAtEnd())
    return fail(std::string("the string to end in ") + quote);
  contents = text.substr(begin, position - begin);
  ++position;
  return true;
}

/// A string, a word, or anything in balanced brackets.
bool HeaderParser::parseValue(std::string_view &value) {
  skipSpace();
  size_t begin = position;
  std::string closers;
  do {
    char c = peek();
    if (c == '\'' || c == '"') {
      std::string_view contents;
      if (!parseString(contents))
        return false;
    } else if (c == '(' || c == '[' || c == '{') {
      closers += c == '(' ? ')' : c == '[' ? ']' : '}';
      ++position;
    } else if (!closers.empty() && c == closers.back()) {
      closers.pop_back();
      ++position;
    } else if (isAtEnd() || c == ')' || c == ']' || c == '}') {
      return fail(closers.empty() ? std::string("a value")
                                  : std::string("'") + closers.back() + "'");
    } else if (!closers.empty()) {
      ++position;
    } else if (c == ',' || c == ':') {
      return fail("a value");
    } else {
      while (!isAtEnd() && !isSpace(peek()) &&
             std::string_view(",:'\"()[]{}").find(peek()) ==
                 std::string_view::npos)
        ++position;
    }
  } while (!closers.empty());
  value = text.substr(begin, position - begin);
  return true;
}

bool HeaderParser::parse(Header &header) {
  constexpr const char *kKeys = "keys 'descr', 'fortran_order' and 'shape'";
  if (!expect('{'))
    return false;
  for (skipSpace(); peek() != '}'; skipSpace()) {
    std::string_view key;
    if (!parseString(key))
      return false;
    std::string_view *value = key == "descr"           ? &header.descr
                              : key == "fortran_order" ? &header.fortranOrder
                              : key == "shape"         ? &header.shape
                                                       : nullptr;
    if (!value || !value->empty()) {
      error = std::string("expected ") + kKeys + ", got " +
              (value ? "two of '" : "'") + printable(key) + "'";
      return false;
    }
    if (!expect(':') || !parseValue(*value))
      return false;
    skipSpace();
    if (peek() == ',')
      ++position;
    else if (peek() != '}')
      return fail("',' or '}'");
  }
  ++position;
  skipSpace();
  if (!isAtEnd())
    return fail("nothing after '}'");

  const char *missing = header.descr.empty()          ? "descr"
                        : header.fortranOrder.empty() ? "fortran_order"
                        : header.shape.empty()        ? "shape"
                                                      : nullptr;
  if (!missing)
    return true;
  error = std::string("expected ") + kKeys + ", got no '" + missing + "'";
  return false;
}

static bool parseType(std::string_view descr, NpyLayout &layout,
                      std::string &error) {
  struct Dtype {
    std::string_view name;
    ElementType type;
    bool isBigEndian = false;
  };
  // Integers are signed or unsigned in the file, but signless in MLIR.
  constexpr Dtype kDtypes[] = {
      {"<f2", ElementType::F16},       {">f2", ElementType::F16, true},
      {"<f4", ElementType::F32},       {">f4", ElementType::F32, true},
      {"<f8", ElementType::F64},       {">f8", ElementType::F64, true},
      {"<V2", ElementType::BF16},      {"|V2", ElementType::BF16},
      {"|b1", ElementType::I1},        {"|i1", ElementType::I8},
      {"|u1", ElementType::I8},        {"<i2", ElementType::I16},
      {">i2", ElementType::I16, true}, {"<u2", ElementType::I16},
      {">u2", ElementType::I16, true}, {"<i4", ElementType::I32},
      {">i4", ElementType::I32, true}, {"<u4", ElementType::I32},
      {">u4", ElementType::I32, true}, {"<i8", ElementType::I64},
      {">i8", ElementType::I64, true}, {"<u8", ElementType::I64},
      {">u8", ElementType::I64, true}};
  bool isString = descr.front() == '\'' || descr.front() == '"';
  std::string_view contents =
      isString ? descr.substr(1, descr.size() - 2) : std::string_view();
  for (const Dtype &dtype : kDtypes) {
    if (dtype.name == contents) {
      layout.type = dtype.type;
      layout.isBigEndian = dtype.isBigEndian;
      return true;
    }
  }
  error = "expected dtype f2, f4, f8, i2, i4, i8, u2, u4 or u8 after < or >, "
          "|b1, |i1, |u1 or <V2 (bf16), got " +
          printable(descr);
  return false;
}

/// Python's syntax of a tuple of decimal numbers: `()`, `(3,)`, `(3, 4)`; `(3)`
/// is a number.
static bool parseShape(std::string_view text, std::vector<int64_t> &shape) {
  size_t position = 1;
  bool endsInComma = false;
  auto skipSpace = [&] {
    while (std::string_view(" \t\n\r\f").find(text[position]) !=
           std::string_view::npos)
      ++position;
  };
  if (text.front() != '(')
    return false;
  // The text ends in the matching bracket, so no look-ahead passes its end.
  for (skipSpace(); text[position] != ')'; skipSpace()) {
    if (!shape.empty() && !endsInComma)
      return false;
    size_t begin = position;
    int64_t extent = 0;
    for (; text[position] >= '0' && text[position] <= '9'; ++position) {
      int digit = text[position] - '0';
      if (extent > (INT64_MAX - digit) / 10)
        return false;
      extent = extent * 10 + digit;
    }
    bool hasLeadingZero = text[begin] == '0' && position - begin > 1;
    if (position == begin || hasLeadingZero)
      return false;
    shape.push_back(extent);
    skipSpace();
    endsInComma = text[position] == ',';
    if (endsInComma)
      ++position;
  }
  return position + 1 == text.size() && (shape.size() != 1 || endsInComma);
}

bool interpretHeader(std::string_view text, NpyLayout &layout,
                     std::string &error) {
  Header header;
  if (!HeaderParser(text, error).parse(header) ||
      !parseType(header.descr, layout, error))
    return false;
  layout.isFortranOrder = header.fortranOrder == "True";
  if (!layout.isFortranOrder && header.fortranOrder != "False") {
    error = "expected fortran_order True or False, got " +
            printable(header.fortranOrder);
    return false;
  }
  if (!parseShape(header.shape, layout.shape)) {
    error = "expected shape to be a tuple of integers in [0, 2^63), got " +
            printable(header.shape);
    return false;
  }
  if (!computeByteSize(layout.type, layout.shape)) {
    error = "expected shape to have fewer than 2^63 bytes, got " +
            printable(tupleOf(layout.shape)) + " of " + name(layout.type);
    return false;
  }
  return true;
}

static const char *dtypeOf(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return "<f2";
  case ElementType::BF16:
    return "<V2";
  case ElementType::F32:
    return "<f4";
  case ElementType::F64:
    return "<f8";
  case ElementType::I1:
    return "|b1";
  case ElementType::I8:
    return "|i1";
  case ElementType::I16:
    return "<i2";
  case ElementType::I32:
    return "<i4";
  case ElementType::I64:
    return "<i8";
  }
  assert(false && "unknown element type");
  return "";
}

std::string printHeader(ElementType type, const std::vector<int64_t> &shape) {
  return std::string("{'descr': '") + dtypeOf(type) +
         "', 'fortran_order': False, 'shape': " + tupleOf(shape) + ", }";
}

} // namespace bngrad
