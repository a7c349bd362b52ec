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

  /// Adds contiguous runs of kVectors vectors, with the chains in registers.
  template <typename E, int kVectors>
  void addNarrow(const typename E::Type *dy, const typename E::Type *x,
                 int64_t runs) {
    constexpr int64_t kWidth = kVectors * kLanes;
    __m512 mean[kVectors];
    for (int j = 0; j < kVectors; ++j)
      mean[j] = _mm512_load_ps(t.mean + j * kLanes);
    for (int64_t first = 0; first < runs; first += length) {
      __m512 chainDy[kVectors] = {}, chainDyXmu[kVectors] = {};
      for (int64_t run = first; run < std::min(first + length, runs);
           ++run, dy += kWidth, x += kWidth)
        for (int j = 0; j < kVectors; ++j) {
          __m512 d = E::load(dy + j * kLanes);
          __m512 m = _mm512_sub_ps(E::load(x + j * kLanes), mean[j]);
          chainDy[j] = _mm512_add_ps(chainDy[j], d);
          chainDyXmu[j] = _mm512_fmadd_ps(d, m, chainDyXmu[j]);
        }
      // Otherwise the chains are in memory, not in registers.
#pragma clang loop unroll(full)
      for (int j = 0; j < kVectors; ++j)
        end(j * kLanes, chainDy[j], chainDyXmu[j]);
    }
  }

  /// Replaces the chains by the sums of all of them.
  void finish(int64_t n) {
    if (isSingle)
      return;
    for (int64_t i = 0; i < n; i += kLanes) {
      if (count > 0)
        end(i, _mm512_load_ps(t.sumDy + i), _mm512_load_ps(t.sumDyXmu + i));
      _mm512_store_ps(t.sumDy + i, loadSum(sums + i, errors + i).total());
      _mm512_store_ps(t.sumDyXmu + i,
                      loadSum(sums + size + i, errors + size + i).total());
    }
  }

private:
  /// An entry of the tables of sums.
  static ExactSum loadSum(const float *sum, const float *error) {
    return {_mm512_load_ps(sum), _mm512_load_ps(error)};
  }

  static void addToSum(float *sum, float *error, __m512 chain) {
    ExactSum total = loadSum(sum, error);
    total.add(chain);
    _mm512_store_ps(sum, total.sum);
    _mm512_store_ps(error, total.error);
  }

  /// Ends the chains of a vector.
  void end(int64_t i, __m512 chainDy, __m512 chainDyXmu) {
    if (isSingle) {
      _mm512_store_ps(t.sumDy + i, chainDy);
      _mm512_store_ps(t.sumDyXmu + i, chainDyXmu);
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
      __m512 chainDy = {}, chainDyXmu = {};
      if constexpr (!kBegins) {
        chainDy = _mm512_load_ps(tableDy + i);
        chainDyXmu = _mm512_load_ps(tableDyXmu + i);
      }
      __m512 mean = _mm512_load_ps(means + i);
      for (int j = 0; j < kRuns; ++j) {
        __m512 d = E::load(dy + i + j * stride, mask...);
        __m512 m = _mm512_sub_ps(E::load(x + i + j * stride, mask...), mean);
        chainDy = _mm512_add_ps(chainDy, d);
        chainDyXmu = _mm512_fmadd_ps(d, m, chainDyXmu);
      }
      if constexpr (kEnds) {
        addToSum(sumDy + i, errorDy + i, chainDy);
        addToSum(sumDyXmu + i, errorDyXmu + i, chainDyXmu);
      } else {
        _mm512_store_ps(tableDy + i, chainDy);
        _mm512_store_ps(tableDyXmu + i, chainDyXmu);
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
  __m512d sum = _mm512_setzero_pd();
  for (int64_t i = 0; i < n; i += kLanes) {
    __m512 v = F32::load(values + i, firstLanes(std::min(n - i, kLanes)));
    __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(v));
    __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
    sum = _mm512_add_pd(sum, _mm512_add_pd(low, high));
  }
  return _mm512_reduce_add_pd(sum);
}

#endif // BNGRAD_BENCH_NATIVE_HANDCHAINS_H
