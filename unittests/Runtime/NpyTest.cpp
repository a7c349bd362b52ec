//===- NpyTest.cpp - npy files, good and bad --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FailingNew.h"
#include "NpyFile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace bngrad;

static Array makeArray(ElementType type, const std::vector<int64_t> &shape) {
  Array array;
  std::string error;
  EXPECT_TRUE(allocateArray(type, shape, array, error)) << error;
  for (int64_t i = 0; i < array.numElements(); ++i)
    storeRounded(type, array.data.data(), i, 0.75 * double(i % 7) - 1.5);
  return array;
}

TEST_F(NpyTest, RoundTrips) {
  const std::vector<int64_t> kShapes[] = {
      {}, {0}, {1}, {5}, {3, 4}, {2, 0, 3}, {2, 3, 1, 5}, {100, 1000}};
  for (ElementType type : kElementTypes) {
    for (const std::vector<int64_t> &shape : kShapes) {
      Array written = makeArray(type, shape);
      std::string error;
      ASSERT_TRUE(writeNpy(path, written, error)) << error;
      Array read;
      ASSERT_TRUE(readNpy(path, read, error)) << error;
      expectEqual(read, written);
      EXPECT_NE(read.data.data(), nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(read.data.data()) % 64, 0u);
    }
  }
}

TEST_F(NpyTest, KeepsSpecialValues) {
  Array written = makeArray(ElementType::BF16, {3});
  storeRounded(ElementType::BF16, written.data.data(), 0, -0.0);
  storeRounded(ElementType::BF16, written.data.data(), 1, HUGE_VAL);
  storeRounded(ElementType::BF16, written.data.data(), 2, std::nan(""));
  std::string error;
  ASSERT_TRUE(writeNpy(path, written, error)) << error;
  ASSERT_TRUE(readNpy(path, array, error)) << error;
  expectEqual(array, written);
}

/// The bytes that numpy.save writes for the same arrays (except `|V2` for
/// bf16).
TEST_F(NpyTest, WritesWhatNumpyWrites) {
  struct {
    ElementType type;
    std::vector<int64_t> shape;
    const char *header;
  } const kCases[] = {
      {ElementType::F32,
       {2, 3},
       "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"},
      {ElementType::F16,
       {7},
       "{'descr': '<f2', 'fortran_order': False, 'shape': (7,), }"},
      {ElementType::F64,
       {},
       "{'descr': '<f8', 'fortran_order': False, 'shape': (), }"},
      {ElementType::I1,
       {0, 4},
       "{'descr': '|b1', 'fortran_order': False, 'shape': (0, 4), }"},
      {ElementType::I64,
       {1},
       "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }"},
      {ElementType::BF16,
       {2, 1, 2},
       "{'descr': '<V2', 'fortran_order': False, 'shape': (2, 1, 2), }"}};
  for (const auto &testCase : kCases) {
    Array written = makeArray(testCase.type, testCase.shape);
    std::string error;
    ASSERT_TRUE(writeNpy(path, written, error)) << error;
    std::string header = testCase.header;
    header.resize(117, ' ');
    header += '\n';
    std::string expected =
        fileOf(header, std::string(written.data.data(), written.data.size()));
    EXPECT_EQ(readFile(), expected);
  }
}

TEST_F(NpyTest, AlignsDataAfterALongHeader) {
  std::vector<int64_t> shape(64, 1);
  shape[3] = 5;
  Array written = makeArray(ElementType::F32, shape);
  std::string error;
  ASSERT_TRUE(writeNpy(path, written, error)) << error;
  EXPECT_EQ((readFile().size() - written.data.size()) % 64, 0u);
  ASSERT_TRUE(readNpy(path, array, error)) << error;
  expectEqual(array, written);
}

TEST_F(NpyTest, ReadsEveryVersion) {
  for (int major : {1, 2, 3}) {
    ASSERT_EQ(errorOf(fileOf(headerOf("'|b1'", "(2,)"), {"\1\0", 2}, major)),
              "");
    EXPECT_EQ(array.type, ElementType::I1);
    EXPECT_EQ(array.data.data()[0], 1);
    EXPECT_EQ(array.data.data()[1], 0);
  }
}

TEST_F(NpyTest, ReadsBothSpellingsOfBF16) {
  for (const char *descr : {"'<V2'", "'|V2'"}) {
    ASSERT_EQ(errorOf(fileOf(headerOf(descr, "()"), "\x80\x3f")), "");
    EXPECT_EQ(array.type, ElementType::BF16);
    EXPECT_EQ(loadAsDouble(ElementType::BF16, array.data.data(), 0), 1);
  }
}

