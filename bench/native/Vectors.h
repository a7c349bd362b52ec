//===- Vectors.h - vectors of elements as f32 -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The types of elements of the kernel written by hand. The operations on a
// Vector are those of the instruction set for which this is compiled.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_BENCH_NATIVE_VECTORS_H
#define BNGRAD_BENCH_NATIVE_VECTORS_H

#include <cstring>

#if defined(__AVX512F__)
#include "VectorsAVX512.h"
#elif defined(__AVX2__)
#include "VectorsAVX2.h"
#else
#error "expected AVX2 or AVX-512"
#endif

/// Elements as f64.
constexpr int64_t kDoubles = 8;
using Doubles = double __attribute__((ext_vector_type(kDoubles)));
using Floats = float __attribute__((ext_vector_type(kDoubles)));

/// The first `count` elements, and zeros.
inline Doubles loadDoubles(const float *p, int64_t count) {
  Floats v = {};
  if (count == kDoubles)
    std::memcpy(&v, p, sizeof v);
  else
    std::memcpy(&v, p, count * sizeof(float));
  return __builtin_convertvector(v, Doubles);
}

/// Rounds, and stores the first `count` elements.
inline void storeAsFloats(float *p, Doubles v, int64_t count) {
  Floats rounded = __builtin_convertvector(v, Floats);
  if (count == kDoubles)
    std::memcpy(p, &rounded, sizeof rounded);
  else
    std::memcpy(p, &rounded, count * sizeof(float));
}

/// Vectors in a cache line of elements of type T.
template <typename T>
constexpr int64_t kVectorsOfLine = 64 / sizeof(T) / kLanes;

struct F32 {
  using Type = float;
  static Vector load(const float *p) { return loadFloats(p); }
  static Vector load(const float *p, Mask mask) { return loadFloats(p, mask); }
  static void store(float *p, Vector v) { storeFloats(p, v); }
  static void store(float *p, Vector v, Mask mask) { storeFloats(p, v, mask); }
  /// Writes a line.
  static void stream(float *p, const Vector *v) {
    for (int64_t j = 0; j < kVectorsOfLine<float>; ++j)
      streamFloats(p + j * kLanes, v[j]);
  }
};

/// Common code of the two 16-bit types; `Convert` converts to f32 and back.
template <typename Convert> struct Half {
  using Type = uint16_t;
  static Vector load(const uint16_t *p) {
    return Convert::extend(loadHalves(p));
  }
  static Vector load(const uint16_t *p, Mask mask) {
    return Convert::extend(loadHalves(p, mask));
  }
  static void store(uint16_t *p, Vector v) {
    storeHalves(p, Convert::truncate(v));
  }
  static void store(uint16_t *p, Vector v, Mask mask) {
    storeHalves(p, Convert::truncate(v), mask);
  }
  static void stream(uint16_t *p, const Vector *v) {
    for (int64_t j = 0; j < kVectorsOfLine<uint16_t>; j += 2)
      streamHalves(p + j * kLanes, Convert::truncate(v[j]),
                   Convert::truncate(v[j + 1]));
  }
};

struct ConvertBF16 {
  static Vector extend(Halves v) { return extendBF16(v); }
  static Halves truncate(Vector v) { return roundToBF16(v); }
};

struct ConvertExactBF16 : ConvertBF16 {
  static Halves truncate(Vector v) { return roundExactlyToBF16(v); }
};

struct ConvertF16 {
  static Vector extend(Halves v) { return extendF16(v); }
  static Halves truncate(Vector v) { return roundToF16(v); }
};

using BF16 = Half<ConvertBF16>;
using F16 = Half<ConvertF16>;

/// Stores as BF16 does. Where that is wrong for a result, the schedules repeat
/// the stores with `Exact`.
struct CheckedBF16 : BF16 {
  using Exact = Half<ConvertExactBF16>;
};

/// Whether results of any type must be stored again.
template <typename E> struct RareResults {
  void add(Vector) {}
  static constexpr bool any() { return false; }
};

template <> struct RareResults<CheckedBF16> : RareLanes {};

#endif // BNGRAD_BENCH_NATIVE_VECTORS_H
