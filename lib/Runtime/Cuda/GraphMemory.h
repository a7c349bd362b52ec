//===- GraphMemory.h - device memory of graphs ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An allocation in a captured stream and its release would become nodes of the
// graph: each launch would execute both, the graph could not be a child of
// another graph, and it could have only one executable at a time. So memory is
// allocated outside of the graph, and a CUDA user object ties it to the graph
// and its executables.
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
  /// Unique in the process.
  uint64_t id = 0;

  explicit operator bool() const { return graph != nullptr; }
};

/// The capture in which `stream` takes part. Null if there is none, or if the
/// driver cannot tell.
Capture getCapture(const Context &context, CUstream stream);

/// Allocates `bytes` that live as long as the graph of `capture`, or until they
/// are released, if that is later. Reuses memory that earlier captured calls in
/// the same stream have released.
///
/// Errors: 0, and the reason is reported.
CUdeviceptr allocateForGraph(const Context &context, uint64_t bytes,
                             const Capture &capture);

/// Releases `address` after the work that is captured in `stream` so far. Waits
/// for the stream if it is not captured. False if no graph owns `address`.
bool releaseForGraph(const Context &context, CUdeviceptr address,
                     CUstream stream);

/// Frees the memory of graphs of `context` that are destroyed.
///
/// Errors: false, and the reason is reported.
bool freeMemoryOfDestroyedGraphs(const Context &context);

} // namespace bngrad::cuda

#endif // BNGRAD_RUNTIME_CUDA_GRAPHMEMORY_H
