//===- HandChains.h - sums of the exact form in tables ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_BENCH_NATIVE_HANDCHAINS_H
#define BNGRAD_BENCH_NATIVE_HANDCHAINS_H

#include "Hand.h"

#include <algorithm>

/// Tables of a run, contiguous in scratch memory.
struct Tables {
  float *sumDy, *sumDyXmu, *mean;
  float *a, *b, *k;

  Tables(float *scratch, int64_t size)
      : sumDy(scratch), sumDyXmu(scratch + size), mean(scratch + 2 * size),
        a(scratch), b(scratch + size), k(scratch + 3 * size) {}
};

/// Sums over runs in the exact form. Chains are in the tables of sums; their
/// sums and the errors of these in four other tables. A single chain needs only
/// the former.
class Chains {
public:
  /// For up to `terms` runs. `sums` has 4 * size floats.
  Chains(const Tables &t, float *sums, int64_t size, int64_t terms,
         int64_t length)
      : t(t), sums(sums), errors(sums + 2 * size), size(size), length(length),
        isSingle(terms <= length) {
    std::fill(t.sumDy, t.sumDy + 2 * size, 0.0f);
    if (!isSingle)
      std::fill(sums, sums + 4 * size, 0.0f);
  }

  /// Adds kRuns runs of n elements, `stride` elements apart. With kPrefetch,
  /// `stride` is the prefetch distance in elements.
  template <typename E, int kRuns, bool kPrefetch = false>
  void add(const typename E::Type *dy, const typename E::Type *x, int64_t n,
           int64_t stride) {
    bool begins = count == 0;
    count += kRuns;
    if (count >= length && !isSingle) {
      count = 0;
      if (begins)
        addRuns<E, kRuns, kPrefetch, true, true>(dy, x, n, stride);
      else
        addRuns<E, kRuns, kPrefetch, false, true>(dy, x, n, stride);
    } else if (begins) {
      addRuns<E, kRuns, kPrefetch, true, false>(dy, x, n, stride);
    } else {
      addRuns<E, kRuns, kPrefetch, false, false>(dy, x, n, stride);
    }
  }

  /// Adds contiguous runs of n elements, with the chains of kVectors vectors in
  /// registers. A chain ends before those of the next vectors begin.
  template <typename E, int kVectors>
  void addNarrow(const typename E::Type *dy, const typename E::Type *x,
                 int64_t runs, int64_t n) {
    for (int64_t first = 0; first < runs; first += length)
      for (int64_t i = 0; i < n; i += kVectors * kLanes)
        addChains<E, kVectors>(dy + first * n, x + first * n,
                               std::min(length, runs - first), n, i);
  }

  /// Replaces the chains by the sums of all of them.
  void finish(int64_t n) {
    if (isSingle)
      return;
    for (int64_t i = 0; i < n; i += kLanes) {
      if (count > 0)
        end(i, loadAligned(t.sumDy + i), loadAligned(t.sumDyXmu + i));
      storeAligned(t.sumDy + i, loadSum(sums + i, errors + i).total());
      storeAligned(t.sumDyXmu + i,
                   loadSum(sums + size + i, errors + size + i).total());
    }
  }

private:
  /// Adds a chain of elements [i, i + kVectors * kLanes) of runs.
  template <typename E, int kVectors>
  void addChains(const typename E::Type *dy, const typename E::Type *x,
                 int64_t runs, int64_t n, int64_t i) {
    Vector mean[kVectors], chainDy[kVectors] = {}, chainDyXmu[kVectors] = {};
    for (int j = 0; j < kVectors; ++j)
      mean[j] = loadAligned(t.mean + i + j * kLanes);
    for (int64_t run = 0; run < runs; ++run)
      for (int j = 0; j < kVectors; ++j) {
        Vector d = E::load(dy + run * n + i + j * kLanes);
        Vector m = E::load(x + run * n + i + j * kLanes) - mean[j];
        chainDy[j] += d;
        chainDyXmu[j] = multiplyAdd(d, m, chainDyXmu[j]);
      }
    // Otherwise the chains are in memory, not in registers.
#pragma clang loop unroll(full)
    for (int j = 0; j < kVectors; ++j)
      end(i + j * kLanes, chainDy[j], chainDyXmu[j]);
  }

  /// An entry of the tables of sums.
  static ExactSum loadSum(const float *sum, const float *error) {
    return {loadAligned(sum), loadAligned(error)};
  }

  static void addToSum(float *sum, float *error, Vector chain) {
    ExactSum total = loadSum(sum, error);
    total.add(chain);
    storeAligned(sum, total.sum);
    storeAligned(error, total.error);
  }

  /// Ends the chains of a vector.
  void end(int64_t i, Vector chainDy, Vector chainDyXmu) {
    if (isSingle) {
      storeAligned(t.sumDy + i, chainDy);
      storeAligned(t.sumDyXmu + i, chainDyXmu);
      return;
    }
    addToSum(sums + i, errors + i, chainDy);
    addToSum(sums + size + i, errors + size + i, chainDyXmu);
  }

  template <typename E, int kRuns, bool kPrefetch, bool kBegins, bool kEnds>
  void addRuns(const typename E::Type *dy, const typename E::Type *x, int64_t n,
               int64_t stride) {
    // Stores of vectors may change members, as far as the compiler knows.
    float *tableDy = t.sumDy, *tableDyXmu = t.sumDyXmu;
    const float *means = t.mean;
    float *sumDy = sums, *sumDyXmu = sums + size;
    float *errorDy = errors, *errorDyXmu = errors + size;
    auto addVector = [=](int64_t i, auto... mask) {
      Vector chainDy = {}, chainDyXmu = {};
      if constexpr (!kBegins) {
        chainDy = loadAligned(tableDy + i);
        chainDyXmu = loadAligned(tableDyXmu + i);
      }
      Vector mean = loadAligned(means + i);
      for (int j = 0; j < kRuns; ++j) {
        Vector d = E::load(dy + i + j * stride, mask...);
        Vector m = E::load(x + i + j * stride, mask...) - mean;
        chainDy += d;
        chainDyXmu = multiplyAdd(d, m, chainDyXmu);
      }
      if constexpr (kEnds) {
        addToSum(sumDy + i, errorDy + i, chainDy);
        addToSum(sumDyXmu + i, errorDyXmu + i, chainDyXmu);
      } else {
        storeAligned(tableDy + i, chainDy);
        storeAligned(tableDyXmu + i, chainDyXmu);
      }
    };
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      prefetch<kPrefetch>(dy + i + stride);
      prefetch<kPrefetch>(x + i + stride);
      addVector(i);
    }
    if (i < n)
      addVector(i, firstLanes(n - i));
  }

  const Tables &t;
  float *sums, *errors;
  int64_t size, length;
  bool isSingle;
  /// Terms of the current chains.
  int64_t count = 0;
};

/// The sum in f64, so that its error does not grow with n.
inline double sumExactlyOf(const float *values, int64_t n) {
  Doubles sum = {};
  for (int64_t i = 0; i < n; i += kDoubles)
    sum += loadDoubles(values + i, std::min(n - i, kDoubles));
  double total = 0;
  for (int64_t j = 0; j < kDoubles; ++j)
    total += sum[j];
  return total;
}

#endif // BNGRAD_BENCH_NATIVE_HANDCHAINS_H
