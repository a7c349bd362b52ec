//===- runtime.h - the runtime of runtime.cpp -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef RUNTIME_H
#define RUNTIME_H

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

namespace testing {

/// The number of different kernels that the program has launched.
size_t numLaunchedKernels();

/// The capability of the device, such as 90.
int capability();

/// Takes the message of the first error since the last call.
std::string takeMessage();

/// Takes the first error since the last call.
cudaError_t takeError();

} // namespace testing

#endif // RUNTIME_H
