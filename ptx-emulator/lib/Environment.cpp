//===- Environment.cpp - environment variables ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Environment.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace ptx {

static std::string mismatch(const char *variable, const char *expected,
                            const std::string &value) {
  return std::string("environment: expected ") + variable + " to be " +
         expected + ", got '" + value + "'";
}

std::string environment(const char *variable) {
  const char *value = std::getenv(variable);
  return value ? value : "";
}

/// Whether `text` is "sm_", two or three digits, and an optional "a" or "f".
static bool isChip(const std::string &text) {
  if (text.compare(0, 3, "sm_") != 0)
    return false;
  size_t end = std::min(text.find_first_not_of("0123456789", 3), text.size());
  std::string suffix = text.substr(end);
  return (end == 5 || end == 6) &&
         (suffix.empty() || suffix == "a" || suffix == "f");
}

std::string readChip(std::string &chip) {
  chip = environment("PTX_EMULATOR_CHIP");
  return chip.empty() || isChip(chip)
             ? ""
             : mismatch("PTX_EMULATOR_CHIP", "a chip such as sm_90", chip);
}

std::string readProcessingClusters(std::vector<uint32_t> &sizes) {
  std::string text = environment("PTX_EMULATOR_PROCESSING_CLUSTERS");
  if (text.empty())
    return "";
  constexpr unsigned long kMost = 1024;
  sizes.clear();
  std::stringstream parts(text + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    bool isNumber = !part.empty() && part.size() <= 4 &&
                    part.find_first_not_of("0123456789") == std::string::npos;
    unsigned long size = isNumber ? std::stoul(part) : 0;
    if (size < 1 || size > kMost)
      return mismatch("PTX_EMULATOR_PROCESSING_CLUSTERS",
                      "numbers of multiprocessors from 1 to 1024, such as "
                      "18,18,16",
                      text);
    sizes.push_back(uint32_t(size));
  }
  return "";
}

std::string readBudget(uint64_t &budget) {
  budget = 4000000000;
  std::string text = environment("PTX_EMULATOR_BUDGET");
  if (text.empty())
    return "";
  char *end = nullptr;
  errno = 0;
  budget = std::strtoull(text.c_str(), &end, 10);
  bool isNumber = text.find_first_not_of("0123456789") == std::string::npos;
  return isNumber && errno == 0 && budget != 0
             ? ""
             : mismatch("PTX_EMULATOR_BUDGET",
                        "a number of instructions above zero", text);
}

/// Reads `variable` into `effect`, which is unchanged if it is not set.
static std::string readEffect(const char *variable, Effect &effect) {
  std::string text = environment(variable);
  if (text == "allow")
    effect = Effect::Allow;
  else if (text == "warn")
    effect = Effect::Warn;
  else if (text == "error")
    effect = Effect::Error;
  else if (!text.empty())
    return mismatch(variable, "allow, warn or error", text);
  return "";
}

std::string readEqualStores(Effect &effect) {
  effect = Effect::Warn;
  return readEffect("PTX_EMULATOR_EQUAL_STORES", effect);
}

std::string readUninitialised(Effect &effect) {
  effect = Effect::Error;
  return readEffect("PTX_EMULATOR_UNINITIALISED", effect);
}

std::string readShuffleOrder(bool &isAllowed) {
  std::string text = environment("PTX_EMULATOR_SHUFFLE_ORDER");
  isAllowed = text == "allow";
  return text.empty() || isAllowed || text == "error"
             ? ""
             : mismatch("PTX_EMULATOR_SHUFFLE_ORDER", "allow or error", text);
}

std::string readReplacement(std::string &text) {
  std::string path = environment("PTX_EMULATOR_REPLACE_PTX");
  if (path.empty())
    return "";
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  if (!file)
    return mismatch("PTX_EMULATOR_REPLACE_PTX", "a file that can be read",
                    path);
  text = content.str();
  return "";
}

std::string writeTraffic(const std::string &line) {
  std::string path = environment("PTX_EMULATOR_TRAFFIC");
  if (path.empty())
    return "";
  std::ofstream file(path, std::ios::app);
  file << line << '\n' << std::flush;
  return file ? ""
              : mismatch("PTX_EMULATOR_TRAFFIC", "a file that can be written",
                         path);
}

} // namespace ptx
