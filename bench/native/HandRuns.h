//===- HandRuns.h - short rows and row-major by hand ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run is a sequence of elements. All runs have the same sequence of channels,
// so element i uses entry i of the tables of coefficients.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_BENCH_NATIVE_HANDRUNS_H
#define BNGRAD_BENCH_NATIVE_HANDRUNS_H

#include "HandChains.h"

#include <algorithm>
#include <omp.h>

/// Adds kRuns runs of n elements, `stride` elements apart, to the tables. With
/// kPrefetch, `stride` is the prefetch distance in elements.
template <typename E, int kRuns, bool kPrefetch = false>
static void addRuns(const typename E::Type *dy, const typename E::Type *x,
                    int64_t n, int64_t stride, const Tables &t) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    prefetch<kPrefetch>(dy + i + stride);
    prefetch<kPrefetch>(x + i + stride);
    Vector sumDy = loadAligned(t.sumDy + i);
    Vector sumDyXmu = loadAligned(t.sumDyXmu + i);
    Vector mean = loadAligned(t.mean + i);
    for (int j = 0; j < kRuns; ++j) {
      Vector d = E::load(dy + i + j * stride);
      Vector m = E::load(x + i + j * stride) - mean;
      sumDy += d;
      sumDyXmu = multiplyAdd(d, m, sumDyXmu);
    }
    storeAligned(t.sumDy + i, sumDy);
    storeAligned(t.sumDyXmu + i, sumDyXmu);
  }
  if (i == n)
    return;
  Mask mask = firstLanes(n - i);
  for (int j = 0; j < kRuns; ++j) {
    Vector d = E::load(dy + i + j * stride, mask);
    Vector m = E::load(x + i + j * stride, mask) - loadAligned(t.mean + i);
    storeAligned(t.sumDy + i, loadAligned(t.sumDy + i) + d);
    storeAligned(t.sumDyXmu + i,
                 multiplyAdd(d, m, loadAligned(t.sumDyXmu + i)));
  }
}

/// As addRuns for contiguous runs of kVectors vectors, `runs` of them, with the
/// sums in registers.
template <typename E, int kVectors>
static void addNarrowRuns(const typename E::Type *dy, const typename E::Type *x,
                          int64_t runs, const Tables &t) {
  Vector sumDy[kVectors], sumDyXmu[kVectors], mean[kVectors];
  for (int j = 0; j < kVectors; ++j) {
    sumDy[j] = loadAligned(t.sumDy + j * kLanes);
    sumDyXmu[j] = loadAligned(t.sumDyXmu + j * kLanes);
    mean[j] = loadAligned(t.mean + j * kLanes);
  }
  for (int64_t run = 0; run < runs;
       ++run, dy += kVectors * kLanes, x += kVectors * kLanes)
    for (int j = 0; j < kVectors; ++j) {
      Vector d = E::load(dy + j * kLanes);
      Vector m = E::load(x + j * kLanes) - mean[j];
      sumDy[j] += d;
      sumDyXmu[j] = multiplyAdd(d, m, sumDyXmu[j]);
    }
  for (int j = 0; j < kVectors; ++j) {
    storeAligned(t.sumDy + j * kLanes, sumDy[j]);
    storeAligned(t.sumDyXmu + j * kLanes, sumDyXmu[j]);
  }
}

/// grad_input of one run. With kPrefetch, the following run is prefetched.
template <typename E, bool kExact, bool kPrefetch = false>
static void applyRun(const typename E::Type *dy, const typename E::Type *x,
                     typename E::Type *dx, int64_t n, const Tables &t,
                     bool streaming) {
  using T = typename E::Type;
  constexpr int64_t kLine = 64 / sizeof(T), kVectors = kVectorsOfLine<T>;
  RareResults<E> rare;
  auto compute = [&](int64_t i, Vector d, Vector v) {
    Vector m = v - loadAligned(t.mean + i);
    Vector result = computeGradInput<kExact>(
        d, m, loadAligned(t.a + i), loadAligned(t.b + i), loadAligned(t.k + i));
    rare.add(result);
    return result;
  };
  int64_t i = 0;
  if (streaming && reinterpret_cast<uintptr_t>(dx) % 64 == 0)
    for (; i + kLine <= n; i += kLine) {
      Vector line[kVectors];
      for (int j = 0; j < kVectors; ++j)
        line[j] = compute(i + j * kLanes, E::load(dy + i + j * kLanes),
                          E::load(x + i + j * kLanes));
      prefetch<kPrefetch>(dy + i + n);
      prefetch<kPrefetch>(x + i + n);
      E::stream(dx + i, line);
    }
  for (; i + kLanes <= n; i += kLanes)
    E::store(dx + i, compute(i, E::load(dy + i), E::load(x + i)));
  if (i < n) {
    Mask mask = firstLanes(n - i);
    E::store(dx + i, compute(i, E::load(dy + i, mask), E::load(x + i, mask)),
             mask);
  }
  if constexpr (!std::is_empty_v<RareResults<E>>)
    if (rare.any())
      applyRun<typename E::Exact, kExact>(dy, x, dx, n, t, streaming);
}