TEST_F(NpyTest, ReadsAnyLayoutOfTheHeader) {
  const char *kHeaders[] = {
      "{'descr':'<f2','fortran_order':False,'shape':(2,1)}",
      "{'shape': (2, 1), 'fortran_order': False, 'descr': '<f2'}\n",
      "{ \"shape\" :\t( 2 , 1 ,) ,\"fortran_order\":False,'descr' :'<f2' , }",
      "\n{\n'descr':\n'<f2',\r\n'shape':(\n2,\n1),'fortran_order':False\n}\n"};
  for (const char *header : kHeaders) {
    EXPECT_EQ(errorOf(fileOf(header, "abcd")), "") << header;
    EXPECT_EQ(array.type, ElementType::F16);
    EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 1}));
  }
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST_F(NpyTest, CannotOpen) {
  std::string error;
  EXPECT_FALSE(readNpy("no_such_file.npy", array, error));
  EXPECT_EQ(error, "no_such_file.npy: cannot open: No such file or directory");
  EXPECT_FALSE(readNpy(".", array, error));
  EXPECT_EQ(error, ".: cannot open: Is a directory");
  writeFile("x");
  EXPECT_FALSE(readNpy(path + "/y.npy", array, error));
  EXPECT_EQ(error, path + "/y.npy: cannot open: Not a directory");
  // A pipe without a writer must not block.
  std::remove(path.c_str());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(readNpy(path, array, error));
  EXPECT_EQ(error, path + ": cannot open: not a regular file");
}

TEST_F(NpyTest, CannotWrite) {
  Array written = makeArray(ElementType::F32, {2});
  std::string error;
  EXPECT_FALSE(writeNpy("no_such_directory/x.npy", written, error));
  EXPECT_EQ(error,
            "no_such_directory/x.npy: cannot write: No such file or directory");
  EXPECT_FALSE(writeNpy(".", written, error));
  EXPECT_EQ(error, ".: cannot write: Is a directory");
  EXPECT_FALSE(writeNpy("/dev/full", written, error));
  EXPECT_EQ(error, "/dev/full: cannot write: No space left on device");
  // Only the header.
  written = makeArray(ElementType::F32, {0});
  EXPECT_FALSE(writeNpy("/dev/full", written, error));
  EXPECT_EQ(error, "/dev/full: cannot write: No space left on device");
  written = makeArray(ElementType::F32, std::vector<int64_t>(30000, 1));
  EXPECT_FALSE(writeNpy(path, written, error));
  EXPECT_EQ(error, path + ": cannot write: expected a header of at most 65535 "
                          "bytes, got 90102");
}

/// The header still fits, the data does not.
TEST_F(NpyTest, CannotWriteAll) {
  Array written = makeArray(ElementType::F64, {100});
  struct rlimit old;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  struct rlimit limit = old;
  limit.rlim_cur = 500;
  auto *oldHandler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::string error;
  bool ok = writeNpy(path, written, error);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, oldHandler);
  EXPECT_FALSE(ok);
  EXPECT_EQ(error, path + ": cannot write: File too large");
  EXPECT_EQ(readFile().size(), 500u);
}

TEST_F(NpyTest, NotNpy) {
  EXPECT_EQ(errorOf("PK\3\4 this is an npz"),
            "expected an npy file, which begins with '\\x93NUMPY', got "
            "'PK\\x03\\x04 t'");
  EXPECT_EQ(errorOf("1 2"), "expected an npy file, which begins with "
                            "'\\x93NUMPY', got '1 2'");
  EXPECT_EQ(errorOf(""), "expected an npy file of at least 10 bytes, got 0");
  std::string file = fileOf(headerOf("'<f4'", "()"), "abcd", 2);
  EXPECT_EQ(errorOf(file.substr(0, 9)),
            "expected an npy file of at least 10 bytes, got 9");
  EXPECT_EQ(errorOf(file.substr(0, 11)),
            "expected an npy file of at least 12 bytes, got 11");
  EXPECT_EQ(errorOf(fileOf("", "", 4)),
            "expected npy version 1.0, 2.0 or 3.0, got 4.0");
  file[7] = 5;
  EXPECT_EQ(errorOf(file), "expected npy version 1.0, 2.0 or 3.0, got 2.5");
}

