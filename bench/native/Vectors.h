//===- Vectors.h - vectors of 16 elements as f32 ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_BENCH_NATIVE_VECTORS_H
#define BNGRAD_BENCH_NATIVE_VECTORS_H

#include <cstdint>
#include <immintrin.h>

constexpr int64_t kLanes = 16;

struct F32 {
  using Type = float;
  static __m512 load(const float *p) { return _mm512_loadu_ps(p); }
  static __m512 load(const float *p, __mmask16 mask) {
    return _mm512_maskz_loadu_ps(mask, p);
  }
  static void store(float *p, __m512 v) { _mm512_storeu_ps(p, v); }
  static void store(float *p, __m512 v, __mmask16 mask) {
    _mm512_mask_storeu_ps(p, mask, v);
  }
  static void stream(float *p, const __m512 *v) { _mm512_stream_ps(p, v[0]); }
};

/// Common code of the two 16-bit types; `Convert` converts to f32 and back.
template <typename Convert> struct Half {
  using Type = uint16_t;
  static __m512 load(const uint16_t *p) {
    return Convert::extend(
        _mm256_loadu_si256(reinterpret_cast<const __m256i *>(p)));
  }
  static __m512 load(const uint16_t *p, __mmask16 mask) {
    return Convert::extend(_mm256_maskz_loadu_epi16(mask, p));
  }
  static void store(uint16_t *p, __m512 v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(p), Convert::truncate(v));
  }
  static void store(uint16_t *p, __m512 v, __mmask16 mask) {
    _mm256_mask_storeu_epi16(p, mask, Convert::truncate(v));
  }
  static void stream(uint16_t *p, const __m512 *v) {
    __m512i line =
        _mm512_inserti64x4(_mm512_castsi256_si512(Convert::truncate(v[0])),
                           Convert::truncate(v[1]), 1);
    _mm512_stream_si512(reinterpret_cast<__m512i *>(p), line);
  }
};

struct ConvertBF16 {
  static __m512 extend(__m256i v) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
  }
  static __m256i truncate(__m512 v) { return __m256i(_mm512_cvtneps_pbh(v)); }
};

inline __mmask16 findSubnormals(__m512 v) {
  constexpr int kSubnormal = 0x20;
  return _mm512_fpclass_ps_mask(v, kSubnormal);
}

/// The instruction flushes subnormal numbers to zero, so these are rounded
/// here.
struct ConvertExactBF16 : ConvertBF16 {
  static __m256i truncate(__m512 v) {
    __m512i bits = _mm512_castps_si512(v);
    __m512i isOdd =
        _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    bits = _mm512_add_epi32(bits,
                            _mm512_add_epi32(_mm512_set1_epi32(0x7FFF), isOdd));
    return _mm256_mask_mov_epi16(
        ConvertBF16::truncate(v), findSubnormals(v),
        _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
  }
};

struct ConvertF16 {
  static __m512 extend(__m256i v) { return _mm512_cvtph_ps(v); }
  static __m256i truncate(__m512 v) {
    return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};

using BF16 = Half<ConvertBF16>;
using F16 = Half<ConvertF16>;

/// Stores as BF16 does. Where a result is subnormal, the schedules repeat the
/// stores with `Exact`.
struct CheckedBF16 : BF16 {
  using Exact = Half<ConvertExactBF16>;

  /// In assembly: beside the check, clang 22 makes an ordinary store of the
  /// builtin.
  static void stream(uint16_t *p, const __m512 *v) {
    __m512i line =
        _mm512_inserti64x4(_mm512_castsi256_si512(ConvertBF16::truncate(v[0])),
                           ConvertBF16::truncate(v[1]), 1);
    asm volatile("vmovntdq %1, %0"
                 : "=m"(*reinterpret_cast<__m512i *>(p))
                 : "v"(line));
  }
};

/// Whether results of any type are subnormal numbers that must be stored again.
template <typename E> struct SubnormalResults {
  void add(__m512) {}
  static constexpr bool any() { return false; }
};

template <> struct SubnormalResults<CheckedBF16> {
  __mmask16 found = 0;
  void add(__m512 v) { found |= findSubnormals(v); }
  bool any() const { return __builtin_expect(found != 0, false); }
};

inline __mmask16 firstLanes(int64_t count) { return (1u << count) - 1; }

#endif // BNGRAD_BENCH_NATIVE_VECTORS_H
