//===- Schedule.h - parameters of a schedule --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parameters of `#bngrad.schedule`; docs/schedules.md works an example of
// each kind.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_DIALECT_SCHEDULE_H
#define BNGRAD_DIALECT_SCHEDULE_H

#include "llvm/ADT/Hashing.h"

#include <cstdint>
#include <tuple>

namespace mlir::bngrad {

/// The most shares of a parallel loop. Each may have tables of its own.
inline constexpr int64_t kMostThreads = 4096;

/// The most shares of a loop that has as many as there are threads.
inline constexpr int64_t kMostPoolThreads = 64;

/// Parameters of `channels`, `tiles`, `rows`, `split` and `sizes`. Each kind
/// has all of them: where strides call for another kind, that one uses them.
struct CpuSchedule {
  /// Shares of a parallel loop, at most kMostThreads; 0: as many as threads, of
  /// which there are kMostPoolThreads at most. Results do not depend on it.
  int64_t threads = 1;
  /// Length of a vector register, in bits: a power of 2 in [64, 2048].
  int64_t vectorBits = 512;
  /// Size of the group's data, in bytes, above which streaming stores are used;
  /// 0: they are not.
  int64_t streamingBytes = 0;
  /// Length of a table of per-channel values, in elements, in [1, 2^20]: a row
  /// of a tile has as many (`tiles`); the folded rows of the second pass have
  /// about half as many, and rows of more than four times as many are not
  /// folded (`rows`).
  int64_t columns = 1024;
  /// Largest number of blocks of rows whose sums are added in order (`rows`),
  /// in [1, 2^20]. Sums depend on it.
  int64_t rowBlocks = 16;
  /// Products that allow `contract` are fused with the sums that use them; the
  /// target must have the instruction.
  bool fma = false;

  bool operator==(const CpuSchedule &other) const {
    return asTuple() == other.asTuple();
  }
  friend llvm::hash_code hash_value(const CpuSchedule &schedule) {
    return llvm::hash_value(schedule.asTuple());
  }

private:
  std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, bool>
  asTuple() const {
    return {threads, vectorBits, streamingBytes, columns, rowBlocks, fma};
  }
};

/// Parameters of `two_pass` and `one_pass`.
struct GpuSchedule {
  // Limits of every GPU that PTX describes.
  static constexpr int64_t kWarpSize = 32;
  static constexpr int64_t kMostThreads = 1024; // of a block
  static constexpr int64_t kMostClusterBlocks = 16;

  /// Threads of a block: whole warps, at most 1024. Sums depend on it.
  int64_t blockThreads = 256;
  /// Length of an access to memory, in bits: 64 or 128.
  int64_t accessBits = 128;
  /// `two_pass`: adjacent accesses of a block where channels are innermost, in
  /// [1, 2^20]; at most blockThreads are used. Sums depend on it.
  int64_t blockAccesses = 32;
  /// `two_pass`: approximate number of blocks of the kernel that adds, in
  /// [1, 2^20]. Sums depend on it.
  int64_t sumBlocks = 1024;
  /// `one_pass`: channels of a block, in [1, 2^20].
  int64_t blockChannels = 1;
  /// `one_pass`: blocks of a cluster, which divide the rows of its channels: a
  /// power of 2, at most 16.
  int64_t clusterBlocks = 1;
  /// As in CpuSchedule.
  bool fma = false;

  bool operator==(const GpuSchedule &other) const {
    return asTuple() == other.asTuple();
  }
  friend llvm::hash_code hash_value(const GpuSchedule &schedule) {
    return llvm::hash_value(schedule.asTuple());
  }

private:
  std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool>
  asTuple() const {
    return {blockThreads,  accessBits, blockAccesses, sumBlocks, blockChannels,
            clusterBlocks, fma};
  }
};

} // namespace mlir::bngrad

#endif // BNGRAD_DIALECT_SCHEDULE_H
