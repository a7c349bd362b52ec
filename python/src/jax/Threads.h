//===- Threads.h - loops on XLA's threads -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_JAX_THREADS_H
#define BNGRAD_PYTHON_SRC_JAX_THREADS_H

#include "BNGrad/Runtime/Runtime.h"

#include "xla/ffi/api/ffi.h"

namespace bngrad::jax {

/// The threads of the handle: the pool of the calling thread's innermost
/// PoolScope; without one, only the calling thread.
///
/// The calling thread takes part in every loop. A pool that is busy, or of one
/// thread, or that runs tasks one after another, makes a loop slow at worst:
/// the calling thread waits only for iterations that other threads have begun.
bngrad_threads_t getPoolThreads();

/// While a scope exists, loops of the calling thread run on `pool`, if it is
/// not null.
class PoolScope {
public:
  explicit PoolScope(xla::ffi::ThreadPool *pool);
  ~PoolScope();
  PoolScope(const PoolScope &) = delete;
  PoolScope &operator=(const PoolScope &) = delete;
};

} // namespace bngrad::jax

#endif // BNGRAD_PYTHON_SRC_JAX_THREADS_H
