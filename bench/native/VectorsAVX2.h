//===- VectorsAVX2.h - vectors of 8 elements as f32 -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of Vectors.h for x86-64-v3: AVX2, FMA and F16C.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_BENCH_NATIVE_VECTORSAVX2_H
#define BNGRAD_BENCH_NATIVE_VECTORSAVX2_H

#include <cstdint>
#include <cstring>
#include <immintrin.h>

constexpr int64_t kLanes = 8;
/// Vector registers.
constexpr int kRegisters = 16;

using Vector = __m256;
/// As many elements of 16 bits.
using Halves = __m128i;

/// The first lanes.
struct Mask {
  int64_t count;

  /// With all bits of each of these lanes.
  __m256i expand() const {
    static constexpr int32_t kBits[2 * kLanes] = {-1, -1, -1, -1,
                                                  -1, -1, -1, -1};
    return _mm256_loadu_si256(
        reinterpret_cast<const __m256i *>(kBits + kLanes - count));
  }
};

inline Mask firstLanes(int64_t count) { return {count}; }

inline Vector splat(float value) { return _mm256_set1_ps(value); }
inline Vector loadAligned(const float *p) { return _mm256_load_ps(p); }
inline void storeAligned(float *p, Vector v) { _mm256_store_ps(p, v); }

inline Vector loadFloats(const float *p) { return _mm256_loadu_ps(p); }
inline Vector loadFloats(const float *p, Mask mask) {
  return _mm256_maskload_ps(p, mask.expand());
}
inline void storeFloats(float *p, Vector v) { _mm256_storeu_ps(p, v); }
inline void storeFloats(float *p, Vector v, Mask mask) {
  _mm256_maskstore_ps(p, mask.expand(), v);
}
inline void streamFloats(float *p, Vector v) { _mm256_stream_ps(p, v); }

inline Halves loadHalves(const uint16_t *p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
}
inline void storeHalves(uint16_t *p, Halves v) {
  _mm_storeu_si128(reinterpret_cast<__m128i *>(p), v);
}
/// There are no masks for 16 bits.
inline Halves loadHalves(const uint16_t *p, Mask mask) {
  if (mask.count == kLanes)
    return loadHalves(p);
  uint16_t lanes[kLanes] = {};
  std::memcpy(lanes, p, mask.count * sizeof(uint16_t));
  return loadHalves(lanes);
}
inline void storeHalves(uint16_t *p, Halves v, Mask mask) {
  if (mask.count == kLanes)
    return storeHalves(p, v);
  uint16_t lanes[kLanes];
  storeHalves(lanes, v);
  std::memcpy(p, lanes, mask.count * sizeof(uint16_t));
}
/// In assembly: beside RareLanes, clang 22 makes an ordinary store of the
/// builtin.
inline void streamHalves(uint16_t *p, Halves low, Halves high) {
  __m256i both = _mm256_set_m128i(high, low);
  asm volatile("vmovntdq %1, %0"
               : "=m"(*reinterpret_cast<__m256i *>(p))
               : "x"(both));
}

/// a * b + c.
inline Vector multiplyAdd(Vector a, Vector b, Vector c) {
  return _mm256_fmadd_ps(a, b, c);
}
/// The same in the lanes of `mask`, and c in the others.
inline Vector multiplyAdd(Vector a, Vector b, Vector c, Mask mask) {
  return _mm256_blendv_ps(c, _mm256_fmadd_ps(a, b, c),
                          _mm256_castsi256_ps(mask.expand()));
}
inline float sumLanes(Vector v) {
  __m128 sum = _mm256_castps256_ps128(v) + _mm256_extractf128_ps(v, 1);
  sum += _mm_movehl_ps(sum, sum);
  return sum[0] + sum[1];
}
/// Zero in the lanes that have no number.
inline Vector dropNaNs(Vector v) {
  return _mm256_and_ps(v, _mm256_cmp_ps(v, v, _CMP_ORD_Q));
}

inline Vector extendBF16(Halves v) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}
inline Vector extendF16(Halves v) { return _mm256_cvtph_ps(v); }
inline Halves roundToF16(Vector v) {
  return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/// The upper halves of the elements.
inline Halves takeUpperHalves(__m256i bits) {
  bits = _mm256_srli_epi32(bits, 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(bits),
                          _mm256_extracti128_si256(bits, 1));
}

/// Right for all but NaN.
inline Halves roundToBF16(Vector v) {
  __m256i bits = _mm256_castps_si256(v);
  __m256i isOdd =
      _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  return takeUpperHalves(_mm256_add_epi32(
      bits, _mm256_add_epi32(_mm256_set1_epi32(0x7FFF), isOdd)));
}

/// Of NaN: quiet, with the first bits of its payload.
inline Halves roundExactlyToBF16(Vector v) {
  __m256i quiet =
      _mm256_or_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x400000));
  __m256i isNaN = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  return _mm_blendv_epi8(roundToBF16(v), takeUpperHalves(quiet),
                         takeUpperHalves(isNaN));
}

/// Whether there was a lane for which roundToBF16 is wrong.
class RareLanes {
public:
  void add(Vector v) {
    found = _mm256_or_ps(found, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  }
  bool any() const {
    return __builtin_expect(_mm256_movemask_ps(found) != 0, false);
  }

private:
  Vector found = _mm256_setzero_ps();
};

#endif // BNGRAD_BENCH_NATIVE_VECTORSAVX2_H
