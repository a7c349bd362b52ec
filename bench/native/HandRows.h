//===- HandRows.h - hand-written schedules of long rows ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_BENCH_NATIVE_HANDROWS_H
#define BNGRAD_BENCH_NATIVE_HANDROWS_H

#include "Hand.h"

#include <algorithm>
#include <omp.h>

/// Adds one row to four accumulators of each sum.
template <typename E>
static void addRow(const typename E::Type *dy, const typename E::Type *x,
                   int64_t n, Vector mean, Vector *sumDy, Vector *sumDyXmu) {
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes)
    for (int j = 0; j < 4; ++j) {
      Vector d = E::load(dy + i + j * kLanes);
      Vector m = E::load(x + i + j * kLanes) - mean;
      sumDy[j] += d;
      sumDyXmu[j] = multiplyAdd(d, m, sumDyXmu[j]);
    }
  for (; i < n; i += kLanes) {
    Mask mask = firstLanes(std::min(n - i, kLanes));
    Vector d = E::load(dy + i, mask);
    Vector m = E::load(x + i, mask) - mean;
    sumDy[0] += d;
    sumDyXmu[0] = multiplyAdd(d, m, sumDyXmu[0]);
  }
}

template <typename E>
static Sums sumRows(const State &s, int64_t c, int64_t firstImage,
                    int64_t lastImage) {
  using T = typename E::Type;
  const Problem &p = s.p;
  int64_t n = p.spatial();
  Vector mean = splat(p.mean[c]);
  Vector sumDy[4] = {}, sumDyXmu[4] = {};
  for (int64_t image = firstImage; image < lastImage; ++image) {
    int64_t row = (image * p.channels + c) * n;
    addRow<E>(static_cast<const T *>(p.gradOutput) + row,
              static_cast<const T *>(p.input) + row, n, mean, sumDy, sumDyXmu);
  }
  Sums sums;
  for (int j = 0; j < 4; ++j) {
    sums.dy += sumLanes(sumDy[j]);
    sums.dyXmu += sumLanes(sumDyXmu[j]);
  }
  return sums;
}

/// The exact form of sumRows. Chains continue in the next row.
template <typename E>
static Sums sumRowsExactly(const State &s, int64_t c, int64_t firstImage,
                           int64_t lastImage) {
  using T = typename E::Type;
  constexpr int64_t kStep = 4 * kLanes;
  const Problem &p = s.p;
  int64_t n = p.spatial(), left = s.chain;
  Vector mean = splat(p.mean[c]);
  Vector chainDy[4] = {}, chainDyXmu[4] = {};
  ExactSum sumDy[4], sumDyXmu[4];
  auto endChains = [&] {
    for (int j = 0; j < 4; ++j) {
      sumDy[j].add(chainDy[j]);
      sumDyXmu[j].add(chainDyXmu[j]);
      chainDy[j] = chainDyXmu[j] = Vector{};
    }
    left = s.chain;
  };
  for (int64_t image = firstImage; image < lastImage; ++image) {
    int64_t row = (image * p.channels + c) * n;
    auto *dy = static_cast<const T *>(p.gradOutput) + row;
    auto *x = static_cast<const T *>(p.input) + row;
    int64_t i = 0;
    while (i + kStep <= n) {
      int64_t steps = std::min(left, (n - i) / kStep);
      for (int64_t end = i + steps * kStep; i < end; i += kStep)
        for (int j = 0; j < 4; ++j) {
          Vector d = E::load(dy + i + j * kLanes);
          Vector m = E::load(x + i + j * kLanes) - mean;
          chainDy[j] += d;
          chainDyXmu[j] = multiplyAdd(d, m, chainDyXmu[j]);
        }
      if ((left -= steps) == 0)
        endChains();
    }
    if (i == n)
      continue;
    // At most one term more in each chain.
    for (int j = 0; j < 4; ++j)
      if (int64_t rest = n - i - j * kLanes; rest > 0) {
        Mask mask = firstLanes(std::min(rest, kLanes));
        Vector d = E::load(dy + i + j * kLanes, mask);
        Vector m = E::load(x + i + j * kLanes, mask) - mean;
        chainDy[j] += d;
        chainDyXmu[j] = multiplyAdd(d, m, chainDyXmu[j], mask);
      }
    if (--left == 0)
      endChains();
  }
  endChains();
  Sums sums;
  for (int j = 0; j < 4; ++j) {
    sums.dy += sumLanes(sumDy[j].total());
    sums.dyXmu += sumLanes(sumDyXmu[j].total());
  }
  return sums;
}

