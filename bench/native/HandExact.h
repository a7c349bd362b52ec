//===- HandExact.h - the exact form of row-major by hand --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_BENCH_NATIVE_HANDEXACT_H
#define BNGRAD_BENCH_NATIVE_HANDEXACT_H

#include "HandRuns.h"

/// The parts of the rows that have sums of their own: at least 64 rows and 8192
/// elements each.
inline int64_t rowMajorParts(const Problem &p) {
  int64_t rows = p.images * p.spatial(), parts = 1;
  while (2 * parts <= std::min({kMaxParts, rows / 64, p.elements() / 8192}))
    parts *= 2;
  return parts;
}

/// Memory that all threads share: coefficients by channel, and the sums of each
/// part by channel.
struct SharedTables {
  int64_t width;
  float *a, *b, *k, *partials;

  SharedTables(float *memory, int64_t channels)
      : width(roundUp(channels)), a(memory), b(a + width), k(b + width),
        partials(k + width) {}

  float *dy(int64_t part) const { return partials + 2 * part * width; }
  float *dyXmu(int64_t part) const { return dy(part) + width; }

  /// In floats.
  static int64_t size(int64_t channels) {
    return (3 + 2 * kMaxParts) * roundUp(channels);
  }

private:
  static int64_t roundUp(int64_t channels) {
    return (channels + kLanes - 1) / kLanes * kLanes;
  }
};

/// Vectors of a run of n elements whose chains and means fit into the
/// registers together; 0 for long runs.
inline int64_t narrowVectors(int64_t n) {
  return n > 128 ? 0 : kRegisters == 32 ? n / kLanes : 4;
}

/// Adds `runs` runs of n elements to the chains.
template <typename E>
static void addRowMajorExactly(const typename E::Type *dy,
                               const typename E::Type *x, int64_t runs,
                               int64_t n, Chains &chains) {
  int64_t run = 0;
  switch (narrowVectors(n)) {
  case 4:
    chains.addNarrow<E, 4>(dy, x, runs, n);
    run = runs;
    break;
  case 6:
    chains.addNarrow<E, 6>(dy, x, runs, n);
    run = runs;
    break;
  case 8:
    chains.addNarrow<E, 8>(dy, x, runs, n);
    run = runs;
    break;
  default:
    // As in addRowMajor.
    if (n <= 256)
      for (; run + 4 <= runs; run += 4)
        chains.add<E, 4>(dy + run * n, x + run * n, n, n);
    for (; run < runs; ++run)
      chains.add<E, 1>(dy + run * n, x + run * n, n, n);
  }
}

/// Adds the entries of each channel in a table of n, by a tree.
inline void addFolds(float *table, int64_t n, int64_t channels, float *sums) {
  for (int64_t half = n / 2; half >= channels; half /= 2)
    for (int64_t i = 0; i < half; ++i)
      table[i] += table[half + i];
  std::copy(table, table + channels, sums);
}

/// The coefficients in `t` of `channels` from the sums of all parts, as
/// `finish` computes them, and the results if `writes`.
inline void finishChannels(const State &s, const SharedTables &shared,
                           Range channels, int64_t parts, const Tables &t,
                           bool writes) {
  const Problem &p = s.p;
  for (int64_t c = channels.begin; c < channels.end; c += kDoubles) {
    int64_t lanes = std::min(kDoubles, channels.end - c);
    auto load = [&](const float *values) {
      return loadDoubles(values + c, lanes);
    };
    auto store = [&](float *values, Doubles v) {
      storeAsFloats(values + c, v, lanes);
    };
    Doubles dy = {}, dyXmu = {};
    for (int64_t part = 0; part < parts; ++part) {
      dy += load(shared.dy(part));
      dyXmu += load(shared.dyXmu(part));
    }
    Doubles r = 1 / __builtin_elementwise_sqrt(load(p.variance) + p.epsilon);
    store(t.a, load(p.scale) * r);
    store(t.b, r * r * dyXmu / s.count);
    store(t.k, dy / s.count);
    if (writes) {
      store(p.gradScale, dyXmu * r);
      store(p.gradOffset, dy);
    }
  }
}

/// The exact form of runRowMajor. A thread takes a range of parts, for the sums
/// and for grad_input.
template <typename E> static void runRowMajorExactly(State &s) {
  using T = typename E::Type;
  const Problem &p = s.p;
  int64_t channels = p.channels, elements = p.elements();
  int64_t n = channels * foldOf(channels);
  int64_t runs = (elements + n - 1) / n, parts = rowMajorParts(p);
  SharedTables shared(s.shared, channels);
#pragma omp parallel num_threads(std::min<int64_t>(p.threads, parts))
  {
    int thread = omp_get_thread_num(), threads = omp_get_num_threads();
    Tables t(s.scratch[thread], n);
    auto repeat = [&](float *table) {
      for (int64_t filled = channels; filled < n; filled *= 2)
        std::copy(table, table + filled, table + filled);
    };
    std::copy(p.mean, p.mean + channels, t.mean);
    repeat(t.mean);
    Range own = shareOf(parts, thread, threads);
    for (int64_t part = own.begin; part < own.end; ++part) {
      Range range = shareOf(runs, part, parts);
      Chains chains(t, s.scratch[thread] + 4 * n, n, range.end - range.begin,
                    s.chain);
      auto *dy = static_cast<const T *>(p.gradOutput) + range.begin * n;
      auto *x = static_cast<const T *>(p.input) + range.begin * n;
      int64_t whole = std::min(range.end, elements / n) - range.begin;
      int64_t rest =
          std::min(range.end * n, elements) - (range.begin + whole) * n;
      addRowMajorExactly<E>(dy, x, whole, n, chains);
      chains.finish(n);
      if (rest > 0)
        addRuns<E, 1>(dy + whole * n, x + whole * n, rest, 0, t);
      addFolds(t.sumDy, n, channels, shared.dy(part));
      addFolds(t.sumDyXmu, n, channels, shared.dyXmu(part));
    }
#pragma omp barrier
    if (n == channels) {
      // Each thread finishes a share of the channels, for all of them.
      t.a = shared.a;
      t.b = shared.b;
      t.k = shared.k;
      Range its = shareOf(n / kLanes, thread, threads);
      finishChannels(s, shared, {its.begin * kLanes, its.end * kLanes}, parts,
                     t, true);
#pragma omp barrier
    } else {
      finishChannels(s, shared, {0, channels}, parts, t, thread == 0);
      for (float *table : {t.a, t.b, t.k})
        repeat(table);
    }
    Range range = {shareOf(runs, own.begin, parts).begin,
                   shareOf(runs, own.end, parts).begin};
    applyRunsOf<E, true>(s, range, n, t);
    _mm_sfence();
  }
}

#endif // BNGRAD_BENCH_NATIVE_HANDEXACT_H
