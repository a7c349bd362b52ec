//===- Target.h - what schedules depend on -------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_TARGET_H
#define BNGRAD_TRANSFORMS_TARGET_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace llvm {
class Triple;
} // namespace llvm

namespace mlir::bngrad {

/// A CPU, as far as the choice of a schedule depends on it. The defaults stand
/// for no machine in particular, so that tests need not name them.
struct Target {
  /// Length of a vector register.
  int64_t vectorBits = 512;
  /// Threads that run at a time.
  int64_t threads = 1;
  /// First-level data cache of a core, in bytes.
  int64_t l1Bytes = 48 << 10;
  /// Last-level cache, in bytes.
  int64_t lastLevelBytes = 32 << 20;
  /// Vectors have a fused multiply-add.
  bool fma = false;
  /// Vectors of f32 are converted to bf16 by one instruction, as by AVX-512's,
  /// which takes subnormal numbers for 0.
  bool bf16Conversion = false;

  /// The machine this process runs on; what it does not tell keeps its default.
  static Target host();

  /// Sets vectorBits, fma and bf16Conversion for a CPU that `has` a feature,
  /// such as avx2, as LLVM names them.
  void setFeatures(const llvm::Triple &triple,
                   llvm::function_ref<bool(llvm::StringRef)> has);

  /// Sets l1Bytes and lastLevelBytes to the data caches that Linux lists in
  /// `folder`; what it does not list keeps its value.
  void setCaches(llvm::StringRef folder);
};

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_TARGET_H
