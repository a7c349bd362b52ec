//===- HostCpu.h - the CPU that code is generated for --------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_SCHEDULE_HOSTCPU_H
#define BNGRAD_TRANSFORMS_SCHEDULE_HOSTCPU_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringMap.h"

#include <string>

namespace mlir::bngrad {

/// The CPU of this machine, for which code for this machine is tuned. The
/// environment variable BNGRAD_ISA restricts it to an older instruction set
/// (docs/debugging.md).
struct HostCpu {
  /// Its name and features, in the form that LLVM's target machines take.
  std::string name, features;
  /// Whether it has a feature; features that are not listed are absent.
  llvm::StringMap<bool> hasFeature;

  /// The CPU as BNGRAD_ISA restricts it now, or unrestricted if verify() fails.
  static HostCpu get();

  /// Whether BNGRAD_ISA is unset, empty or an instruction set of this CPU.
  ///
  /// Errors: failure, and one line `reason`.
  static LogicalResult verify(std::string &reason);
};

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_SCHEDULE_HOSTCPU_H
