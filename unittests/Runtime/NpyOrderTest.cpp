//===- NpyOrderTest.cpp - orders of elements and bytes in npy files -------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NpyFile.h"

#include <algorithm>
#include <utility>
#include <vector>

using namespace bngrad;

/// The bytes of `array` in the order of a file whose first dim is innermost.
static std::string inFortranOrder(const Array &array) {
  size_t width = byteSize(array.type);
  std::string result;
  std::vector<int64_t> index(array.shape.size());
  for (int64_t i = 0; i < array.numElements(); ++i) {
    int64_t number = 0;
    for (size_t dim = 0; dim < index.size(); ++dim)
      number = number * array.shape[dim] + index[dim];
    result.append(array.data.data() + number * width, width);
    for (size_t dim = 0; dim < index.size(); ++dim) {
      if (++index[dim] < array.shape[dim])
        break;
      index[dim] = 0;
    }
  }
  return result;
}

/// A value of its own for each of few elements.
static Array makeNumbers(ElementType type, const std::vector<int64_t> &shape) {
  Array array;
  std::string error;
  EXPECT_TRUE(allocateArray(type, shape, array, error)) << error;
  for (int64_t i = 0; i < array.numElements(); ++i)
    storeRounded(type, array.data.data(), i, double(i % 256));
  return array;
}

TEST_F(NpyTest, ReadsFortranOrder) {
  for (const std::vector<int64_t> &shape : std::vector<std::vector<int64_t>>{
           {}, {5}, {0, 3}, {3, 4}, {2, 3, 4}, {3, 1, 2, 5}}) {
    Array expected = makeNumbers(ElementType::F32, shape);
    std::string text = "(";
    for (int64_t extent : shape)
      text += std::to_string(extent) + ", ";
    // A file of rank 0 or 1 is in both orders.
    writeFile(fileOf(headerOf("'<f4'", text + ")", "True"),
                     inFortranOrder(expected)));
    std::string error;
    Array read;
    ASSERT_TRUE(readNpy(path, read, error)) << error;
    expectEqual(read, expected);
  }
}

TEST_F(NpyTest, ReadsBigEndian) {
  for (auto [type, descr] : {std::pair(ElementType::F16, "'>f2'"),
                             {ElementType::F32, "'>f4'"},
                             {ElementType::F64, "'>f8'"},
                             {ElementType::I64, "'>i8'"}}) {
    Array expected = makeNumbers(type, {3, 2});
    for (const char *order : {"False", "True"}) {
      std::string bytes = order[0] == 'T' ? inFortranOrder(expected)
                                          : std::string(expected.data.data(),
                                                        expected.data.size());
      for (size_t i = 0, width = byteSize(type); i < bytes.size(); i += width)
        std::reverse(bytes.begin() + i, bytes.begin() + i + width);
      writeFile(fileOf(headerOf(descr, "(3, 2)", order), bytes));
      std::string error;
      Array read;
      ASSERT_TRUE(readNpy(path, read, error)) << error;
      expectEqual(read, expected);
    }
  }
}

TEST_F(NpyTest, ReadsPartsOfFortranOrder) {
  Array whole = makeNumbers(ElementType::F64, {4, 3, 5});
  writeFile(
      fileOf(headerOf("'<f8'", "(4, 3, 5)", "True"), inFortranOrder(whole)));
  std::string error;
  Array part;
  ASSERT_TRUE(readNpyPart(path, {{1, 1, 2}, {2, 2, 3}}, part, error)) << error;
  ASSERT_EQ(part.shape, (std::vector<int64_t>{2, 2, 3}));
  for (int64_t i = 0; i < 12; ++i) {
    int64_t expected = 15 * (1 + i / 6) + 5 * (1 + i / 3 % 2) + 2 + i % 3;
    EXPECT_EQ(loadAsDouble(ElementType::F64, part.data.data(), i), expected);
  }
}

TEST_F(NpyTest, BooleansInFortranOrder) {
  EXPECT_EQ(errorOf(fileOf(headerOf("'|b1'", "(2, 2)", "True"),
                           std::string("\1\0\2\1", 4))),
            "expected bytes 0 and 1 in |b1 data, got 2 at index 1");
}
