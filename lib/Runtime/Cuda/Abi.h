//===- Abi.h - the functions this library exports ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNTIME_CUDA_ABI_H
#define BNGRAD_RUNTIME_CUDA_ABI_H

// Everything else in this library is hidden.
#pragma GCC visibility push(default)
#include "BNGrad/Runtime/Cuda.h"
#pragma GCC visibility pop

#endif // BNGRAD_RUNTIME_CUDA_ABI_H
