//===- FuzzIrBytecode.cpp - bytecode into passes and pipelines ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An input is a header line and bytecode. To create one, an input of
// BNGRAD_FUZZ_TEXTS is mutated as text, written as bytecode, and mutated as
// bytes.
//
//===----------------------------------------------------------------------===//

#include "IrMutator.h"
#include "IrSession.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <cstring>

using namespace bngrad::fuzz;
using llvm::StringRef;

static std::vector<std::string> texts;

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  getSession();
  const char *dir = std::getenv("BNGRAD_FUZZ_TEXTS");
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(dir ? dir : "", error), end;
       !error && it != end; it.increment(error))
    if (auto buffer = llvm::MemoryBuffer::getFile(it->path()))
      texts.push_back((*buffer)->getBuffer().str());
  // The order of directory entries is unspecified.
  std::sort(texts.begin(), texts.end());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  StringRef pipeline, ir;
  StringRef input(reinterpret_cast<const char *>(data), size);
  if (!splitInput(input, pipeline, ir) || !ir.starts_with("ML\xefR"))
    return -1;
  getSession().run(pipeline, ir);
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

/// A new input from a text; empty if the text is invalid.
static std::string makeInput(Random &random) {
  if (texts.empty())
    return "";
  std::string text = pick(random, texts);
  if (below(random, 2))
    text = IrMutator(random()).mutate(text);
  StringRef pipeline, ir;
  if (!splitInput(text, pipeline, ir))
    return "";
  std::string bytes = getSession().toBytecode(ir);
  return bytes.empty() ? "" : kHeader.str() + pipeline.str() + "\n" + bytes;
}

/// Changes a byte in a section: mostly an index or a length of one byte.
static void changeByte(std::string &input, size_t begin, Random &random) {
  if (begin >= input.size())
    return;
  char &byte = input[begin + below(random, input.size() - begin)];
  switch (below(random, 4)) {
  case 0:
    byte ^= char(1 << below(random, 8));
    break;
  case 1: // Varints are shifted by one, with the number of bytes below.
    byte += below(random, 2) ? 2 : -2;
    break;
  case 2:
    byte = char(random());
    break;
  default:
    byte = input[begin + below(random, input.size() - begin)];
  }
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  Random random(seed ? seed : 1);
  std::string input(reinterpret_cast<const char *>(data), size);
  if (below(random, 3) == 0)
    if (std::string made = makeInput(random); !made.empty())
      input = made;
  size_t begin = input.find('\n') + 1;
  if (below(random, 8) == 0)
    input = kHeader.str() + IrMutator(random()).mutatePipeline() + "\n" +
            input.substr(begin);
  begin = input.find('\n') + 1 + 4;
  for (size_t i = below(random, 4); i > 0; --i)
    changeByte(input, begin, random);
  size = std::min(input.size(), maxSize);
  std::memcpy(data, input.data(), size);
  if (below(random, 8) == 0 && begin < size)
    size =
        begin + LLVMFuzzerMutate(data + begin, size - begin, maxSize - begin);
  return size;
}
