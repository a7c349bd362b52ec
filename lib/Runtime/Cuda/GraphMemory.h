//===- GraphMemory.h - device memory of graphs ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An allocation in a captured stream would be a node of the graph, as would be
// its release: each launch of the graph would execute both, the graph could not
// be the child of another one, and could have one executable at a time. So the
// memory is allocated during the capture, and belongs to the graph and its
// executables (a user object of CUDA). Memory of destroyed graphs is kept for
// later ones.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNTIME_CUDA_GRAPHMEMORY_H
#define BNGRAD_RUNTIME_CUDA_GRAPHMEMORY_H

#include "Context.h"

namespace bngrad::cuda {

/// The capture of a stream.
struct Capture {
  CUgraph graph = nullptr;
  CUstream stream = nullptr;
  /// Differs for each capture of the process.
  uint64_t id = 0;

  explicit operator bool() const { return graph != nullptr; }
};

/// The capture in which `stream` takes part, if there is one.
Capture getCapture(const Context &context, CUstream stream);

/// Allocates `bytes` that live as long as the graph of `capture`. Memory that
/// was released in the same stream of the capture is used again.
///
/// Errors: 0, and the reason is reported.
CUdeviceptr allocateForGraph(const Context &context, uint64_t bytes,
                             const Capture &capture);

/// Lets later calls of the same capture and stream use `address`. False if it
/// is not memory of a graph. After the graph this does nothing.
bool releaseForGraph(CUdeviceptr address);

} // namespace bngrad::cuda

#endif // BNGRAD_RUNTIME_CUDA_GRAPHMEMORY_H