/// Elements per run of short rows: long enough to prefetch whole pages, short
/// enough for five tables in the L1 cache.
constexpr int64_t kRunElements = 1568;

inline double sumOf(const float *values, int64_t n) {
  Vector sum = {};
  for (int64_t i = 0; i < n; i += kLanes)
    sum += F32::load(values + i, firstLanes(std::min(n - i, kLanes)));
  return sumLanes(sum);
}

/// Both sums of channel c of a run of short rows of n elements.
template <bool kExact>
static Sums sumsOfChannel(const Tables &t, int64_t c, int64_t n) {
  const float *dy = t.sumDy + c * n, *dyXmu = t.sumDyXmu + c * n;
  if constexpr (kExact)
    return {sumExactlyOf(dy, n), sumExactlyOf(dyXmu, n)};
  else
    return {sumOf(dy, n), sumOf(dyXmu, n)};
}

/// Adds the runs of all images to the tables.
template <typename E, bool kExact>
static void addImages(const State &s, const typename E::Type *dy,
                      const typename E::Type *x, int64_t n, int64_t stride,
                      const Tables &t, float *sums, int64_t size) {
  if constexpr (kExact) {
    Chains chains(t, sums, size, s.p.images, s.chain);
    for (int64_t image = 0; image < s.p.images; ++image)
      chains.add<E, 1, true>(dy + image * stride, x + image * stride, n,
                             stride);
    chains.finish(size);
  } else {
    std::fill(t.sumDy, t.sumDy + 2 * size, 0.0f);
    for (int64_t image = 0; image < s.p.images; ++image)
      addRuns<E, 1, true>(dy + image * stride, x + image * stride, n, stride,
                          t);
  }
}

template <typename E, bool kExact> static void runShortRows(State &s) {
  using T = typename E::Type;
  const Problem &p = s.p;
  int64_t n = p.spatial();
  // Channels per run: a multiple of 16 elements, so that runs begin on lines.
  int64_t unit = 32;
  for (; unit > 1 && unit / 2 * n % 32 == 0; unit /= 2)
    ;
  int64_t block = std::max<int64_t>(1, kRunElements / (unit * n)) * unit;
  // If there are few channels, every thread still gets some.
  while (block > unit && (p.channels + block - 1) / block < p.threads)
    block -= unit;
  if (p.channels <= block)
    block = std::max<int64_t>(1, (p.channels + p.threads - 1) / p.threads);
  int64_t blocks = (p.channels + block - 1) / block;
  int64_t size = (block * n + kLanes - 1) / kLanes * kLanes;
#pragma omp parallel num_threads(p.threads)
  {
    int thread = omp_get_thread_num();
    Tables t(s.scratch[thread], size);
    Range range = shareOf(blocks, thread, omp_get_num_threads());
    for (int64_t i = range.begin; i < range.end; ++i) {
      int64_t first = i * block;
      int64_t channels = std::min(block, p.channels - first);
      int64_t length = channels * n, stride = p.channels * n;
      for (int64_t c = 0; c < channels; ++c)
        std::fill(t.mean + c * n, t.mean + (c + 1) * n, p.mean[first + c]);
      auto *dy = static_cast<const T *>(p.gradOutput) + first * n;
      auto *x = static_cast<const T *>(p.input) + first * n;
      auto *dx = static_cast<T *>(p.gradInput) + first * n;
      addImages<E, kExact>(s, dy, x, length, stride, t,
                           s.scratch[thread] + 4 * size, size);
      for (int64_t c = 0; c < channels; ++c) {
        Sums sums = sumsOfChannel<kExact>(t, c, n);
        writeParameters(s, first + c, sums);
        Coefficients f = finish(s, first + c, sums);
        std::fill(t.a + c * n, t.a + (c + 1) * n, f.a);
        std::fill(t.b + c * n, t.b + (c + 1) * n, f.b);
        std::fill(t.k + c * n, t.k + (c + 1) * n, f.k);
      }
      for (int64_t image = 0; image < p.images; ++image)
        applyRun<E, kExact, true>(dy + image * stride, x + image * stride,
                                  dx + image * stride, length, t, s.streaming);
    }
    _mm_sfence();
  }
}

