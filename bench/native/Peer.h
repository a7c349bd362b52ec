//===- Peer.h - interface of measured libraries ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The benchmark loads each library through a shared object that exports these
// functions, so that a timed call goes through one function pointer and no
// Python.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_BENCH_PEER_H
#define BNGRAD_BENCH_PEER_H

#include <cstdint>
#include <cstdio>
#include <exception>

enum class ElementType : int32_t { F32 = 0, BF16 = 1, F16 = 2 };

/// One gradient with batch statistics. Data is dense; parameters, statistics
/// and their gradients are f32.
struct Problem {
  /// Rank of the data: 2 (N, C), 3 (N, C, W) or 4 (N, C, H, W).
  int32_t rank;
  /// 1: channels are innermost in memory; 0: the order above.
  int32_t channelsLast;
  int32_t elementType;
  int32_t threads;
  /// Extents in elements; 1 if the rank has no such dim.
  int64_t images, channels, height, width;
  /// Size of the machine's last-level cache.
  int64_t cacheBytes;
  double epsilon;
  const void *gradOutput, *input;
  const float *scale, *mean, *variance;
  void *gradInput;
  float *gradScale, *gradOffset;
  /// Of the walked floor: the data of a fused neighbour, and whether the sums
  /// depend on them, too; null: there is none.
  const void *other;
  int32_t isOtherInSums;

  int64_t spatial() const { return height * width; }
  int64_t elements() const { return images * channels * spatial(); }
};

extern "C" {
/// Prepares `problem`, which must outlive the result. Returns null and sets
/// `error` to one line if the library cannot run it. The library defines the
/// meaning of `variant`.
void *peerCreate(const Problem *problem, int32_t variant, char *error,
                 int64_t size);

/// One gradient; this call is timed.
void peerRun(void *state);

/// One gradient whose results are in the problem's buffers afterwards, even if
/// the library allocates its own.
void peerRunInto(void *state);

void peerDestroy(void *state);

/// The library's version and threading runtime, in one line.
void peerVersion(char *text, int64_t size);
}

/// Runs `create` and converts an exception to `error`.
template <typename Create>
void *createOrExplain(Create create, char *error, int64_t size) {
  try {
    return create();
  } catch (const std::exception &exception) {
    std::snprintf(error, size, "%s", exception.what());
    for (char *c = error; *c; ++c)
      if (*c == '\n')
        *c = ' ';
    return nullptr;
  }
}

#endif // BNGRAD_BENCH_PEER_H
