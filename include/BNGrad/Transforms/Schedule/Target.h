//===- Target.h - properties of a CPU for schedules ----------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_SCHEDULE_TARGET_H
#define BNGRAD_TRANSFORMS_SCHEDULE_TARGET_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace llvm {
class Triple;
} // namespace llvm

namespace mlir::bngrad {

/// The properties of a CPU on which the choice of a schedule depends. The
/// defaults describe no particular machine and serve tests.
struct Target {
  /// Length of a vector register, in bits.
  int64_t vectorBits = 512;
  /// Number of threads that run concurrently; 0 for as many as a call has.
  int64_t threads = 1;
  /// First-level data cache that a thread has, in bytes.
  int64_t l1Bytes = 48 << 10;
  /// Last-level caches of all threads, in bytes.
  int64_t lastLevelBytes = 32 << 20;
  /// Whether vectors have a fused multiply-add.
  bool fma = false;
  /// Whether an instruction converts vectors of f32 to bf16 and flushes
  /// subnormals, as in AVX-512.
  bool bf16Conversion = false;
  /// Whether instructions convert vectors of f32 to f16 and back.
  bool f16Conversion = true;

  /// The machine this process runs on. HostCpu::get() gives the features. The
  /// first call finds threads and caches: with libhwloc, the caches of the CPUs
  /// on which the process may run, else the caches of the first CPU, as if its
  /// threads did not share it. Unknown properties keep their defaults.
  static Target host();

  /// Sets vectorBits, fma and the conversions for a CPU that `has` a feature,
  /// such as avx2, as LLVM names them.
  void setFeatures(const llvm::Triple &triple,
                   llvm::function_ref<bool(llvm::StringRef)> has);

  /// Sets l1Bytes and lastLevelBytes to the data caches that Linux lists in
  /// `folder`; a cache that it does not list keeps its value.
  void setCaches(llvm::StringRef folder);
};

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_SCHEDULE_TARGET_H
