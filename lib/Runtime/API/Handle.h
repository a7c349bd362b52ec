//===- Handle.h - handles ------------------------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_HANDLE_H
#define BNGRAD_LIB_RUNTIME_API_HANDLE_H

#include "CudaDevice.h"

#include "../Kernels/Kernels.h"

namespace bngrad {
/// Null: OpenMP's; in a process that was forked after those had run, the
/// calling thread alone, as that of GCC would wait for threads that are gone.
const bngrad_threads_t *getDefaultThreads();
} // namespace bngrad

struct bngradHandle {
  bngradDevice_t kind;
  /// Of this CPU; null: there are none.
  const bngradKernels_t *kernels;
  /// Null: on a CPU.
  const bngrad::CudaLibrary *cuda;
  int device;
  /// Such as "sm_90"; empty: a CPU.
  std::string chip;
  bool hasThreads;
  bngrad_threads_t threads;

  /// The threads of a call; null: OpenMP's.
  const bngrad_threads_t *getThreads() const {
    return hasThreads ? &threads : bngrad::getDefaultThreads();
  }
};

#endif // BNGRAD_LIB_RUNTIME_API_HANDLE_H
