//===- Npy.cpp - read and write npy files -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Reference/Npy.h"
#include "NpyHeader.h"
#include "OutOfMemory.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/mman.h>
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
  /// Closes the file now; false if that fails.
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
/// `size` is the size of the file. `dataBegin` is where the elements begin.
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

namespace {
/// An array in a file, and where the elements begin.
struct FileArray : NpyLayout {
  /// The position in the file of element `i` in row-major order.
  int64_t locate(int64_t i) const;

  size_t dataBegin = 0, size = 0;
};
} // namespace

int64_t FileArray::locate(int64_t i) const {
  if (!isFortranOrder)
    return i;
  int64_t stride = 1, result = 0;
  for (size_t dim = 0; dim + 1 < shape.size(); ++dim)
    stride *= shape[dim];
  for (size_t dim = shape.size(); dim-- > 0;) {
    result += i % shape[dim] * stride;
    i /= shape[dim];
    if (dim > 0)
      stride /= shape[dim - 1];
  }
  return result;
}

static std::string describeSize(const FileArray &array, size_t got) {
  return "expected " + std::to_string(array.size) +
         " bytes of data for shape " + printable(tupleOf(array.shape)) +
         " of " + name(array.type) + ", got " + std::to_string(got);
}

/// Finds the array of a file of `fileSize` bytes.
static bool findArray(int descriptor, size_t fileSize, FileArray &array,
                      std::string &error) {
  std::string text;
  if (!readHeader(descriptor, fileSize, text, array.dataBegin, error) ||
      !interpretHeader(text, array, error))
    return false;
  array.size = static_cast<size_t>(*computeByteSize(array.type, array.shape));
  // Check before allocating: a header may claim any size.
  size_t available =
      fileSize > array.dataBegin ? fileSize - array.dataBegin : 0;
  if (available == array.size)
    return true;
  error = describeSize(array, available);
  return false;
}

/// Checks bytes of an i1 array; the first one is element `begin`.
static bool verifyBytes(const char *data, size_t size, size_t begin,
                        std::string &error) {
  for (size_t i = 0; i < size; ++i) {
    unsigned char byte = static_cast<unsigned char>(data[i]);
    if (byte > 1) {
      error = "expected bytes 0 and 1 in |b1 data, got " +
              std::to_string(byte) + " at index " + std::to_string(begin + i);
      return false;
    }
  }
  return true;
}

/// Copies the elements of `part` from `elements`, which holds the whole file's,
/// into `array`, which has the shape of the part.
static bool copyElements(const FileArray &found, const char *elements,
                         const ArrayPart &part, Array &array,
                         std::string &error) {
  auto width = static_cast<int64_t>(byteSize(found.type));
  bool isValid = true;
  visitRuns(found.shape, part,
            [&](int64_t whole, int64_t inPart, int64_t length) {
              char *to = array.data.data() + inPart * width;
              // The elements of a run are adjacent in a row-major file.
              int64_t step = found.isFortranOrder ? 1 : length;
              for (int64_t i = 0; i < length; i += step)
                std::memcpy(to + i * width,
                            elements + found.locate(whole + i) * width,
                            static_cast<size_t>(step * width));
              if (isValid && found.type == ElementType::I1)
                isValid = verifyBytes(to, static_cast<size_t>(length),
                                      static_cast<size_t>(whole), error);
            });
  if (found.isBigEndian)
    for (size_t i = 0; i < array.data.size(); i += width)
      std::reverse(array.data.data() + i, array.data.data() + i + width);
  return isValid;
}

static bool readArray(int descriptor, size_t fileSize, Array &array,
                      std::string &error) {
  FileArray found;
  Array inFile, result;
  if (!findArray(descriptor, fileSize, found, error) ||
      !allocateArray(found.type, found.shape, inFile, error))
    return false;
  size_t count;
  if (!readBytes(descriptor, inFile.data.data(), found.size, count)) {
    error = "cannot read: " + systemText(errno);
    return false;
  }
  // The file may have shrunk since it was measured.
  if (count != found.size) {
    error = describeSize(found, count);
    return false;
  }
  if (!found.isFortranOrder && !found.isBigEndian) {
    if (found.type == ElementType::I1 &&
        !verifyBytes(inFile.data.data(), found.size, 0, error))
      return false;
    array = std::move(inFile);
    return true;
  }
  ArrayPart all = {std::vector<int64_t>(found.shape.size()), found.shape};
  if (!allocateArray(found.type, found.shape, result, error) ||
      !copyElements(found, inFile.data.data(), all, result, error))
    return false;
  array = std::move(result);
  return true;
}

/// Calls `read` with a descriptor of the file and its size.
template <typename Read>
static bool readFile(const std::string &path, std::string &error, Read read) {
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
  if (!read(file.descriptor, static_cast<size_t>(status.st_size), what))
    return fail(what);
  return true;
}

