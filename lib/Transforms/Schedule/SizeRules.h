//===- SizeRules.h - the choice of loops by sizes ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules that choose a schedule by sizes. They do not use MLIR: the compiler
// evaluates them for static sizes and emits them as IR for dynamic ones, and
// the C library evaluates them to describe such kernels.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_SCHEDULE_SIZERULES_H
#define BNGRAD_LIB_TRANSFORMS_SCHEDULE_SIZERULES_H

#include "BNGrad/Dialect/ScheduleKind.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace mlir::bngrad {

/// Sizes at which one schedule takes over from another. Their measurements are
/// in bench/results/thresholds.md.
namespace limits {
/// `split` is chosen for fewer channels than this, because other threads would
/// have no work, unless there is little work in total.
inline constexpr int64_t kFewChannels = 8;
/// Fewer elements than this are computed by one thread.
inline constexpr int64_t kSerialElements = 16 << 10;
/// `tiles` is chosen for rows of fewer than kShortRow elements if there are
/// kManyRows. Fewer rows stay in near caches, where the order of reading
/// matters less than the cost of a tile, unless a row is less than a vector.
inline constexpr int64_t kShortRow = 256, kManyRows = 8 << 10,
                         kVeryShortRow = 16, kManyVeryShortRows = 64;
/// All samples of a tile share its tables of per-channel values. `tiles` needs
/// at least kManySamples, or kSomeSamples if rows are very short or the three
/// tensors exceed the caches: with fewer, making the tables takes longer than
/// reading rows that are far apart.
inline constexpr int64_t kManySamples = 32, kSomeSamples = 16;
/// The assumed caches of an unknown CPU, in bytes.
inline constexpr int64_t kL1Bytes = 48 << 10, kLastLevelBytes = 32 << 20;
/// The share of a thread in the last-level cache, in bytes (getStreamingLimit).
/// Processors have 2 to 4 MiB per core; virtual machines list the whole cache,
/// which others use, too.
inline constexpr int64_t kThreadShareBytes = 8 << 20;
} // namespace limits

/// Data whose last loop is reduced, in the order [N, C, S].
struct DataSizes {
  int64_t channels;     // C
  int64_t elements;     // N * C * S
  int64_t rowElements;  // S
  int64_t rows;         // N * C
  int64_t elementBytes; // of the widest type
};

/// A rule for such data. `*Below` limits are exclusive, `*From` inclusive.
struct SizeRule {
  static constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

  ScheduleKind kind;
  int64_t channelsBelow = kAny;
  int64_t elementsFrom = 0;
  int64_t rowElementsBelow = kAny;
  int64_t rowsFrom = 0;
  int64_t samplesFrom = 0;
  int64_t tensorBytesFrom = 0;

  /// The least N * C * S for elements of `elementBytes` bytes.
  constexpr int64_t getLeastElements(int64_t elementBytes) const {
    return std::max(elementsFrom,
                    (tensorBytesFrom + elementBytes - 1) / elementBytes);
  }
  constexpr bool applies(const DataSizes &sizes) const {
    auto isBelow = [](int64_t size, int64_t limit) {
      return limit == kAny || size < limit;
    };
    return isBelow(sizes.channels, channelsBelow) &&
           sizes.elements >= getLeastElements(sizes.elementBytes) &&
           isBelow(sizes.rowElements, rowElementsBelow) &&
           sizes.rows >= rowsFrom &&
           sizes.rows / std::max<int64_t>(sizes.channels, 1) >= samplesFrom;
  }
};

/// The rules for kinds that are chosen by sizes. The first one that applies is
/// taken; `channels` if none does. Sizes that are known at compile time are
/// compared there, others at run time.
inline constexpr SizeRule kSizeRules[] = {
    {ScheduleKind::Split, limits::kFewChannels, limits::kSerialElements},
    {ScheduleKind::Tiles, SizeRule::kAny, 0, limits::kVeryShortRow,
     limits::kManyVeryShortRows, limits::kSomeSamples},
    {ScheduleKind::Tiles, SizeRule::kAny, 0, limits::kShortRow,
     limits::kManyRows, limits::kManySamples},
    {ScheduleKind::Tiles, SizeRule::kAny, 0, limits::kShortRow,
     limits::kManyRows, limits::kSomeSamples, limits::kThreadShareBytes / 3},
};

/// The kind for `sizes` among those for which `allows` returns true.
template <typename Predicate>
constexpr ScheduleKind chooseBySizes(const DataSizes &sizes, Predicate allows) {
  for (const SizeRule &rule : kSizeRules)
    if (allows(rule.kind) && rule.applies(sizes))
      return rule.kind;
  return ScheduleKind::Channels;
}

/// Results are streamed past the caches if the data of a call have more bytes
/// than this: than a last-level cache of `cacheBytes`, or than the shares of
/// `threads` in it. `Arithmetic` computes with numbers (SizeArithmetic), or
/// emits IR (IndexBuilder).
template <typename Arithmetic, typename Size>
constexpr Size getStreamingLimit(const Arithmetic &math, Size cacheBytes,
                                 Size threads) {
  Size share = math.constant(limits::kThreadShareBytes);
  return math.min(cacheBytes, math.mul(threads, share));
}

/// The arithmetic of sizes that are known.
struct SizeArithmetic {
  static constexpr int64_t constant(int64_t value) { return value; }
  static constexpr int64_t mul(int64_t l, int64_t r) { return l * r; }
  static constexpr int64_t min(int64_t l, int64_t r) { return l < r ? l : r; }
};

/// Columns of the tables of `tiles` if the widest element has `elementBytes`
/// bytes. A row of a tile has the same number of bytes for every type: 4 KiB,
/// or one page, for a first-level cache of 32 or 48 KiB. The rows of a tile are
/// far apart, so shorter rows waste memory bandwidth, and tables for longer
/// rows do not fit into that cache.
constexpr int64_t getTileColumns(int64_t l1Bytes, int64_t elementBytes) {
  int64_t most = std::max<int64_t>(l1Bytes / (8 * elementBytes), 64);
  int64_t columns = 1;
  while (columns <= most / 2)
    columns *= 2;
  return columns;
}

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_SCHEDULE_SIZERULES_H
