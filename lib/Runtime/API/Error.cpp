//===- Error.cpp - errors of the C library --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

/// One per thread. It has no destructor, so the library can be unloaded.
static thread_local char text[4096];

bngradStatus_t bngrad::fail(bngradStatus_t status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return status;
}

bngrad::ErrorText::ErrorText() {
  static_assert(sizeof(text) == sizeof(::text), "the whole text");
  std::memcpy(text, ::text, sizeof(text));
}

bngradStatus_t bngrad::getStatus(int32_t code) {
  if (code == 0)
    return BNGRAD_SUCCESS;
  return fail(BNGRAD_INTERNAL_ERROR, "expected a kernel to return 0, got %d",
              static_cast<int>(code));
}

bngradStatus_t bngrad::succeed() {
  text[0] = '\0';
  return BNGRAD_SUCCESS;
}

const char *bngradGetLastError() { return text; }

const char *bngradVersion() { return BNGRAD_VERSION; }

const char *bngradGetStatusName(bngradStatus_t status) {
  switch (status) {
  case BNGRAD_SUCCESS:
    return "BNGRAD_SUCCESS";
  case BNGRAD_BAD_PARAM:
    return "BNGRAD_BAD_PARAM";
  case BNGRAD_NULL_POINTER:
    return "BNGRAD_NULL_POINTER";
  case BNGRAD_BAD_DTYPE:
    return "BNGRAD_BAD_DTYPE";
  case BNGRAD_BAD_SHAPE:
    return "BNGRAD_BAD_SHAPE";
  case BNGRAD_BAD_STRIDES:
    return "BNGRAD_BAD_STRIDES";
  case BNGRAD_INSUFFICIENT_WORKSPACE:
    return "BNGRAD_INSUFFICIENT_WORKSPACE";
  case BNGRAD_DEVICE_NOT_SUPPORTED:
    return "BNGRAD_DEVICE_NOT_SUPPORTED";
  case BNGRAD_COMPILER_NOT_FOUND:
    return "BNGRAD_COMPILER_NOT_FOUND";
  case BNGRAD_INTERNAL_ERROR:
    return "BNGRAD_INTERNAL_ERROR";
  case BNGRAD_PROCESS_ERROR:
    return "BNGRAD_PROCESS_ERROR";
  }
  return "unknown status";
}
