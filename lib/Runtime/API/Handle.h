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
/// Null means OpenMP's threads. A process forked after these had run uses only
/// the calling thread, as GCC's OpenMP would wait for threads that are gone.
const bngrad_threads_t *getDefaultThreads();
} // namespace bngrad

struct bngradHandle {
  bngradDevice_t kind;
  /// The ready kernels for this CPU; null if there are none.
  const bngradKernels_t *kernels;
  /// Null on a CPU.
  const bngrad::CudaLibrary *cuda;
  int device;
  /// The compute capability, such as 90 for 9.0; 0 on a CPU.
  int capability;
  /// A name such as "sm_90"; empty on a CPU.
  std::string chip;
  bool hasThreads;
  bngrad_threads_t threads;

  /// The threads of a call; null for OpenMP's.
  const bngrad_threads_t *getThreads() const {
    return hasThreads ? &threads : bngrad::getDefaultThreads();
  }
};

#endif // BNGRAD_LIB_RUNTIME_API_HANDLE_H
