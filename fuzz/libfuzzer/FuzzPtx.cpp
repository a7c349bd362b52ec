//===- FuzzPtx.cpp - PTX text into the emulator ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An input is a line `// launch: --kernel=K --grid=1 --block=32 --arg=...`, as
// the command line of ptx-emulator, and a module. It is loaded and launched
// within a budget of steps.
//
//===----------------------------------------------------------------------===//

#include "PtxMutator.h"

#include "BNGrad/Runtime/Cuda.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

using namespace bngrad::fuzz;

static constexpr uint64_t kMaxElements = 4096;

namespace {
struct Launch {
  std::string kernel;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, cluster[3] = {1, 1, 1};
  bool hasCluster = false;
  int32_t dynamicShared = 0;
  struct Argument {
    uint64_t low = 0, high = 0; // of at most 16 bytes
    bool isBuffer = false;
  };
  std::vector<Argument> arguments;
};
} // namespace

static bool parseNumber(const std::string &text, uint64_t most,
                        uint64_t &value) {
  char *end = nullptr;
  value = std::strtoull(text.c_str(), &end, 0);
  return !text.empty() && text[0] != '-' && *end == 0 && value <= most;
}

static bool parseDims(const std::string &text, uint32_t most,
                      uint32_t (&dims)[3]) {
  std::istringstream in(text);
  std::string part;
  for (unsigned i = 0; std::getline(in, part, ','); ++i) {
    uint64_t value;
    if (i == 3 || !parseNumber(part, most, value))
      return false;
    dims[i] = value;
  }
  return true;
}

/// `TYPE:VALUE`, an integer, or `buffer:TYPE:COUNT:FILL`.
static bool parseArgument(const std::string &text, Launch &launch) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ':');)
    parts.push_back(part);
  Launch::Argument argument;
  if (parts.size() == 2) {
    // Floats are also given as integers: any bits serve.
    argument.low = std::strtoull(parts[1].c_str(), nullptr, 0);
    launch.arguments.push_back(argument);
    return true;
  }
  uint64_t count;
  if (parts.size() != 4 || parts[0] != "buffer" || parts[1].size() < 2 ||
      !parseNumber(parts[2], kMaxElements, count))
    return false;
  uint64_t bits = std::strtoull(parts[1].c_str() + 1, nullptr, 10);
  if (bits == 0)
    bits = 16; // bf16
  if (bits % 8 != 0 || bits > 64)
    return false;
  uint64_t bytes = count * (bits / 8);
  void *buffer = mgpuMemAlloc(bytes, nullptr, 0);
  if (buffer && parts[3] != "uninit") {
    std::vector<char> content(bytes);
    for (uint64_t i = 0; parts[3] != "zero" && i < count; ++i)
      std::memcpy(&content[i * (bits / 8)], &i, bits / 8);
    mgpuMemcpy(buffer, content.data(), bytes, nullptr);
  }
  argument.low = reinterpret_cast<uint64_t>(buffer);
  argument.isBuffer = true;
  launch.arguments.push_back(argument);
  return true;
}

static bool parseLaunch(const std::string &line, Launch &launch) {
  std::istringstream in(line);
  for (std::string word; in >> word;) {
    size_t equals = word.find('=');
    if (equals == std::string::npos)
      return false;
    std::string name = word.substr(0, equals), value = word.substr(equals + 1);
    uint64_t bytes = 0;
    bool isKnown = true;
    if (name == "--kernel")
      launch.kernel = value;
    else if (name == "--grid")
      isKnown = parseDims(value, 64, launch.grid);
    else if (name == "--block")
      isKnown = parseDims(value, 2048, launch.block);
    else if (name == "--cluster")
      isKnown = launch.hasCluster = parseDims(value, 64, launch.cluster);
    else if (name == "--dynamic-shared")
      isKnown = parseNumber(value, 1 << 20, bytes);
    else if (name == "--arg")
      isKnown = launch.arguments.size() < 16 && parseArgument(value, launch);
    else
      return false;
    if (!isKnown)
      return false;
    if (name == "--dynamic-shared")
      launch.dynamicShared = bytes;
  }
  return !launch.kernel.empty();
}

static void checkMessage(const char *message, void *) {
  if (std::strchr(message, '\n') || !*message) {
    std::fprintf(stderr, "bngrad-fuzz: fault: expected one line, got '%s'\n",
                 message);
    std::abort();
  }
}

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  setenv("PTX_EMULATOR_BUDGET", "300000", 1);
  bngradCudaSetErrorHandler(checkMessage, nullptr);
  return 0;
}

static void run(Launch &launch, std::string text) {
  void *module = mgpuModuleLoadJIT(&text[0], 3);
  void *function = mgpuModuleGetFunction(module, launch.kernel.c_str());
  std::vector<void *> params;
  params.reserve(launch.arguments.size());
  for (Launch::Argument &argument : launch.arguments)
    params.push_back(&argument.low);
  const auto &g = launch.grid, &b = launch.block, &c = launch.cluster;
  if (launch.hasCluster)
    // The launch function has no number of parameters; provide as many as any
    // kernel reads.
    params.resize(std::max<size_t>(params.size(), 4096), &launch.arguments);
  if (launch.hasCluster)
    mgpuLaunchClusterKernel(function, c[0], c[1], c[2], g[0], g[1], g[2], b[0],
                            b[1], b[2], launch.dynamicShared, nullptr,
                            params.data(), nullptr);
  else
    mgpuLaunchKernel(function, g[0], g[1], g[2], b[0], b[1], b[2],
                     launch.dynamicShared, nullptr, params.data(), nullptr,
                     params.size());
  mgpuModuleUnload(module);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  static const std::string kLaunch = "// launch: ";
  size_t end = text.find('\n');
  if (text.compare(0, kLaunch.size(), kLaunch) != 0 || end == std::string::npos)
    return -1;
  Launch launch;
  bool isLaunch =
      parseLaunch(text.substr(kLaunch.size(), end - kLaunch.size()), launch);
  // The module begins with the line of the launch, so that line numbers are
  // those of the file.
  if (isLaunch)
    run(launch, text);
  for (Launch::Argument &argument : launch.arguments)
    if (argument.isBuffer)
      mgpuMemFree(reinterpret_cast<void *>(argument.low), nullptr);
  (void)bngradCudaTakeStatus();
  return isLaunch ? 0 : -1;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

static size_t give(const std::string &text, uint8_t *data, size_t maxSize) {
  size_t size = std::min(text.size(), maxSize);
  std::memcpy(data, text.data(), size);
  return size;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  if (seed % 32 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  return give(
      mutatePtx(std::string(reinterpret_cast<char *>(data), size), seed), data,
      maxSize);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first,
                                            size_t firstSize,
                                            const uint8_t *second,
                                            size_t secondSize, uint8_t *out,
                                            size_t maxSize, unsigned seed) {
  return give(
      splicePtx(std::string(reinterpret_cast<const char *>(first), firstSize),
                std::string(reinterpret_cast<const char *>(second), secondSize),
                seed),
      out, maxSize);
}
