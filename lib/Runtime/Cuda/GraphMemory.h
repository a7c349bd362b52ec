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
// memory is allocated outside of the graph, and belongs to the graph and its
// executables (a user object of CUDA).
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNTIME_CUDA_GRAPHMEMORY_H
#define BNGRAD_RUNTIME_CUDA_GRAPHMEMORY_H

#include "Context.h"

namespace bngrad::cuda {

/// The capture of a stream in a graph.
struct Capture {
  CUgraph graph = nullptr;
  CUstream stream = nullptr;
  /// Differs for each capture of the process.
  uint64_t id = 0;

  explicit operator bool() const { return graph != nullptr; }
};

/// The capture in which `stream` takes part. Null if there is none, or if the
/// driver cannot tell.
Capture getCapture(const Context &context, CUstream stream);

/// Allocates `bytes` that live as long as the graph of `capture`, or until they
/// are released, if that is later. Memory that calls captured earlier in the
/// same stream have released is used again.
///
/// Errors: 0, and the reason is reported.
CUdeviceptr allocateForGraph(const Context &context, uint64_t bytes,
                             const Capture &capture);

/// Releases `address` after the work that is captured in `stream` so far. Waits
/// for a stream that is not captured. False if it is not memory of a graph.
bool releaseForGraph(const Context &context, CUdeviceptr address,
                     CUstream stream);

/// Frees the memory of graphs of `context` that are destroyed.
///
/// Errors: false, and the reason is reported.
bool freeMemoryOfDestroyedGraphs(const Context &context);

} // namespace bngrad::cuda

#endif // BNGRAD_RUNTIME_CUDA_GRAPHMEMORY_H
