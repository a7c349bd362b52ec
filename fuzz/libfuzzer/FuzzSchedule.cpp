//===- FuzzSchedule.cpp - schedules forced on small functions -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As FuzzIrText, but the mutations change the schedule of the pipeline, as
// fields and as text, and sizes. So the passes see every schedule that parses.
//
//===----------------------------------------------------------------------===//

#include "IrMutator.h"
#include "IrSession.h"

#include <algorithm>
#include <cstring>

using namespace bngrad::fuzz;
using llvm::StringRef;

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  getSession();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  StringRef pipeline, ir;
  StringRef input(reinterpret_cast<const char *>(data), size);
  if (!splitInput(input, pipeline, ir))
    return -1;
  getSession().run(pipeline, ir);
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

/// Another schedule, sometimes mutated as text.
static std::string makeSchedule(Random &random, bool gpu) {
  std::string text =
      IrMutator(random()).makeSchedule(below(random, 8) ? gpu : !gpu);
  if (below(random, 6))
    return text;
  uint8_t bytes[256];
  std::memcpy(bytes, text.data(), text.size());
  size_t size = LLVMFuzzerMutate(bytes, text.size(), sizeof(bytes));
  text.assign(reinterpret_cast<char *>(bytes), size);
  // Characters that would end the option or the line.
  text.erase(std::remove_if(text.begin(), text.end(),
                            [](char c) {
                              return c == '"' || c == '\n' || c == '\0' ||
                                     c == '{' || c == '}' || c == '\'';
                            }),
             text.end());
  return text;
}

static std::string makePipeline(Random &random) {
  static const std::vector<std::string> kChips = {"sm_75", "sm_90", "sm_100"};
  static const std::vector<std::string> kStages = {"group", "apply", "apply",
                                                   "bufferize"};
  bool gpu = below(random, 2);
  std::string options =
      "schedule=\"" + makeSchedule(random, gpu) + "\" stop-after=" +
      (below(random, 12) ? pick(random, kStages) : std::string("lower"));
  if (gpu)
    return "builtin.module(bngrad-cuda-pipeline{chip=" + pick(random, kChips) +
           " " + options +
           (below(random, 2) ? " device-arguments=true})" : "})");
  return "builtin.module(bngrad-cpu-pipeline{threads=2 vector-bits=512 "
         "fma=true bf16-conversion=false f16-conversion=true l1-bytes=49152 "
         "last-level-bytes=33554432 " +
         options + "})";
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  Random random(seed ? seed : 1);
  std::string input(reinterpret_cast<const char *>(data), size);
  if (below(random, 3) == 0)
    input = IrMutator(random()).mutate(input);
  std::string ir = input.substr(std::min(input.find('\n'), size - 1) + 1);
  input = kHeader.str() + makePipeline(random) + "\n" + ir;
  size = std::min(input.size(), maxSize);
  std::memcpy(data, input.data(), size);
  return size;
}
