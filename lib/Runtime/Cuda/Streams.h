//===- Streams.h - the stream of the caller ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_CUDA_STREAMS_H
#define BNGRAD_LIB_RUNTIME_CUDA_STREAMS_H

namespace bngrad::cuda {

/// Whether `stream` is the one that the caller set for this thread.
bool isCallersStream(void *stream);

/// Notes a copy from or to host memory in `stream`. Host code reads or frees
/// that memory after the next wait, so that wait applies even to a caller's
/// stream.
void noteHostCopy(void *stream);

} // namespace bngrad::cuda

#endif // BNGRAD_LIB_RUNTIME_CUDA_STREAMS_H
