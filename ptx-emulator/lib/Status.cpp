//===- Status.cpp - the status of a thread ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Status.h"

#include <cstdio>

using namespace ptx;

namespace {
struct ErrorSink {
  bngradCudaErrorHandler_t function = nullptr;
  void *user = nullptr;
};
} // namespace

static thread_local int32_t status = 0;
/// Held while the handler runs, so that it runs in one thread at a time and
/// never after its removal. Recursive, so that the handler may remove itself.
static std::recursive_mutex handlerMutex;
static ErrorSink errorSink;
/// The handler of this thread; none to use the handler of the process.
static thread_local ErrorSink threadSink;

bool ptx::hasError() { return status != 0; }

void ptx::fail(int32_t code, const char *line) {
  if (hasError())
    return;
  status = code;
  if (threadSink.function)
    return threadSink.function(line, threadSink.user);
  std::lock_guard<std::recursive_mutex> lock(handlerMutex);
  if (errorSink.function)
    errorSink.function(line, errorSink.user);
  else
    std::fprintf(stderr, "%s\n", line);
}

int32_t bngradCudaTakeStatus(void) {
  int32_t result = status;
  status = 0;
  return result;
}

void bngradCudaSetErrorHandler(bngradCudaErrorHandler_t function, void *user) {
  std::lock_guard<std::recursive_mutex> lock(handlerMutex);
  errorSink = {function, user};
}

void bngradCudaSetThreadErrorHandler(bngradCudaErrorHandler_t function,
                                     void *user) {
  threadSink = {function, user};
}
