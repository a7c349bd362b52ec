//===- VectorsAVX512.h - vectors of 16 elements as f32 ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of Vectors.h for AVX-512, with its instructions for bf16 or without.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_BENCH_NATIVE_VECTORSAVX512_H
#define BNGRAD_BENCH_NATIVE_VECTORSAVX512_H

#include <cstdint>
#include <immintrin.h>

constexpr int64_t kLanes = 16;
/// Vector registers.
constexpr int kRegisters = 32;

using Vector = __m512;
/// As many elements of 16 bits.
using Halves = __m256i;
using Mask = __mmask16;

inline Mask firstLanes(int64_t count) { return (1u << count) - 1; }

inline Vector splat(float value) { return _mm512_set1_ps(value); }
inline Vector loadAligned(const float *p) { return _mm512_load_ps(p); }
inline void storeAligned(float *p, Vector v) { _mm512_store_ps(p, v); }

inline Vector loadFloats(const float *p) { return _mm512_loadu_ps(p); }
inline Vector loadFloats(const float *p, Mask mask) {
  return _mm512_maskz_loadu_ps(mask, p);
}
inline void storeFloats(float *p, Vector v) { _mm512_storeu_ps(p, v); }
inline void storeFloats(float *p, Vector v, Mask mask) {
  _mm512_mask_storeu_ps(p, mask, v);
}
inline void streamFloats(float *p, Vector v) { _mm512_stream_ps(p, v); }

inline Halves loadHalves(const uint16_t *p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(p));
}
inline Halves loadHalves(const uint16_t *p, Mask mask) {
  return _mm256_maskz_loadu_epi16(mask, p);
}
inline void storeHalves(uint16_t *p, Halves v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i *>(p), v);
}
inline void storeHalves(uint16_t *p, Halves v, Mask mask) {
  _mm256_mask_storeu_epi16(p, mask, v);
}
/// In assembly: beside RareLanes, clang 22 makes an ordinary store of the
/// builtin.
inline void streamHalves(uint16_t *p, Halves low, Halves high) {
  __m512i line = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  asm volatile("vmovntdq %1, %0"
               : "=m"(*reinterpret_cast<__m512i *>(p))
               : "v"(line));
}

/// a * b + c.
inline Vector multiplyAdd(Vector a, Vector b, Vector c) {
  return _mm512_fmadd_ps(a, b, c);
}
/// The same in the lanes of `mask`, and c in the others.
inline Vector multiplyAdd(Vector a, Vector b, Vector c, Mask mask) {
  return _mm512_mask3_fmadd_ps(a, b, c, mask);
}
inline float sumLanes(Vector v) { return _mm512_reduce_add_ps(v); }
/// Zero in the lanes that have no number.
inline Vector dropNaNs(Vector v) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, v, _CMP_ORD_Q), v);
}

inline Vector extendBF16(Halves v) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}
inline Vector extendF16(Halves v) { return _mm512_cvtph_ps(v); }
inline Halves roundToF16(Vector v) {
  return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/// Right for all but NaN.
inline Halves roundBitsToBF16(Vector v) {
  __m512i bits = _mm512_castps_si512(v);
  __m512i isOdd =
      _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  bits = _mm512_add_epi32(bits,
                          _mm512_add_epi32(_mm512_set1_epi32(0x7FFF), isOdd));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16));
}

#ifdef __AVX512BF16__

/// Right for all but subnormal numbers, which the instruction flushes to zero.
inline Halves roundToBF16(Vector v) { return __m256i(_mm512_cvtneps_pbh(v)); }

inline Mask findRareLanes(Vector v) {
  constexpr int kSubnormal = 0x20;
  return _mm512_fpclass_ps_mask(v, kSubnormal);
}

inline Halves roundRareToBF16(Vector v) { return roundBitsToBF16(v); }

#else

inline Halves roundToBF16(Vector v) { return roundBitsToBF16(v); }

inline Mask findRareLanes(Vector v) {
  return _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
}

/// Of NaN: quiet, with the first bits of its payload.
inline Halves roundRareToBF16(Vector v) {
  return _mm512_cvtepi32_epi16(_mm512_or_si512(
      _mm512_srli_epi32(_mm512_castps_si512(v), 16), _mm512_set1_epi32(0x40)));
}

#endif

inline Halves roundExactlyToBF16(Vector v) {
  return _mm256_mask_mov_epi16(roundToBF16(v), findRareLanes(v),
                               roundRareToBF16(v));
}

/// Whether there was a lane for which roundToBF16 is wrong.
class RareLanes {
public:
  void add(Vector v) { found |= findRareLanes(v); }
  bool any() const { return __builtin_expect(found != 0, false); }

private:
  Mask found = 0;
};

#endif // BNGRAD_BENCH_NATIVE_VECTORSAVX512_H
