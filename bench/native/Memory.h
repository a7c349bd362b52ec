//===- Memory.h - memory and bandwidth for both harnesses -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_BENCH_MEMORY_H
#define BNGRAD_BENCH_MEMORY_H

#include "Vectors.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace memory {

/// Zeroed memory, on huge pages if the system has them, never freed. Arrays are
/// aligned to cache lines, but at different page offsets, so that the same
/// element of two arrays is not in the same cache set.
inline void *allocate(int64_t bytes) {
  constexpr int64_t kPage = 2 << 20, kStagger = 11 * 4096 + 9 * 64;
  static int64_t offset = 0;
  offset = (offset + kStagger) % kPage;
  bytes = (offset + bytes + kPage - 1) / kPage * kPage;
  auto *memory = static_cast<char *>(std::aligned_alloc(kPage, bytes));
  if (!memory)
    return nullptr;
  madvise(memory, bytes, MADV_HUGEPAGE);
  std::memset(memory, 0, bytes);
  return memory + offset;
}

/// c = a + b over this thread's share, with streaming stores. Four lines of
/// each array per step.
inline void addShare(const float *a, const float *b, float *c, int64_t begin,
                     int64_t end) {
  for (int64_t i = begin; i < end; i += 64)
    for (int64_t j = 0; j < 64; j += kLanes)
      streamFloats(c + i + j, loadAligned(a + i + j) + loadAligned(b + i + j));
}

/// The base of the sizes of the arrays that measure bandwidth.
inline int64_t probeBase(int64_t cacheBytes) {
  return std::clamp<int64_t>(cacheBytes, 16 << 20, 256 << 20);
}

} // namespace memory

#endif // BNGRAD_BENCH_MEMORY_H
