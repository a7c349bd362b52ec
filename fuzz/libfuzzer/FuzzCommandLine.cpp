//===- FuzzCommandLine.cpp - command lines of a tool ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An input has one argument per line. The tool's main runs in the process, in a
// scratch directory with the files of BNGRAD_FUZZ_FILES. Skipped are inputs
// with a path elsewhere, and those that may take long (large arrays, many
// runs).
//
//===----------------------------------------------------------------------===//

#include "IrMutator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

using namespace bngrad::fuzz;
using Strings = std::vector<std::string>;

/// The main function of the tool under test.
int toolMain(int argc, char **argv);

static Strings splitLines(const std::string &text) {
  Strings lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  const char *files = std::getenv("BNGRAD_FUZZ_FILES");
  if (!files || chdir(files) != 0) {
    std::fprintf(stderr, "expected BNGRAD_FUZZ_FILES to be a directory\n");
    std::exit(2);
  }
  return 0;
}

/// Numbers of more than four digits are sizes, threads or runs.
static bool isBounded(const std::string &argument) {
  size_t digits = 0;
  bool mayBeLarge = argument.compare(0, 6, "random") == 0 ||
                    argument.find("--arg") == 0 ||
                    argument.find("benchmark") != std::string::npos ||
                    argument.find("threads") != std::string::npos;
  size_t at = argument.find('@');
  for (size_t i = 0; i < argument.size(); ++i) {
    digits = argument[i] >= '0' && argument[i] <= '9' ? digits + 1 : 0;
    if (mayBeLarge && digits > 2 && (at == std::string::npos || i > at))
      return false;
  }
  return true;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Strings arguments =
      splitLines(std::string(reinterpret_cast<const char *>(data), size));
  if (arguments.size() > 24)
    return -1;
  std::vector<char *> argv;
  static char name[] = "tool";
  argv.push_back(name);
  for (std::string &argument : arguments) {
    // A path elsewhere, standard input, or an invalid argument.
    if (argument.find('/') != std::string::npos || !isBounded(argument) ||
        argument.find('\0') != std::string::npos || argument == "-")
      return -1;
    argv.push_back(&argument[0]);
  }
  argv.push_back(nullptr);
  int status = toolMain(argv.size() - 1, argv.data());
  if (status != 0 && status != 1) {
    std::fprintf(stderr, "bngrad-fuzz: fault: expected 0 or 1, got %d\n",
                 status);
    std::abort();
  }
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

static const Strings kArguments = {
    "f.mlir",
    "two.mlir",
    "dynamic.mlir",
    "bad.mlir",
    "none.mlir",
    "--check",
    "--entry=f",
    "--entry=g",
    "--entry=",
    "--entry",
    "--target=cpu",
    "--target=cuda-emulator",
    "--target=cuda",
    "--target=",
    "--chip=sm_90",
    "--chip=sm_75",
    "--chip=sm_",
    "--chip=sm_90a,sm_75",
    "--threads=1",
    "--threads=2",
    "--threads=0",
    "--threads=-1",
    "--threads=1x",
    "--benchmark=1",
    "--benchmark=0",
    "--benchmark",
    "--arg=x.npy",
    "--arg=c.npy",
    "--arg=none.npy",
    "--arg=random:1",
    "--arg=random:2:0:1",
    "--arg=random:1@",
    "--arg=random:1@3x4",
    "--arg=random:1:1:0",
    "--arg=random:-1",
    "--arg=random:1:nan:1",
    "--arg=random:",
    "--arg=random",
    "--arg=",
    "--result=-",
    "--result=o.npy",
    "--result=",
    "--result=x.npy",
    "--schedule=#bngrad.schedule<loops>",
    "--schedule=#bngrad.schedule<rows>",
    "--schedule=#bngrad.schedule<two_pass, block_threads = 64, fma = true>",
    "--schedule=",
    "--schedule=#bngrad.schedule<rows, row_blocks = 0>",
    "--help",
    "-h",
    "--",
    "-o",
    "o.mlir",
    "o.ll",
    "o.o",
    "o.s",
    "o.ptx",
    "o",
    "--header=o.h",
    "--header=",
    "--header=f.mlir",
    "--mcpu=native",
    "--mcpu=",
    "--mcpu=x",
    "--mcpu=x86-64-v3",
    "--mtriple=aarch64-linux-gnu",
    "--mtriple=x",
    "--mtriple=",
    "--mtriple=x86_64-linux-gnu",
    "--format=isa",
    "--format=x",
    "--device-arguments",
    "--version",
    "--x"};

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  Random random(seed ? seed : 1);
  Strings lines =
      splitLines(std::string(reinterpret_cast<const char *>(data), size));
  for (size_t i = 1 + below(random, 3); i > 0; --i) {
    size_t at = below(random, lines.size());
    switch (lines.empty() ? 0 : below(random, 5)) {
    case 0:
      lines.insert(lines.begin() + at, pick(random, kArguments));
      break;
    case 1:
      lines.erase(lines.begin() + at);
      break;
    case 2:
      lines[at] = pick(random, kArguments);
      break;
    case 3:
      std::swap(lines[at], lines[below(random, lines.size())]);
      break;
    default: {
      uint8_t bytes[512];
      std::string &line = lines[at];
      line.resize(std::min<size_t>(line.size(), 256));
      std::memcpy(bytes, line.data(), line.size());
      size_t length = LLVMFuzzerMutate(bytes, line.size(), sizeof(bytes));
      line.assign(reinterpret_cast<char *>(bytes), length);
    }
    }
  }
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  size = std::min(text.size(), maxSize);
  std::memcpy(data, text.data(), size);
  return size;
}
