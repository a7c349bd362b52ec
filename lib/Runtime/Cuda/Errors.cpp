//===- Errors.cpp - the status of a thread ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Errors.h"
#include "../Immortal.h"
#include "Abi.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace bngrad::cuda {

static thread_local int32_t threadStatus = 0;

/// The handler of this thread; null to use the handler of the process.
static thread_local bngradCudaErrorHandler_t threadHandler = nullptr;
static thread_local void *threadUser = nullptr;

namespace {
struct ErrorHandler {
  bngradCudaErrorHandler_t function = nullptr;
  void *user = nullptr;
  /// Held while the handler runs, so that no handler runs after its removal;
  /// recursive, so that a handler may remove itself.
  std::recursive_mutex mutex;
};
} // namespace

static ErrorHandler &errorHandler() {
  static Immortal<ErrorHandler> handler;
  return *handler;
}

void Line::appendPart(std::string_view part) {
  constexpr std::string_view kCut = "...";
  constexpr size_t kMost = kCapacity - 1;
  size_t count = std::min(part.size(), kMost - size);
  std::memcpy(text + size, part.data(), count);
  size += count;
  text[size] = '\0';
  if (count < part.size())
    std::memcpy(text + kMost - kCut.size(), kCut.data(), kCut.size());
}

bool hasError() { return threadStatus != 0; }

void report(int32_t code, const Line &message) {
  if (hasError())
    return;
  threadStatus = code;
  Line line("bngrad: error: ", message);
  if (threadHandler)
    return threadHandler(line.c_str(), threadUser);
  ErrorHandler &handler = errorHandler();
  std::lock_guard<std::recursive_mutex> lock(handler.mutex);
  if (handler.function)
    handler.function(line.c_str(), handler.user);
  else
    std::fprintf(stderr, "%s\n", line.c_str());
}

Line describe(const Driver &driver, CUresult result) {
  const char *name = nullptr;
  const char *text = nullptr;
  if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
    name = "unknown error";
  else if (driver.cuGetErrorString(result, &text) != CUDA_SUCCESS)
    text = nullptr;
  Line line(name, " (", int(result), ")");
  if (text)
    line.append(": ", text);
  return line;
}

} // namespace bngrad::cuda

using namespace bngrad::cuda;

int32_t bngradCudaTakeStatus(void) {
  int32_t status = threadStatus;
  threadStatus = 0;
  return status;
}

void bngradCudaSetErrorHandler(bngradCudaErrorHandler_t function, void *user) {
  ErrorHandler &handler = errorHandler();
  std::lock_guard<std::recursive_mutex> lock(handler.mutex);
  handler.function = function;
  handler.user = user;
}

void bngradCudaSetThreadErrorHandler(bngradCudaErrorHandler_t function,
                                     void *user) {
  threadHandler = function;
  threadUser = user;
}
