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

/// True if the calling thread works in `stream` because its caller said so.
bool isCallersStream(void *stream);

/// Notes a copy from or to memory of the host in `stream`. Code of the host
/// reads or frees that memory after the next wait, which therefore waits even
/// for a caller's stream.
void noteHostCopy(void *stream);

} // namespace bngrad::cuda

#endif // BNGRAD_LIB_RUNTIME_CUDA_STREAMS_H