TEST_F(NpyTest, HeaderIsTruncated) {
  std::string file = fileOf(headerOf("'<f4'", "(1,)"), "");
  EXPECT_EQ(errorOf(file.substr(0, 30)),
            "expected a header of 58 bytes, got 20");
  EXPECT_EQ(errorOf("\x93NUMPY\2" + std::string("\0\xff\xff\xff\xff{}", 7)),
            "expected a header of 4294967295 bytes, got 2");
}

TEST_F(NpyTest, Dtype) {
  const std::string kExpected =
      "expected dtype f2, f4, f8, i2, i4, i8, u2, u4 or u8 after < or >, |b1, "
      "|i1, |u1 or <V2 (bf16), got ";
  for (const char *descr :
       {"'<c16'", "'>V2'", "'=f4'", "'f4'", "'|u4'", "'<i1'", "'<V4'", "'|b2'",
        "'<f4 '", "'|O'", "''", "\"<U3\"", "[('a', '<f4'), ('b', '<f8', (2,))]",
        "('<f4', (2,))", "'a\\'b'", "{'names': ['}']}", "None", "4"})
    EXPECT_EQ(errorOf(fileOf(headerOf(descr, "(1,)"), "abcd")),
              kExpected + descr);
  EXPECT_EQ(errorOf(fileOf(headerOf("'\n\x7f'", "()"), "")),
            kExpected + "'\\x0a\\x7f'");
  EXPECT_EQ(
      errorOf(fileOf(headerOf("'" + std::string(999, 'a') + "'", "()"), "")),
      kExpected + "'" + std::string(199, 'a') + "...");
}

TEST_F(NpyTest, FortranOrder) {
  for (const char *order : {"true", "0", "'False'", "(False)"})
    EXPECT_EQ(errorOf(fileOf(headerOf("'<f4'", "(1, 1)", order), "abcd")),
              std::string("expected fortran_order True or False, got ") +
                  order);
}

TEST_F(NpyTest, Shape) {
  for (const char *shape :
       {"(3)", "[3, 4]", "3", "(,)", "(1, , 2)", "(1 2)", "(-1, 3)", "(+1,)",
        "(1.0,)", "(0x3,)", "(03,)", "(3L,)", "('3',)", "((3,),)", "(None,)",
        "(9223372036854775808,)", "(99999999999999999999999,)"})
    EXPECT_EQ(
        errorOf(fileOf(headerOf("'<f4'", shape), "abcd")),
        std::string("expected shape to be a tuple of integers in [0, 2^63), ") +
            "got " + shape);
  for (const char *shape :
       {"(4611686018427387904, 4)", "(2305843009213693952,)",
        "(0, 4294967296, 4294967296)"})
    EXPECT_EQ(
        errorOf(fileOf(headerOf("'<f4'", shape), "abcd")),
        std::string("expected shape to have fewer than 2^63 bytes, got ") +
            shape + " of f32");
}

TEST_F(NpyTest, DataOfTheWrongSize) {
  std::string header = headerOf("'<f4'", "(10, 10)");
  EXPECT_EQ(errorOf(fileOf(header, std::string(396, 'x'))),
            "expected 400 bytes of data for shape (10, 10) of f32, got 396");
  EXPECT_EQ(errorOf(fileOf(header, std::string(401, 'x'))),
            "expected 400 bytes of data for shape (10, 10) of f32, got 401");
  EXPECT_EQ(errorOf(fileOf(headerOf("'<f8'", "()"), "")),
            "expected 8 bytes of data for shape () of f64, got 0");
  EXPECT_EQ(errorOf(fileOf(headerOf("'<V2'", "(0,)"), "z")),
            "expected 0 bytes of data for shape (0,) of bf16, got 1");
  // Must not be allocated.
  EXPECT_EQ(errorOf(fileOf(headerOf("'<i8'", "(1152921504606846975,)"), "abc")),
            "expected 9223372036854775800 bytes of data for shape "
            "(1152921504606846975,) of i64, got 3");
}

TEST_F(NpyTest, BooleanByte) {
  EXPECT_EQ(errorOf(fileOf(headerOf("'|b1'", "(2, 3)"), {"\0\1\1\0\2\3", 6})),
            "expected bytes 0 and 1 in |b1 data, got 2 at index 4");
  EXPECT_EQ(errorOf(fileOf(headerOf("'|b1'", "(1,)"), "\xff")),
            "expected bytes 0 and 1 in |b1 data, got 255 at index 0");
}

