//===- Hand.h - common code of the hand-written schedules -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_BENCH_NATIVE_HAND_H
#define BNGRAD_BENCH_NATIVE_HAND_H

#include "Peer.h"
#include "Vectors.h"

#include <cmath>
#include <cstdlib>
#include <type_traits>
#include <vector>

/// As computeGradInput takes them. Exact form: the gain, the slope, and the
/// mean of grad_output. Bare form: the gain, and the negative products with it.
struct Coefficients {
  float a, b, k, mean;
};

struct Sums {
  double dy = 0, dyXmu = 0;
};

struct State {
  Problem p;
  /// Elements per channel.
  double count;
  /// Whether grad_input is written by streaming stores.
  bool streaming;
  bool isExact;
  /// Terms of a chain of the exact form.
  int64_t chain;
  /// Scratch memory of each thread, in floats, on separate cache lines.
  std::vector<float *> scratch;
  /// Scratch memory of all threads together.
  float *shared = nullptr;

  ~State() {
    for (float *s : scratch)
      std::free(s);
    std::free(shared);
  }
};

inline Coefficients finish(const State &s, int64_t c, const Sums &sums) {
  const Problem &p = s.p;
  double r = 1 / std::sqrt(double(p.variance[c]) + p.epsilon);
  double a = p.scale[c] * r, slope = r * r * sums.dyXmu / s.count,
         meanDy = sums.dy / s.count;
  if (s.isExact)
    return {float(a), float(slope), float(meanDy), p.mean[c]};
  return {float(a), float(-a * slope), float(-a * meanDy), p.mean[c]};
}

/// grad_input of elements d of grad_output and input - mean. The exact form is
/// the formula as written, which docs/numerics.md, section 6, promises for
/// infinities. The bare form has one operation less.
template <bool kExact>
static Vector computeGradInput(Vector d, Vector centered, Vector a, Vector b,
                               Vector k) {
  if constexpr (kExact)
    return a * multiplyAdd(-centered, b, d - k);
  else
    return multiplyAdd(d, a, multiplyAdd(centered, b, k));
}

inline void writeParameters(const State &s, int64_t c, const Sums &sums) {
  double r = 1 / std::sqrt(double(s.p.variance[c]) + s.p.epsilon);
  s.p.gradScale[c] = sums.dyXmu * r;
  s.p.gradOffset[c] = sums.dy;
}

struct Range {
  int64_t begin, end;
};

inline Range shareOf(int64_t count, int64_t thread, int64_t threads) {
  return {count * thread / threads, count * (thread + 1) / threads};
}

/// The exact form divides the sums of a channel into at most as many parts, for
/// any number of threads.
constexpr int64_t kMaxParts = 32;

template <bool kPrefetch> static void prefetch(const void *address) {
  if constexpr (kPrefetch)
    _mm_prefetch(static_cast<const char *>(address), _MM_HINT_T1);
}

//===----------------------------------------------------------------------===//
// Sums of the exact form
//===----------------------------------------------------------------------===//

/// Terms of a chain for channels of `count` elements, as in docs/numerics.md,
/// section 4.
inline int64_t chainLength(double count) {
  return count >= 4096 ? 32 : count >= 256 ? 16 : 8;
}

/// A sum of chains, with its rounding error.
struct ExactSum {
  Vector sum = {}, error = {};

  /// Adds a chain by TwoSum. An infinite sum has no error.
  void add(Vector chain) {
    Vector a = chain + error;
    Vector s = sum + a;
    Vector z = s - sum;
    Vector e = (sum - (s - z)) + (a - z);
    sum = s;
    error = dropNaNs(e);
  }

  Vector total() const { return sum + error; }
};

#endif // BNGRAD_BENCH_NATIVE_HAND_H
