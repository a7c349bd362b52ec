//===- Memory.h - memory of devices -----------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNTIME_CUDA_MEMORY_H
#define BNGRAD_RUNTIME_CUDA_MEMORY_H

#include "Context.h"

namespace bngrad::cuda {

/// Allocates `bytes` of the device in the order of `stream`, from the pool of
/// the library in `context`; without pools, at once.
///
/// Errors: 0, and the reason is reported.
CUdeviceptr allocateInOrder(const Context &context, uint64_t bytes,
                            CUstream stream);

/// Frees memory of allocateInOrder or cuMemAllocManaged in the order of
/// `stream`. Waits for the stream if the memory is not from a pool.
///
/// Errors: false, and the reason is reported.
bool freeInOrder(const Context &context, CUdeviceptr address, CUstream stream);

} // namespace bngrad::cuda

#endif // BNGRAD_RUNTIME_CUDA_MEMORY_H