/// Rows folded into one run: whole vectors, at least 64 elements.
inline int64_t foldOf(int64_t channels) {
  int64_t fold = 1;
  while (channels * fold % 32 != 0 || channels * fold < 64)
    fold *= 2;
  return fold;
}

template <typename E>
[[gnu::always_inline]] static inline void
addRowMajor(const typename E::Type *dy, const typename E::Type *x, int64_t runs,
            int64_t n, const Tables &t) {
  // With fewer registers, no sums would stay in them.
  switch (kRegisters == 32 ? n / kLanes : 0) {
  case 4:
    return addNarrowRuns<E, 4>(dy, x, runs, t);
  case 6:
    return addNarrowRuns<E, 6>(dy, x, runs, t);
  case 8:
    return addNarrowRuns<E, 8>(dy, x, runs, t);
  default:
    break;
  }
  int64_t run = 0;
  // More than four streams of long rows are too many for the prefetcher.
  if (n <= 256)
    for (; run + 4 <= runs; run += 4)
      addRuns<E, 4>(dy + run * n, x + run * n, n, n, t);
  for (; run < runs; ++run)
    addRuns<E, 1>(dy + run * n, x + run * n, n, n, t);
}

/// Bytes of one tensor in a block of the second pass: 2 to 8 % faster than one
/// block; 128 KiB is up to 8 % slower.
constexpr int64_t kBlockBytes = 1 << 20;

/// grad_input of a range of runs of n elements, row-major.
template <typename E, bool kExact>
[[gnu::always_inline]] static inline void
applyRunsOf(const State &s, Range range, int64_t n, const Tables &t) {
  using T = typename E::Type;
  auto *dy = static_cast<const T *>(s.p.gradOutput);
  auto *x = static_cast<const T *>(s.p.input);
  auto *dx = static_cast<T *>(s.p.gradInput);
  int64_t elements = s.p.elements();
  // Blocks in reverse order, as the last ones are still in cache; forwards
  // within a block, in the direction of prefetching.
  int64_t block = std::max<int64_t>(1, kBlockBytes / (n * sizeof(T)));
  for (int64_t end = range.end; end > range.begin; end -= block)
    for (int64_t run = std::max(range.begin, end - block); run < end; ++run)
      applyRun<E, kExact>(dy + run * n, x + run * n, dx + run * n,
                          std::min(n, elements - run * n), t, s.streaming);
}

template <typename E> static void runRowMajor(State &s) {
  using T = typename E::Type;
  const Problem &p = s.p;
  int64_t channels = p.channels, rows = p.images * p.spatial();
  int64_t n = channels * foldOf(channels);
  int64_t elements = rows * channels;
  // The last run may be shorter; it belongs to the last thread.
  int64_t runs = (elements + n - 1) / n;
  int threads = std::min<int64_t>(p.threads, runs);
#pragma omp parallel num_threads(threads)
  {
    int thread = omp_get_thread_num();
    Tables t(s.scratch[thread], n);
    Range range = shareOf(runs, thread, threads);
    auto *dy = static_cast<const T *>(p.gradOutput);
    auto *x = static_cast<const T *>(p.input);
    std::fill(t.sumDy, t.sumDy + 2 * n, 0.0f);
    for (int64_t i = 0; i < n; i += channels)
      std::copy(p.mean, p.mean + channels, t.mean + i);
    int64_t whole = std::min(range.end, elements / n);
    addRowMajor<E>(dy + range.begin * n, x + range.begin * n,
                   whole - range.begin, n, t);
    if (whole < range.end)
      addRuns<E, 1>(dy + whole * n, x + whole * n, elements - whole * n, 0, t);
#pragma omp barrier
    // Every thread adds all partial sums. The tables of a and b replace the
    // sums, so they are built after them.
    float *a = s.scratch[thread] + 4 * n, *b = a + n;
    for (int64_t c = 0; c < channels; ++c) {
      Sums sums;
      for (int other = 0; other < threads; ++other) {
        Tables o(s.scratch[other], n);
        for (int64_t i = c; i < n; i += channels) {
          sums.dy += o.sumDy[i];
          sums.dyXmu += o.sumDyXmu[i];
        }
      }
      if (thread == 0)
        writeParameters(s, c, sums);
      Coefficients f = finish(s, c, sums);
      a[c] = f.a;
      b[c] = f.b;
      t.k[c] = f.k;
    }
    for (int64_t i = channels; i < n; i += channels) {
      std::copy(a, a + channels, a + i);
      std::copy(b, b + channels, b + i);
      std::copy(t.k, t.k + channels, t.k + i);
    }
    t.a = a;
    t.b = b;
    applyRunsOf<E, false>(s, range, n, t);
    _mm_sfence();
  }
}

#endif // BNGRAD_BENCH_NATIVE_HANDRUNS_H
