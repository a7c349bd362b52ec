//===- CudaLibrary.h - the library that runs kernels ---------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNNER_CUDALIBRARY_H
#define BNGRAD_RUNNER_CUDALIBRARY_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace mlir::bngrad {

/// Where a function runs.
enum class RunTarget { Cpu, Cuda, CudaEmulator };

/// One of the libraries with the functions of BNGrad/Runtime/Cuda.h. It stays
/// loaded until the end of the process.
class CudaLibrary {
public:
  /// Loads the library for `target` from its place beside this tool.
  ///
  /// Errors: one line on standard error and failure.
  static FailureOr<CudaLibrary> load(RunTarget target);

  StringRef getPath() const { return path; }

  /// `given`, or the chip of the device if that is empty.
  ///
  /// Errors: one line on standard error and failure.
  FailureOr<std::string> chooseChip(StringRef given) const;

  /// How many clusters of each size of `chip` the device runs at once, as in
  /// CudaPipelineOptions. Empty if it has no clusters, if its driver cannot
  /// tell, or if the query fails, which prints one line on standard error.
  std::string findActiveClusters(StringRef chip) const;

  /// Failure if there was an error since the last call; it has been reported.
  LogicalResult takeStatus() const;

private:
  std::string path;
  RunTarget target = RunTarget::Cuda;
  int32_t (*takeStatusFunction)() = nullptr;
  int32_t (*getCapabilityFunction)() = nullptr;
  int32_t (*getClusterSlotsFunction)(int32_t, int32_t) = nullptr;
};

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_CUDALIBRARY_H
