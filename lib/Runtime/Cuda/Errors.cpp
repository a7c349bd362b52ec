//===- Errors.cpp - the status of a thread ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Errors.h"
#include "Abi.h"

#include <cstdio>
#include <mutex>

namespace bngrad::cuda {

static thread_local int32_t threadStatus = 0;

namespace {
struct ErrorHandler {
  bngradCudaErrorHandler_t function = nullptr;
  void *user = nullptr;
  /// Held while the handler runs, so that none runs after it was taken away;
  /// recursive, so that a handler may take itself away.
  std::recursive_mutex mutex;
};
} // namespace

static ErrorHandler &errorHandler() {
  // Never destroyed: an error may come while the program ends.
  static ErrorHandler &handler = *new ErrorHandler;
  return handler;
}

bool hasError() { return threadStatus != 0; }

void report(int32_t code, const std::string &message) {
  if (hasError())
    return;
  threadStatus = code;
  std::string line = "bngrad: error: " + message;
  ErrorHandler &handler = errorHandler();
  std::lock_guard<std::recursive_mutex> lock(handler.mutex);
  if (handler.function)
    handler.function(line.c_str(), handler.user);
  else
    std::fprintf(stderr, "%s\n", line.c_str());
}

std::string describe(const Driver &driver, CUresult result) {
  const char *name = nullptr;
  const char *text = nullptr;
  std::string code = " (" + std::to_string(result) + ")";
  if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
    return "unknown error" + code;
  if (driver.cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
    return name + code;
  return name + code + ": " + text;
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
