//===- Errors.h - the status of a thread ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNTIME_CUDA_ERRORS_H
#define BNGRAD_RUNTIME_CUDA_ERRORS_H

#include "Driver.h"

#include <string>

namespace bngrad::cuda {

/// The status after an error that is no CUresult.
constexpr int32_t kNoDriverCode = -1;

/// Whether the calling thread has an error that was not taken yet.
bool hasError();

/// Keeps `code` as the status of the calling thread and gives the handler the
/// line `bngrad: error: <message>`; does nothing if the thread has an error.
void report(int32_t code, const std::string &message);

/// `result` as in `CUDA_ERROR_INVALID_VALUE (1): invalid argument`.
std::string describe(const Driver &driver, CUresult result);

} // namespace bngrad::cuda

#endif // BNGRAD_RUNTIME_CUDA_ERRORS_H