TEST_F(NpyTest, Keys) {
  const std::string kExpected =
      "expected keys 'descr', 'fortran_order' and 'shape', got ";
  auto errorOfHeader = [&](const char *header) {
    return errorOf(fileOf(header, ""));
  };
  EXPECT_EQ(errorOfHeader("{}"), kExpected + "no 'descr'");
  EXPECT_EQ(errorOfHeader("{'descr': '<f4', 'shape': ()}"),
            kExpected + "no 'fortran_order'");
  EXPECT_EQ(errorOfHeader("{'fortran_order': False, 'descr': '<f4'}"),
            kExpected + "no 'shape'");
  EXPECT_EQ(errorOfHeader("{'descr': '<f4', 'Shape': ()}"),
            kExpected + "'Shape'");
  EXPECT_EQ(errorOfHeader("{'shape': (), 'descr': '<f4', 'shape': ()}"),
            kExpected + "two of 'shape'");
}

TEST_F(NpyTest, HeaderSyntax) {
  struct {
    const char *header, *error;
  } const kCases[] = {
      {"", "'{' at byte 0 of the header, got its end"},
      {"['descr']", "'{' at byte 0 of the header, got '['"},
      {"{", "a string at byte 1 of the header, got its end"},
      {"{descr: 1}", "a string at byte 1 of the header, got 'd'"},
      {"{'descr",
       "the string to end in ' at byte 7 of the header, got its end"},
      {"{'descr\\",
       "the string to end in ' at byte 8 of the header, got its end"},
      {"{'descr' '<f4'}", "':' at byte 9 of the header, got '''"},
      {"{'descr': , }", "a value at byte 10 of the header, got ','"},
      {"{'descr': }", "a value at byte 10 of the header, got '}'"},
      {"{'descr':", "a value at byte 9 of the header, got its end"},
      {"{'descr': ", "a value at byte 10 of the header, got its end"},
      {"{'descr': '<f4' 'x'}", "',' or '}' at byte 16 of the header, got '''"},
      {"{'descr': '<f4'", "',' or '}' at byte 15 of the header, got its end"},
      {"{'descr': '<f4',, }", "a string at byte 16 of the header, got ','"},
      {"{,}", "a string at byte 1 of the header, got ','"},
      {"{'shape': (1, 2", "')' at byte 15 of the header, got its end"},
      {"{'shape': (1, 2], }", "')' at byte 15 of the header, got ']'"},
      {"{'shape': ([}), }", "']' at byte 12 of the header, got '}'"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x",
       "nothing after '}' at byte 54 of the header, got 'x'"}};
  for (const auto &testCase : kCases)
    EXPECT_EQ(errorOf(fileOf(testCase.header, "")),
              std::string("expected ") + testCase.error);
  // As deep as a header may be: no recursion.
  std::string deep = headerOf("'<f4'", std::string(60000, '('));
  EXPECT_EQ(errorOf(fileOf(deep, "")),
            "expected ')' at byte 60052 of the header, got '}'");
}

/// Randomly damaged files are read, or rejected with one line. An array that is
/// read must agree with its bytes.
TEST_F(NpyTest, SurvivesDamage) {
  std::mt19937 random(20240607);
  auto below = [&](size_t limit) { return random() % limit; };
  std::vector<std::string> files;
  for (ElementType type : kElementTypes) {
    for (const std::vector<int64_t> &shape :
         {std::vector<int64_t>{}, {3}, {20, 5}, {4, 0}}) {
      std::string error;
      ASSERT_TRUE(writeNpy(path, makeArray(type, shape), error)) << error;
      files.push_back(readFile());
    }
  }
  const char kLikely[] = "{}()[],:'\"\\ \n\t0123456789-+<>=|TFfViDL";
  int numRead = 0, numRefused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string file = files[below(files.size())];
    for (size_t edits = 1 + below(2); edits != 0; --edits) {
      // Half of them in the first 80 bytes, before the padding of the header.
      size_t at = below(below(2) == 0 ? file.size() : 80) % file.size();
      size_t kind = below(10);
      if (kind < 4)
        file[at] ^= static_cast<char>(1 << below(8));
      else if (kind < 7)
        file[at] = kLikely[below(sizeof(kLikely) - 1)];
      else if (kind == 7)
        file.insert(at, 1, kLikely[below(sizeof(kLikely) - 1)]);
      else if (kind == 8)
        file.erase(at, 1 + below(4));
      else
        file.resize(1 + below(file.size() + 8), 'x');
      if (file.empty())
        file = "x";
    }
    std::string error = errorOf(file);
    if (HasFatalFailure())
      return;
    if (!error.empty()) {
      ++numRefused;
      ASSERT_EQ(error.find('\n'), std::string::npos) << error;
      continue;
    }
    ++numRead;
    ASSERT_EQ(static_cast<int64_t>(array.data.size()),
              computeByteSize(array.type, array.shape));
    // A damaged header may have another order of elements or bytes.
    std::string inFile = file.substr(file.size() - array.data.size());
    std::string read(array.data.data(), array.data.size());
    std::sort(inFile.begin(), inFile.end());
    std::sort(read.begin(), read.end());
    ASSERT_EQ(inFile, read);
  }
  // Both outcomes must have been exercised.
  EXPECT_GT(numRead, 150);
  EXPECT_GT(numRefused, 500);
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

