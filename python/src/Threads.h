//===- Threads.h - the threads of bngrad's own calls ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pool of threads for calls from Python, where OpenMP may be missing. It
// starts them when they are first needed. A call that finds the pool in use
// runs on its own thread, and so does the child of a fork until it has started
// its own threads. The functions need the GIL.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_THREADS_H
#define BNGRAD_PYTHON_SRC_THREADS_H

#include "BNGrad/Runtime/Runtime.h"

namespace bngrad::python {

/// The most threads of a call.
inline constexpr int kMostThreads = 1024;

/// The number of threads of a call. Initially the environment variable
/// BNGRAD_NUM_THREADS, else OMP_NUM_THREADS, else the number of CPUs that the
/// process may use.
int getNumThreads();

/// Sets the number of threads of later calls; `count` is at least 1.
void setNumThreads(int count);

/// Calls body(data, i, n) for each i below n on the threads of calls. Does not
/// need the GIL.
void runOnPool(int n, void (*body)(void *data, int thread, int n), void *data);

/// getNumThreads() threads for calls of compiled functions; they live as long
/// as the process.
const bngrad_threads_t &getThreads();

/// The handle for a CPU whose calls run on getNumThreads() threads; it lives as
/// long as the process. Throws if it cannot be created.
bngradHandle_t getHandle();

} // namespace bngrad::python

#endif // BNGRAD_PYTHON_SRC_THREADS_H
