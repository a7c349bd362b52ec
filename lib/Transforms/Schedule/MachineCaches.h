//===- MachineCaches.h - caches of this process -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_SCHEDULE_MACHINECACHES_H
#define BNGRAD_TRANSFORMS_SCHEDULE_MACHINECACHES_H

#include <cstdint>
#include <optional>

namespace mlir::bngrad {

/// The caches that the threads of this process share.
struct MachineCaches {
  /// The least share of a logical CPU in its first-level data cache, in bytes.
  int64_t l1Bytes = 0;
  /// The total of all last-level caches, in bytes.
  int64_t lastLevelBytes = 0;

  /// The caches of the CPUs on which this process may run, over all sockets and
  /// all kinds of cores, as libhwloc 2 reports them. Nothing if libhwloc is not
  /// installed, had no header in the build, or does not know both sizes.
  static std::optional<MachineCaches> fromHwloc();
};

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_SCHEDULE_MACHINECACHES_H
