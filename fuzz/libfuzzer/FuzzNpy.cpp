//===- FuzzNpy.cpp - npy files --------------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An array that is read, written and read again must not change. Half of the
// mutations change only the text of the header, and correct its length.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Reference/Npy.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using bngrad::Array;

[[noreturn]] static void reportFault(const char *what,
                                     const std::string &text = "") {
  std::fprintf(stderr, "bngrad-fuzz: fault: %s%s\n", what, text.c_str());
  std::abort();
}

namespace {
/// A file in memory.
class MemoryFile {
public:
  MemoryFile() : descriptor(memfd_create("npy", 0)) {
    if (descriptor < 0)
      std::exit(2);
  }
  ~MemoryFile() { close(descriptor); }
  void write(const uint8_t *data, size_t size) {
    while (size > 0) {
      ssize_t count = ::write(descriptor, data, size);
      if (count <= 0)
        std::exit(2);
      data += count, size -= count;
    }
  }
  std::string path() const {
    return "/proc/self/fd/" + std::to_string(descriptor);
  }

private:
  int descriptor;
};
} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MemoryFile file;
  file.write(data, size);
  Array array;
  array.shape = {-7};
  std::string error;
  if (!bngrad::readNpy(file.path(), array, error)) {
    if (array.shape != std::vector<int64_t>{-7})
      reportFault("an array was changed by a file that is not read");
    if (error.compare(0, file.path().size() + 2, file.path() + ": ") != 0 ||
        error.find('\n') != std::string::npos)
      reportFault("expected one line `<path>: <what>`, got ", error);
    return 0;
  }
  MemoryFile copy;
  Array again;
  if (!bngrad::writeNpy(copy.path(), array, error) ||
      !bngrad::readNpy(copy.path(), again, error))
    reportFault("an array that was read cannot be written and read: ", error);
  if (again.type != array.type || again.shape != array.shape ||
      again.data.size() != array.data.size() ||
      std::memcmp(again.data.data(), array.data.data(), array.data.size()) != 0)
    reportFault("the array differs after writing and reading it");
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

/// Pieces of headers.
static const char *const kPieces[] = {"'descr': '<f4'",
                                      "'descr': '<f2'",
                                      "'descr': '<V2'",
                                      "'descr': '|V2'",
                                      "'descr': '|b1'",
                                      "'descr': '<i8'",
                                      "'descr': '>f4'",
                                      "'descr': [('a', '<f4')]",
                                      "'fortran_order': False",
                                      "'fortran_order': True",
                                      "'shape': ()",
                                      "'shape': (3,)",
                                      "'shape': (0, 5)",
                                      "'shape': (9223372036854775807, 2)",
                                      "'shape': (4294967296, 4294967296)",
                                      "'shape': (-1,)",
                                      "{",
                                      "}",
                                      "(",
                                      ")",
                                      ", ",
                                      "\"",
                                      "'",
                                      "\\",
                                      "#",
                                      "\n",
                                      "None",
                                      "1L",
                                      "0x10",
                                      "1_000"};

static size_t changeHeader(uint8_t *data, size_t size, size_t maxSize,
                           unsigned seed) {
  size_t prefix = data[6] == 1 ? 10 : 12;
  if (size < prefix)
    return LLVMFuzzerMutate(data, size, maxSize);
  size_t length = data[8] | data[9] << 8;
  if (length > size - prefix || length > 4096)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string header(reinterpret_cast<char *>(data) + prefix, length);
  std::string rest(reinterpret_cast<char *>(data) + prefix + length,
                   size - prefix - length);
  const char *piece = kPieces[seed / 4 % (sizeof(kPieces) / sizeof(*kPieces))];
  size_t at = header.empty() ? 0 : seed / 128 % header.size();
  if (seed % 4 == 0)
    header.insert(at, piece);
  else if (seed % 4 == 1)
    header.replace(at, std::strlen(piece), piece);
  else {
    header.resize(length + 64);
    header.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t *>(&header[0]),
                                   length, header.size()));
  }
  std::string whole(reinterpret_cast<char *>(data), prefix);
  whole[8] = char(header.size()), whole[9] = char(header.size() >> 8);
  whole += header + rest;
  size = whole.size() < maxSize ? whole.size() : maxSize;
  std::memcpy(data, whole.data(), size);
  return size;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  if (seed % 2 && size > 12)
    return changeHeader(data, size, maxSize, seed / 2);
  return LLVMFuzzerMutate(data, size, maxSize);
}
