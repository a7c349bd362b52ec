//===- Npy.cpp - read and write npy files -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Runtime/Npy.h"
#include "NpyHeader.h"
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
  /// Closes now; the result tells whether that succeeded.
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

static bool writeArray(int descriptor, const Array &array, std::string &error) {
  assert(computeByteSize(array.type, array.shape) ==
             static_cast<int64_t>(array.data.size()) &&
         "expected the data of the shape");

  std::string header = printHeader(array.type, array.shape);
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
  auto fail = [&](const std::string &reason) {
    error = path + ": cannot write: " + reason;
    return false;
  };
  File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                   S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH));
  if (file.descriptor < 0)
    return fail(systemText(errno));
  std::string reason;
  if (!writeArray(file.descriptor, array, reason))
    return fail(reason);
  if (file.close() != 0)
    return fail(systemText(errno));
  return true;
}

bool writeNpy(const std::string &path, const Array &array, std::string &error) {
  return orOutOfMemory(path, error,
                       [&] { return writeFile(path, array, error); });
}

} // namespace bngrad