bool readNpy(const std::string &path, Array &array, std::string &error) {
  return orOutOfMemory(path, error, [&] {
    return readFile(path, error,
                    [&](int descriptor, size_t size, std::string &what) {
                      return readArray(descriptor, size, array, what);
                    });
  });
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// All bytes before the elements.
static bool makePrefix(ElementType type, const std::vector<int64_t> &shape,
                       std::string &prefix, std::string &error) {
  std::string header = printHeader(type, shape);
  // One byte for the newline that ends the header.
  size_t size = kPrefixSizeV1 + header.size() + 1;
  header.append((kDataAlignment - size % kDataAlignment) % kDataAlignment, ' ');
  header += '\n';
  if (header.size() > UINT16_MAX) {
    error = "expected a header of at most 65535 bytes, got " +
            std::to_string(header.size());
    return false;
  }
  prefix = kMagic;
  prefix += {'\x01', '\x00', static_cast<char>(header.size() & 0xff),
             static_cast<char>(header.size() >> 8)};
  prefix += header;
  return true;
}

static bool writeArray(int descriptor, const Array &array, std::string &error) {
  assert(computeByteSize(array.type, array.shape) ==
             static_cast<int64_t>(array.data.size()) &&
         "expected the data of the shape");

  std::string prefix;
  if (!makePrefix(array.type, array.shape, prefix, error))
    return false;
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

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

void visitRuns(const std::vector<int64_t> &shape, const ArrayPart &part,
               const std::function<void(int64_t whole, int64_t inPart,
                                        int64_t length)> &visit) {
  // Inner dims that the part covers fully form one run with the next dim.
  int64_t length = 1;
  size_t outer = shape.size();
  while (outer > 0 && part.shape[outer - 1] == shape[outer - 1])
    length *= shape[--outer];
  int64_t numRuns = 1, stride = length;
  if (outer > 0) {
    --outer;
    length *= part.shape[outer];
    stride *= shape[outer];
  }
  for (size_t dim = 0; dim < outer; ++dim)
    numRuns *= part.shape[dim];
  if (length == 0 || numRuns == 0)
    return;
  int64_t first =
      outer < shape.size() ? part.begin[outer] * (stride / shape[outer]) : 0;
  for (int64_t run = 0; run < numRuns; ++run) {
    int64_t whole = first, rest = run, dimStride = stride;
    for (size_t dim = outer; dim-- > 0;) {
      whole += (part.begin[dim] + rest % part.shape[dim]) * dimStride;
      rest /= part.shape[dim];
      dimStride *= shape[dim];
    }
    visit(whole, run * length, length);
  }
}

bool readNpyHeader(const std::string &path, ElementType &type,
                   std::vector<int64_t> &shape, std::string &error) {
  return orOutOfMemory(path, error, [&] {
    FileArray array;
    if (!readFile(path, error,
                  [&](int descriptor, size_t size, std::string &what) {
                    return findArray(descriptor, size, array, what);
                  }))
      return false;
    type = array.type;
    shape = std::move(array.shape);
    return true;
  });
}

static bool readPart(int descriptor, size_t fileSize, const ArrayPart &part,
                     Array &array, std::string &error) {
  FileArray found;
  Array result;
  if (!findArray(descriptor, fileSize, found, error) ||
      !allocateArray(found.type, part.shape, result, error))
    return false;
  if (result.data.size() == 0) {
    array = std::move(result);
    return true;
  }
  void *mapped =
      ::mmap(nullptr, fileSize, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (mapped == MAP_FAILED) {
    error = "cannot map: " + systemText(errno);
    return false;
  }
  bool isValid =
      copyElements(found, static_cast<const char *>(mapped) + found.dataBegin,
                   part, result, error);
  ::munmap(mapped, fileSize);
  if (isValid)
    array = std::move(result);
  return isValid;
}

bool readNpyPart(const std::string &path, const ArrayPart &part, Array &array,
                 std::string &error) {
  return orOutOfMemory(path, error, [&] {
    return readFile(path, error,
                    [&](int descriptor, size_t size, std::string &what) {
                      return readPart(descriptor, size, part, array, what);
                    });
  });
}

bool writeNpyHeader(int descriptor, ElementType type,
                    const std::vector<int64_t> &shape, std::string &error) {
  return orOutOfMemory("", error, [&] {
    std::string prefix;
    if (!makePrefix(type, shape, prefix, error))
      return false;
    auto size = static_cast<off_t>(prefix.size()) +
                static_cast<off_t>(*computeByteSize(type, shape));
    if (writeBytes(descriptor, prefix.data(), prefix.size()) &&
        ::ftruncate(descriptor, size) == 0)
      return true;
    error = systemText(errno);
    return false;
  });
}

/// False with `errno` set on an error.
static bool writeBytesAt(int descriptor, const char *data, size_t size,
                         off_t offset) {
  while (size != 0) {
    ssize_t count =
        ::pwrite(descriptor, data, std::min(size, kMaxTransfer), offset);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return false;
    data += count;
    offset += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

bool writeNpyPart(int descriptor, const std::vector<int64_t> &shape,
                  const ArrayPart &part, const Array &array,
                  std::string &error) {
  return orOutOfMemory("", error, [&] {
    std::string prefix;
    if (!makePrefix(array.type, shape, prefix, error))
      return false;
    auto width = static_cast<int64_t>(byteSize(array.type));
    bool isWritten = true;
    visitRuns(shape, part, [&](int64_t whole, int64_t inPart, int64_t length) {
      isWritten =
          isWritten &&
          writeBytesAt(descriptor, array.data.data() + inPart * width,
                       static_cast<size_t>(length * width),
                       static_cast<off_t>(prefix.size()) + whole * width);
    });
    if (!isWritten)
      error = systemText(errno);
    return isWritten;
  });
}

} // namespace bngrad
