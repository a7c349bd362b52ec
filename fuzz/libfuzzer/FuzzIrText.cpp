//===- FuzzIrText.cpp - textual IR into passes and pipelines --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IrMutator.h"
#include "IrSession.h"

#include <algorithm>
#include <cstring>

using namespace bngrad::fuzz;

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  getSession();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef pipeline, ir;
  llvm::StringRef input(reinterpret_cast<const char *>(data), size);
  if (!splitInput(input, pipeline, ir))
    return -1;
  getSession().run(pipeline, ir);
  return 0;
}

static size_t give(const std::string &text, uint8_t *data, size_t maxSize) {
  size_t size = std::min(text.size(), maxSize);
  std::memcpy(data, text.data(), size);
  return size;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  if (seed % 32 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string input(reinterpret_cast<const char *>(data), size);
  return give(IrMutator(seed).mutate(input), data, maxSize);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first,
                                            size_t firstSize,
                                            const uint8_t *second,
                                            size_t secondSize, uint8_t *out,
                                            size_t maxSize, unsigned seed) {
  return give(
      IrMutator(seed).splice(
          std::string(reinterpret_cast<const char *>(first), firstSize),
          std::string(reinterpret_cast<const char *>(second), secondSize)),
      out, maxSize);
}
