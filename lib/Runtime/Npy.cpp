//===- Npy.cpp - read and write npy files -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The header of an npy file is a Python literal. It is split into the text of
// its three values first and judged afterwards, so that a structured dtype,
// which we do not read, can still be printed.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Runtime/Npy.h"
#include "OutOfMemory.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "elements are copied to and from little-endian files");

namespace bngrad {

static constexpr std::string_view kMagic = "\x93NUMPY";
// The magic, two bytes of version, and the header length: two bytes in version
// 1.0, four later.
static constexpr size_t kPrefixSizeV1 = 10;
static constexpr size_t kPrefixSizeV2 = 12;
// numpy's ARRAY_ALIGN.
static constexpr size_t kDataAlignment = 64;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// `text` from a file as part of one line of a message.
static std::string printable(std::string_view text) {
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

/// `shape` as Python prints a tuple.
static std::string tupleOf(const std::vector<int64_t> &shape) {
  std::string result = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0)
      result += ", ";
    result += std::to_string(shape[i]);
  }
  result += shape.size() == 1 ? ",)" : ")";
  return result;
}

static std::string systemText(int error) {
  return std::system_category().message(error);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

namespace {
/// A file descriptor that does not leak.
struct File {
  int descriptor = -1;

  explicit File(int descriptor) : descriptor(descriptor) {}
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  ~File() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  /// Closes now, for those who need to know whether that worked.
  int close() {
    int result = ::close(descriptor);
    descriptor = -1;
    return result;
  }
};
} // namespace

// Linux moves at most 2 GiB - 4 KiB per call; ask for less.
static constexpr size_t kMaxTransfer = size_t(1) << 30;

/// Reads `size` bytes, or up to the end of the file if that comes first.
/// `numRead` is how many there were. False with `errno` set on an error.
static bool readBytes(int descriptor, char *data, size_t size,
                      size_t &numRead) {
  numRead = 0;
  while (numRead < size) {
    ssize_t count = ::read(descriptor, data + numRead,
                           std::min(size - numRead, kMaxTransfer));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return false;
    if (count == 0)
      return true;
    numRead += static_cast<size_t>(count);
  }
  return true;
}

/// False with `errno` set on an error.
static bool writeBytes(int descriptor, const char *data, size_t size) {
  while (size != 0) {
    ssize_t count = ::write(descriptor, data, std::min(size, kMaxTransfer));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return false;
    data += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Header
//===----------------------------------------------------------------------===//

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
  /// 0 at the end: no character that the grammar wants.
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

/// A string without prefix. Escapes are not interpreted (no text we know has
/// any), only not mistaken for the end.
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

static bool parseType(std::string_view descr, ElementType &type,
                      std::string &error) {
  struct Dtype {
    std::string_view name;
    ElementType type;
  };
  constexpr Dtype kDtypes[] = {
      {"<f2", ElementType::F16}, {"<f4", ElementType::F32},
      {"<f8", ElementType::F64}, {"|b1", ElementType::I1},
      {"<i8", ElementType::I64}, {"<V2", ElementType::BF16},
      {"|V2", ElementType::BF16}};
  bool isString = descr.front() == '\'' || descr.front() == '"';
  std::string_view contents =
      isString ? descr.substr(1, descr.size() - 2) : std::string_view();
  for (const Dtype &dtype : kDtypes) {
    if (dtype.name == contents) {
      type = dtype.type;
      return true;
    }
  }
  error = "expected dtype <f2, <f4, <f8, |b1, <i8 or <V2 (bf16), got " +
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

static bool interpretHeader(std::string_view text, ElementType &type,
                            std::vector<int64_t> &shape, std::string &error) {
  Header header;
  if (!HeaderParser(text, error).parse(header) ||
      !parseType(header.descr, type, error))
    return false;
  if (header.fortranOrder != "False") {
    error =
        "expected fortran_order False, got " + printable(header.fortranOrder);
    return false;
  }
  if (!parseShape(header.shape, shape)) {
    error = "expected shape to be a tuple of integers in [0, 2^63), got " +
            printable(header.shape);
    return false;
  }
  if (!computeByteSize(type, shape)) {
    error = "expected shape to have fewer than 2^63 bytes, got " +
            printable(tupleOf(shape)) + " of " + name(type);
    return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Reads the magic, the version and the header text.
///
/// `size` is that of the file. `dataBegin` is where the elements begin.
static bool readHeader(int descriptor, size_t size, std::string &text,
                       size_t &dataBegin, std::string &error) {
  char prefix[kPrefixSizeV2] = {};
  size_t count;
  auto read = [&](char *data, size_t wanted) {
    if (readBytes(descriptor, data, wanted, count))
      return true;
    error = "cannot read: " + systemText(errno);
    return false;
  };
  if (!read(prefix, kPrefixSizeV1))
    return false;
  std::string_view magic(prefix, std::min(count, kMagic.size()));
  if (magic != kMagic.substr(0, magic.size())) {
    error = "expected an npy file, which begins with '" + printable(kMagic) +
            "', got '" + printable(magic) + "'";
    return false;
  }
  if (count < kPrefixSizeV1) {
    error = "expected an npy file of at least 10 bytes, got " +
            std::to_string(count);
    return false;
  }

  auto byteAt = [&](size_t i) {
    return static_cast<size_t>(static_cast<unsigned char>(prefix[i]));
  };
  size_t major = byteAt(6), minor = byteAt(7);
  if (major < 1 || major > 3 || minor != 0) {
    error = "expected npy version 1.0, 2.0 or 3.0, got " +
            std::to_string(major) + "." + std::to_string(minor);
    return false;
  }
  size_t length = byteAt(8) | byteAt(9) << 8;
  size_t begin = kPrefixSizeV1;
  if (major > 1) {
    size_t wanted = kPrefixSizeV2 - kPrefixSizeV1;
    if (!read(prefix + kPrefixSizeV1, wanted))
      return false;
    if (count < wanted) {
      error = "expected an npy file of at least 12 bytes, got " +
              std::to_string(kPrefixSizeV1 + count);
      return false;
    }
    length |= byteAt(10) << 16 | byteAt(11) << 24;
    begin = kPrefixSizeV2;
  }

  size_t available = size > begin ? size - begin : 0;
  if (available >= length) {
    text.resize(length);
    if (!read(text.data(), length))
      return false;
    available = count;
  }
  if (available < length) {
    error = "expected a header of " + std::to_string(length) + " bytes, got " +
            std::to_string(available);
    return false;
  }
  dataBegin = begin + length;
  return true;
}

static bool readArray(int descriptor, size_t fileSize, Array &array,
                      std::string &error) {
  std::string text;
  size_t dataBegin;
  ElementType type;
  std::vector<int64_t> shape;
  if (!readHeader(descriptor, fileSize, text, dataBegin, error) ||
      !interpretHeader(text, type, shape, error))
    return false;

  size_t size = static_cast<size_t>(*computeByteSize(type, shape));
  auto failSize = [&](size_t got) {
    error = "expected " + std::to_string(size) + " bytes of data for shape " +
            printable(tupleOf(shape)) + " of " + name(type) + ", got " +
            std::to_string(got);
    return false;
  };
  // Before the allocation: a header may claim anything.
  size_t available = fileSize > dataBegin ? fileSize - dataBegin : 0;
  if (available != size)
    return failSize(available);
  Array result;
  if (!allocateArray(type, shape, result, error))
    return false;
  size_t count;
  if (!readBytes(descriptor, result.data.data(), size, count)) {
    error = "cannot read: " + systemText(errno);
    return false;
  }
  // The file may have shrunk since it was measured.
  if (count != size)
    return failSize(count);

  if (type == ElementType::I1) {
    for (size_t i = 0; i < size; ++i) {
      unsigned char byte = static_cast<unsigned char>(result.data.data()[i]);
      if (byte > 1) {
        error = "expected bytes 0 and 1 in |b1 data, got " +
                std::to_string(byte) + " at index " + std::to_string(i);
        return false;
      }
    }
  }
  array = std::move(result);
  return true;
}

static bool readFile(const std::string &path, Array &array,
                     std::string &error) {
  auto fail = [&](const std::string &what) {
    error = path + ": " + what;
    return false;
  };
  // Not blocking, or a pipe without a writer would hang here; it has no effect
  // on regular files.
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status;
  if (file.descriptor < 0 || ::fstat(file.descriptor, &status) != 0)
    return fail("cannot open: " + systemText(errno));
  if (S_ISDIR(status.st_mode))
    return fail("cannot open: " + systemText(EISDIR));
  if (!S_ISREG(status.st_mode))
    return fail("cannot open: not a regular file");
  std::string what;
  if (!readArray(file.descriptor, static_cast<size_t>(status.st_size), array,
                 what))
    return fail(what);
  return true;
}

bool readNpy(const std::string &path, Array &array, std::string &error) {
  return orOutOfMemory(path, error,
                       [&] { return readFile(path, array, error); });
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

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
  case ElementType::I64:
    return "<i8";
  }
  assert(false && "unknown element type");
  return "";
}

static bool writeArray(int descriptor, const Array &array, std::string &error) {
  assert(computeByteSize(array.type, array.shape) ==
             static_cast<int64_t>(array.data.size()) &&
         "expected the data of the shape");

  std::string header =
      std::string("{'descr': '") + dtypeOf(array.type) +
      "', 'fortran_order': False, 'shape': " + tupleOf(array.shape) + ", }";
  // One byte for the newline that ends the header.
  size_t size = kPrefixSizeV1 + header.size() + 1;
  header.append((kDataAlignment - size % kDataAlignment) % kDataAlignment, ' ');
  header += '\n';
  if (header.size() > UINT16_MAX) {
    error = "expected a header of at most 65535 bytes, got " +
            std::to_string(header.size());
    return false;
  }
  std::string prefix(kMagic);
  prefix += {'\x01', '\x00', static_cast<char>(header.size() & 0xff),
             static_cast<char>(header.size() >> 8)};
  prefix += header;

  if (writeBytes(descriptor, prefix.data(), prefix.size()) &&
      writeBytes(descriptor, array.data.data(), array.data.size()))
    return true;
  error = systemText(errno);
  return false;
}

bool writeNpy(int descriptor, const Array &array, std::string &error) {
  return orOutOfMemory("", error,
                       [&] { return writeArray(descriptor, array, error); });
}

static bool writeFile(const std::string &path, const Array &array,
                      std::string &error) {
  std::string what;
  File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                   S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH));
  if (file.descriptor < 0)
    what = systemText(errno);
  else if (writeArray(file.descriptor, array, what) && file.close() != 0)
    what = systemText(errno);
  if (what.empty())
    return true;
  error = path + ": cannot write: " + what;
  return false;
}

bool writeNpy(const std::string &path, const Array &array, std::string &error) {
  return orOutOfMemory(path, error,
                       [&] { return writeFile(path, array, error); });
}

} // namespace bngrad