/// grad_input of one row. With kPrefetch, `ahead` is the prefetch distance in
/// elements.
template <typename E, bool kExact, bool kPrefetch>
static void applyRow(const typename E::Type *dy, const typename E::Type *x,
                     typename E::Type *dx, int64_t n, const Coefficients &f,
                     bool streaming, int64_t ahead) {
  using T = typename E::Type;
  constexpr int64_t kLine = 64 / sizeof(T), kVectors = kVectorsOfLine<T>;
  Vector a = splat(f.a), b = splat(f.b), k = splat(f.k), mean = splat(f.mean);
  RareResults<E> rare;
  auto compute = [&](Vector d, Vector v) {
    Vector result = computeGradInput<kExact>(d, v - mean, a, b, k);
    rare.add(result);
    return result;
  };
  auto masked = [&](int64_t i, int64_t count) {
    for (; count > 0; count -= kLanes, i += kLanes) {
      Mask mask = firstLanes(std::min(count, kLanes));
      E::store(dx + i, compute(E::load(dy + i, mask), E::load(x + i, mask)),
               mask);
    }
  };
  int64_t i = 0;
  if (streaming) {
    int64_t head = -(reinterpret_cast<uintptr_t>(dx) / sizeof(T)) & (kLine - 1);
    i = std::min(head, n);
    masked(0, i);
    for (; i + kLine <= n; i += kLine) {
      Vector line[kVectors];
      for (int j = 0; j < kVectors; ++j)
        line[j] =
            compute(E::load(dy + i + j * kLanes), E::load(x + i + j * kLanes));
      prefetch<kPrefetch>(dy + i + ahead);
      prefetch<kPrefetch>(x + i + ahead);
      E::stream(dx + i, line);
    }
  } else {
    for (; i + kLine <= n; i += kLine)
      for (int j = 0; j < kVectors; ++j)
        E::store(dx + i + j * kLanes, compute(E::load(dy + i + j * kLanes),
                                              E::load(x + i + j * kLanes)));
  }
  masked(i, n - i);
  if constexpr (!std::is_empty_v<RareResults<E>>)
    if (rare.any())
      applyRow<typename E::Exact, kExact, false>(dy, x, dx, n, f, streaming, 0);
}

template <typename E, bool kExact, bool kPrefetch>
static void applyRows(const State &s, int64_t c, const Coefficients &f,
                      int64_t firstImage, int64_t lastImage) {
  using T = typename E::Type;
  const Problem &p = s.p;
  int64_t n = p.spatial();
  for (int64_t image = firstImage; image < lastImage; ++image) {
    int64_t row = (image * p.channels + c) * n;
    applyRow<E, kExact, kPrefetch>(static_cast<const T *>(p.gradOutput) + row,
                                   static_cast<const T *>(p.input) + row,
                                   static_cast<T *>(p.gradInput) + row, n, f,
                                   s.streaming, n);
  }
}

/// Smallest row length, in elements, for which a thread takes a single channel.
constexpr int64_t kLongRow = 256;

template <typename E, bool kExact> static void runLongRows(State &s) {
  const Problem &p = s.p;
#pragma omp parallel num_threads(p.threads)
  {
    Range channels =
        shareOf(p.channels, omp_get_thread_num(), omp_get_num_threads());
    for (int64_t c = channels.begin; c < channels.end; ++c) {
      Sums sums;
      if constexpr (kExact)
        sums = sumRowsExactly<E>(s, c, 0, p.images);
      else
        sums = sumRows<E>(s, c, 0, p.images);
      writeParameters(s, c, sums);
      Coefficients f = finish(s, c, sums);
      // The next channel is the next row of each image.
      if (c + 1 < channels.end)
        applyRows<E, kExact, true>(s, c, f, 0, p.images);
      else
        applyRows<E, kExact, false>(s, c, f, 0, p.images);
    }
    _mm_sfence();
  }
}

/// All threads share each channel. In the bare form, each takes a range of
/// images, with one partial sum. In the exact form, it takes a range of parts,
/// whose images depend only on the shape.
template <typename E, bool kExact> static void runFewChannels(State &s) {
  const Problem &p = s.p;
  // Two sets of partial sums: with one barrier per channel, a thread may be a
  // channel ahead of the others.
  constexpr int kMaxThreads = 256;
  struct alignas(64) Partial {
    Sums sums;
  };
  static Partial partials[2][kMaxThreads];
  int64_t parts = std::min(p.images, kMaxParts);
#pragma omp parallel num_threads(std::min(p.threads, kMaxThreads))
  {
    int thread = omp_get_thread_num(), threads = omp_get_num_threads();
    Range own = shareOf(parts, thread, threads);
    Range images = shareOf(p.images, thread, threads);
    if constexpr (kExact)
      images = {shareOf(p.images, own.begin, parts).begin,
                shareOf(p.images, own.end, parts).begin};
    int64_t sumCount = kExact ? parts : threads;
    for (int64_t c = 0; c < p.channels; ++c) {
      Partial *partial = partials[c % 2];
      if constexpr (kExact)
        for (int64_t part = own.begin; part < own.end; ++part) {
          Range its = shareOf(p.images, part, parts);
          partial[part].sums = sumRowsExactly<E>(s, c, its.begin, its.end);
        }
      else
        partial[thread].sums = sumRows<E>(s, c, images.begin, images.end);
#pragma omp barrier
      Sums sums;
      for (int64_t t = 0; t < sumCount; ++t) {
        sums.dy += partial[t].sums.dy;
        sums.dyXmu += partial[t].sums.dyXmu;
      }
      if (thread == 0)
        writeParameters(s, c, sums);
      applyRows<E, kExact, false>(s, c, finish(s, c, sums), images.begin,
                                  images.end);
    }
    _mm_sfence();
  }
}

#endif // BNGRAD_BENCH_NATIVE_HANDROWS_H
