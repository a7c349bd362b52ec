//===- CudaDevice.h - devices of CUDA and of its emulator -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_CUDADEVICE_H
#define BNGRAD_LIB_RUNTIME_API_CUDADEVICE_H

#include "BNGrad/Runtime/Cuda.h"
#include "BNGrad/Runtime/Runtime.h"

#include "../CudaKernels/CudaKernels.h"

#include <string>

namespace bngrad {

/// The functions of libBNGradCudaRuntime.so or libBNGradCudaEmulator.so that
/// the C library calls. Generated code calls the others directly.
struct CudaLibrary {
  decltype(&bngradCudaSetStream) setStream;
  decltype(&bngradCudaResetStream) resetStream;
  decltype(&bngradCudaTakeStatus) takeStatus;
  decltype(&bngradCudaSetThreadErrorHandler) setThreadErrorHandler;
  decltype(&bngradCudaGetCapability) getCapability;
  decltype(&bngradCudaSetDevice) setDevice;
  decltype(&bngradCudaResetDevice) resetDevice;
  decltype(&mgpuEventRecord) recordEvent;
  decltype(&mgpuMemcpy) copy;
  decltype(&mgpuStreamSynchronize) synchronize;
  /// Where the library is.
  std::string path;
};

/// The library for devices of `kind`; it stays loaded. Null and `error` if
/// none.
const CudaLibrary *loadCudaLibrary(bngradDevice_t kind, std::string &error);

/// The ready kernels for devices of `kind`, of which `device` is one; they stay
/// loaded. Null and `error` if none. Throws std::bad_alloc.
const bngradCudaKernels_t *loadCudaKernels(bngradDevice_t kind, int device,
                                           std::string &error);

/// While a scope exists, the calling thread works on a device and in a stream,
/// and the scope keeps its errors.
class CudaScope {
public:
  CudaScope(const CudaLibrary &library, int device, void *stream);
  ~CudaScope();
  CudaScope(const CudaScope &) = delete;
  CudaScope &operator=(const CudaScope &) = delete;

  /// Ends the scope and returns its first error; empty if there is none.
  const char *takeError();
  /// Whether the reason for that error is that host memory ran out.
  bool isOutOfMemory() const { return status == -2; }

private:
  const CudaLibrary &library;
  int32_t status = 0;
  char text[256];
};

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_CUDADEVICE_H
