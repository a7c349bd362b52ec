//===- NpyFile.h - a file for tests of npy ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_UNITTESTS_RUNTIME_NPYFILE_H
#define BNGRAD_UNITTESTS_RUNTIME_NPYFILE_H

#include "BNGrad/Reference/Npy.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>

namespace bngrad {

class NpyTest : public ::testing::Test {
protected:
  void TearDown() override { std::remove(path.c_str()); }

  void writeFile(const std::string &bytes) {
    // Some file systems flush a truncated file before it is written, which
    // would take most of the time of this test.
    std::remove(path.c_str());
    std::ofstream file(path, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(file.good());
  }
  std::string readFile() {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  /// The error of reading a file of `bytes`, without its name; "" on success.
  std::string errorOf(const std::string &bytes) {
    writeFile(bytes);
    std::string error;
    array = Array();
    if (readNpy(path, array, error))
      return "";
    std::string prefix = path + ": ";
    EXPECT_EQ(error.substr(0, prefix.size()), prefix);
    EXPECT_TRUE(array.shape.empty() && array.data.size() == 0)
        << "a failure must leave the array alone";
    return error.substr(prefix.size());
  }

  // The working directory may be read-only.
  const std::string path =
      std::filesystem::temp_directory_path() /
      ("bngrad_npy_test_" + std::to_string(::getpid()) + ".npy");
  Array array;
};

/// A file with the given header text, without padding.
inline std::string fileOf(const std::string &header, const std::string &data,
                          int major = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(major);
  file += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i)
    file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return file + header + data;
}

inline std::string headerOf(const std::string &descr, const std::string &shape,
                            const std::string &order = "False") {
  return "{'descr': " + descr + ", 'fortran_order': " + order +
         ", 'shape': " + shape + ", }\n";
}

inline void expectEqual(const Array &actual, const Array &expected) {
  EXPECT_EQ(actual.type, expected.type);
  EXPECT_EQ(actual.shape, expected.shape);
  ASSERT_EQ(actual.data.size(), expected.data.size());
  EXPECT_EQ(std::memcmp(actual.data.data(), expected.data.data(),
                        expected.data.size()),
            0);
}

} // namespace bngrad

#endif // BNGRAD_UNITTESTS_RUNTIME_NPYFILE_H