TEST(ArrayTest, ByteSize) {
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(computeByteSize(ElementType::F64, Shape{}), 8);
  EXPECT_EQ(computeByteSize(ElementType::BF16, Shape{3, 5, 7}), 210);
  EXPECT_EQ(computeByteSize(ElementType::F32, Shape{3, 0, 7}), 0);
  EXPECT_EQ(computeByteSize(ElementType::I1, Shape{INT64_MAX}), INT64_MAX);
  EXPECT_EQ(computeByteSize(ElementType::F16, Shape{INT64_MAX}), std::nullopt);
  EXPECT_EQ(computeByteSize(ElementType::F32, Shape{-1, 2}), std::nullopt);
  EXPECT_EQ(computeByteSize(ElementType::F32, Shape{0, -2}), std::nullopt);
  EXPECT_EQ(computeByteSize(ElementType::I1, Shape{0, INT64_MAX, 2}),
            std::nullopt);
}

TEST(ArrayTest, AllocatesAlignedAndMoves) {
  Array array;
  std::string error;
  ASSERT_TRUE(allocateArray(ElementType::F16, {3, 5}, array, error));
  EXPECT_EQ(array.numElements(), 15);
  EXPECT_EQ(array.data.size(), 30u);
  const char *data = array.data.data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % AlignedBuffer::kAlignment, 0u);
  Array moved = std::move(array);
  EXPECT_EQ(moved.data.data(), data);
  ASSERT_TRUE(allocateArray(ElementType::F16, {0}, moved, error));
  EXPECT_EQ(moved.data.size(), 0u);
  EXPECT_NE(moved.data.data(), nullptr);

  EXPECT_FALSE(allocateArray(ElementType::F32, {2, -1}, moved, error));
  EXPECT_EQ(error, "expected extents >= 0 and a size below 2^63 bytes");
  EXPECT_EQ(moved.shape, std::vector<int64_t>{0});
}

/// Lets each allocation of `call` fail, which must be an error and no more, and
/// then each with all that follow it.
static void expectOutOfMemory(const std::string &line,
                              const std::function<bool(std::string &)> &call) {
  for (bool forever : {false, true}) {
    for (long number = 1;; ++number) {
      SCOPED_TRACE("allocation " + std::to_string(number));
      bool isDone = true;
      std::string error;
      FailedNew failed =
          callWithFailingNew(number, forever, [&] { isDone = call(error); });
      EXPECT_EQ(isDone, !failed.hasFailed);
      if (!failed.hasFailed) {
        EXPECT_EQ(error, "");
        EXPECT_GT(number, 1) << "nothing was allocated";
        break;
      }
      EXPECT_EQ(error, forever ? "out of memory" : line);
      EXPECT_LE(failed.numLive, forever ? 0 : 1) << "the line alone";
    }
  }
}

TEST_F(NpyTest, OutOfMemory) {
  Array written = makeArray(ElementType::F32, {3, 5});
  std::string line = path + ": out of memory";
  expectOutOfMemory(
      line, [&](std::string &error) { return writeNpy(path, written, error); });
  expectOutOfMemory(line, [&](std::string &error) {
    // Gone when the call ends, as blocks are counted.
    Array read;
    bool isRead = readNpy(path, read, error);
    EXPECT_EQ(read.data.size(), isRead ? 60u : 0u);
    return isRead;
  });
  std::vector<int64_t> shape = {3, 5};
  expectOutOfMemory("out of memory", [&](std::string &error) {
    Array array;
    bool isDone = allocateArray(ElementType::F64, shape, array, error);
    EXPECT_EQ(array.type, isDone ? ElementType::F64 : ElementType::F32);
    EXPECT_EQ(array.shape.size(), isDone ? 2u : 0u);
    return isDone;
  });
  std::remove(path.c_str());
}
