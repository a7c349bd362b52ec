//===- Hand.cpp - hand-written gradient -----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// AVX-512 and OpenMP, f32, bf16 and f16 data. The baseline for generated code:
// three schedules, chosen by layout and row length.
//
//   long rows    a thread takes a channel: sums, then grad_input, while the
//                channel is in cache. Fewer than 8 channels: all threads share
//                each channel.
//   short rows   a thread takes enough channels for a run of 6 KB, with one
//                accumulator per element of the run.
//   row-major    a thread takes a range of rows; rows are folded until they
//                fill vectors.
//
// Results depend on the number of threads, but not on timing.
//
//===----------------------------------------------------------------------===//

#include "Peer.h"
#include "Vectors.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <omp.h>
#include <vector>

namespace {

//===----------------------------------------------------------------------===//
// Common code of the schedules
//===----------------------------------------------------------------------===//

/// grad_input = gradOutput * a + (input - mean) * b + k.
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
  /// Scratch memory of each thread, in floats, on separate cache lines.
  std::vector<float *> scratch;

  ~State() {
    for (float *s : scratch)
      std::free(s);
  }
};

Coefficients finish(const State &s, int64_t c, const Sums &sums) {
  const Problem &p = s.p;
  double r = 1 / std::sqrt(double(p.variance[c]) + p.epsilon);
  double a = p.scale[c] * r;
  return {float(a), float(-a * r * r * sums.dyXmu / s.count),
          float(-a * sums.dy / s.count), p.mean[c]};
}

void writeParameters(const State &s, int64_t c, const Sums &sums) {
  double r = 1 / std::sqrt(double(s.p.variance[c]) + s.p.epsilon);
  s.p.gradScale[c] = sums.dyXmu * r;
  s.p.gradOffset[c] = sums.dy;
}

struct Range {
  int64_t begin, end;
};

Range shareOf(int64_t count, int64_t thread, int64_t threads) {
  return {count * thread / threads, count * (thread + 1) / threads};
}

//===----------------------------------------------------------------------===//
// Long rows
//===----------------------------------------------------------------------===//

/// Adds one row to four accumulators of each sum.
template <typename E>
void addRow(const typename E::Type *dy, const typename E::Type *x, int64_t n,
            __m512 mean, __m512 *sumDy, __m512 *sumDyXmu) {
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes)
    for (int j = 0; j < 4; ++j) {
      __m512 d = E::load(dy + i + j * kLanes);
      __m512 m = _mm512_sub_ps(E::load(x + i + j * kLanes), mean);
      sumDy[j] = _mm512_add_ps(sumDy[j], d);
      sumDyXmu[j] = _mm512_fmadd_ps(d, m, sumDyXmu[j]);
    }
  for (; i < n; i += kLanes) {
    __mmask16 mask = firstLanes(std::min(n - i, kLanes));
    __m512 d = E::load(dy + i, mask);
    __m512 m = _mm512_sub_ps(E::load(x + i, mask), mean);
    sumDy[0] = _mm512_add_ps(sumDy[0], d);
    sumDyXmu[0] = _mm512_fmadd_ps(d, m, sumDyXmu[0]);
  }
}

template <typename E>
Sums sumRows(const State &s, int64_t c, int64_t firstImage, int64_t lastImage) {
  using T = typename E::Type;
  const Problem &p = s.p;
  int64_t n = p.spatial();
  __m512 mean = _mm512_set1_ps(p.mean[c]);
  __m512 sumDy[4] = {}, sumDyXmu[4] = {};
  for (int64_t image = firstImage; image < lastImage; ++image) {
    int64_t row = (image * p.channels + c) * n;
    addRow<E>(static_cast<const T *>(p.gradOutput) + row,
              static_cast<const T *>(p.input) + row, n, mean, sumDy, sumDyXmu);
  }
  Sums sums;
  for (int j = 0; j < 4; ++j) {
    sums.dy += _mm512_reduce_add_ps(sumDy[j]);
    sums.dyXmu += _mm512_reduce_add_ps(sumDyXmu[j]);
  }
  return sums;
}

template <bool kPrefetch> void prefetch(const void *address) {
  if constexpr (kPrefetch)
    _mm_prefetch(static_cast<const char *>(address), _MM_HINT_T1);
}

/// grad_input of one row. With kPrefetch, `ahead` is the prefetch distance in
/// elements.
template <typename E, bool kPrefetch>
void applyRow(const typename E::Type *dy, const typename E::Type *x,
              typename E::Type *dx, int64_t n, const Coefficients &f,
              bool streaming, int64_t ahead) {
  using T = typename E::Type;
  constexpr int64_t kLine = 64 / sizeof(T), kVectors = kLine / kLanes;
  __m512 a = _mm512_set1_ps(f.a), b = _mm512_set1_ps(f.b),
         k = _mm512_set1_ps(f.k), mean = _mm512_set1_ps(f.mean);
  auto compute = [&](__m512 d, __m512 v) {
    return _mm512_fmadd_ps(d, a, _mm512_fmadd_ps(_mm512_sub_ps(v, mean), b, k));
  };
  auto masked = [&](int64_t i, int64_t count) {
    for (; count > 0; count -= kLanes, i += kLanes) {
      __mmask16 mask = firstLanes(std::min(count, kLanes));
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
      __m512 line[kVectors];
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
}

template <typename E, bool kPrefetch>
void applyRows(const State &s, int64_t c, const Coefficients &f,
               int64_t firstImage, int64_t lastImage) {
  using T = typename E::Type;
  const Problem &p = s.p;
  int64_t n = p.spatial();
  for (int64_t image = firstImage; image < lastImage; ++image) {
    int64_t row = (image * p.channels + c) * n;
    applyRow<E, kPrefetch>(static_cast<const T *>(p.gradOutput) + row,
                           static_cast<const T *>(p.input) + row,
                           static_cast<T *>(p.gradInput) + row, n, f,
                           s.streaming, n);
  }
}

/// Smallest row length, in elements, for which a thread takes a single channel.
constexpr int64_t kLongRow = 256;

template <typename E> void runLongRows(State &s) {
  const Problem &p = s.p;
#pragma omp parallel num_threads(p.threads)
  {
    Range channels =
        shareOf(p.channels, omp_get_thread_num(), omp_get_num_threads());
    for (int64_t c = channels.begin; c < channels.end; ++c) {
      Sums sums = sumRows<E>(s, c, 0, p.images);
      writeParameters(s, c, sums);
      Coefficients f = finish(s, c, sums);
      // The next channel is the next row of each image.
      if (c + 1 < channels.end)
        applyRows<E, true>(s, c, f, 0, p.images);
      else
        applyRows<E, false>(s, c, f, 0, p.images);
    }
    _mm_sfence();
  }
}

/// All threads share each channel; each takes a range of images.
template <typename E> void runFewChannels(State &s) {
  const Problem &p = s.p;
  // Two sets of partial sums: with one barrier per channel, a thread may be a
  // channel ahead of the others.
  constexpr int kMaxThreads = 256;
  struct alignas(64) Partial {
    Sums sums;
  };
  static Partial partials[2][kMaxThreads];
#pragma omp parallel num_threads(std::min(p.threads, kMaxThreads))
  {
    int thread = omp_get_thread_num(), threads = omp_get_num_threads();
    Range images = shareOf(p.images, thread, threads);
    for (int64_t c = 0; c < p.channels; ++c) {
      Partial *partial = partials[c % 2];
      partial[thread].sums = sumRows<E>(s, c, images.begin, images.end);
#pragma omp barrier
      Sums sums;
      for (int t = 0; t < threads; ++t) {
        sums.dy += partial[t].sums.dy;
        sums.dyXmu += partial[t].sums.dyXmu;
      }
      if (thread == 0)
        writeParameters(s, c, sums);
      applyRows<E, false>(s, c, finish(s, c, sums), images.begin, images.end);
    }
    _mm_sfence();
  }
}

//===----------------------------------------------------------------------===//
// Runs: short rows and row-major
//===----------------------------------------------------------------------===//
//
// A run is a sequence of elements. All runs have the same sequence of channels,
// so element i uses entry i of the tables of coefficients.

/// Tables of a run, contiguous in scratch memory.
struct Tables {
  float *sumDy, *sumDyXmu, *mean;
  float *a, *b, *k;

  Tables(float *scratch, int64_t size)
      : sumDy(scratch), sumDyXmu(scratch + size), mean(scratch + 2 * size),
        a(scratch), b(scratch + size), k(scratch + 3 * size) {}
};

/// Adds kRuns runs of n elements, `stride` elements apart, to the tables. With
/// kPrefetch, `stride` is the prefetch distance in elements.
template <typename E, int kRuns, bool kPrefetch = false>
void addRuns(const typename E::Type *dy, const typename E::Type *x, int64_t n,
             int64_t stride, const Tables &t) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    prefetch<kPrefetch>(dy + i + stride);
    prefetch<kPrefetch>(x + i + stride);
    __m512 sumDy = _mm512_load_ps(t.sumDy + i);
    __m512 sumDyXmu = _mm512_load_ps(t.sumDyXmu + i);
    __m512 mean = _mm512_load_ps(t.mean + i);
    for (int j = 0; j < kRuns; ++j) {
      __m512 d = E::load(dy + i + j * stride);
      __m512 m = _mm512_sub_ps(E::load(x + i + j * stride), mean);
      sumDy = _mm512_add_ps(sumDy, d);
      sumDyXmu = _mm512_fmadd_ps(d, m, sumDyXmu);
    }
    _mm512_store_ps(t.sumDy + i, sumDy);
    _mm512_store_ps(t.sumDyXmu + i, sumDyXmu);
  }
  if (i == n)
    return;
  __mmask16 mask = firstLanes(n - i);
  for (int j = 0; j < kRuns; ++j) {
    __m512 d = E::load(dy + i + j * stride, mask);
    __m512 m = _mm512_sub_ps(E::load(x + i + j * stride, mask),
                             _mm512_load_ps(t.mean + i));
    _mm512_store_ps(t.sumDy + i, _mm512_add_ps(_mm512_load_ps(t.sumDy + i), d));
    _mm512_store_ps(t.sumDyXmu + i,
                    _mm512_fmadd_ps(d, m, _mm512_load_ps(t.sumDyXmu + i)));
  }
}

/// As addRuns for contiguous runs of kVectors vectors, `runs` of them, with the
/// sums in registers.
template <typename E, int kVectors>
void addNarrowRuns(const typename E::Type *dy, const typename E::Type *x,
                   int64_t runs, const Tables &t) {
  __m512 sumDy[kVectors], sumDyXmu[kVectors], mean[kVectors];
  for (int j = 0; j < kVectors; ++j) {
    sumDy[j] = _mm512_load_ps(t.sumDy + j * kLanes);
    sumDyXmu[j] = _mm512_load_ps(t.sumDyXmu + j * kLanes);
    mean[j] = _mm512_load_ps(t.mean + j * kLanes);
  }
  for (int64_t run = 0; run < runs;
       ++run, dy += kVectors * kLanes, x += kVectors * kLanes)
    for (int j = 0; j < kVectors; ++j) {
      __m512 d = E::load(dy + j * kLanes);
      __m512 m = _mm512_sub_ps(E::load(x + j * kLanes), mean[j]);
      sumDy[j] = _mm512_add_ps(sumDy[j], d);
      sumDyXmu[j] = _mm512_fmadd_ps(d, m, sumDyXmu[j]);
    }
  for (int j = 0; j < kVectors; ++j) {
    _mm512_store_ps(t.sumDy + j * kLanes, sumDy[j]);
    _mm512_store_ps(t.sumDyXmu + j * kLanes, sumDyXmu[j]);
  }
}

/// grad_input of one run. With kPrefetch, the following run is prefetched.
template <typename E, bool kPrefetch = false>
void applyRun(const typename E::Type *dy, const typename E::Type *x,
              typename E::Type *dx, int64_t n, const Tables &t,
              bool streaming) {
  using T = typename E::Type;
  constexpr int64_t kLine = 64 / sizeof(T), kVectors = kLine / kLanes;
  auto compute = [&](int64_t i, __m512 d, __m512 v) {
    __m512 m = _mm512_sub_ps(v, _mm512_load_ps(t.mean + i));
    return _mm512_fmadd_ps(
        d, _mm512_load_ps(t.a + i),
        _mm512_fmadd_ps(m, _mm512_load_ps(t.b + i), _mm512_load_ps(t.k + i)));
  };
  int64_t i = 0;
  if (streaming && reinterpret_cast<uintptr_t>(dx) % 64 == 0)
    for (; i + kLine <= n; i += kLine) {
      __m512 line[kVectors];
      for (int j = 0; j < kVectors; ++j)
        line[j] = compute(i + j * kLanes, E::load(dy + i + j * kLanes),
                          E::load(x + i + j * kLanes));
      prefetch<kPrefetch>(dy + i + n);
      prefetch<kPrefetch>(x + i + n);
      E::stream(dx + i, line);
    }
  for (; i + kLanes <= n; i += kLanes)
    E::store(dx + i, compute(i, E::load(dy + i), E::load(x + i)));
  if (i == n)
    return;
  __mmask16 mask = firstLanes(n - i);
  E::store(dx + i, compute(i, E::load(dy + i, mask), E::load(x + i, mask)),
           mask);
}

/// Elements per run of short rows: long enough to prefetch whole pages, short
/// enough for five tables in the L1 cache.
constexpr int64_t kRunElements = 1568;

double sumOf(const float *values, int64_t n) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < n; i += kLanes)
    sum = _mm512_add_ps(
        sum, F32::load(values + i, firstLanes(std::min(n - i, kLanes))));
  return _mm512_reduce_add_ps(sum);
}

template <typename E> void runShortRows(State &s) {
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
      std::fill(t.sumDy, t.sumDy + 2 * size, 0.0f);
      for (int64_t c = 0; c < channels; ++c)
        std::fill(t.mean + c * n, t.mean + (c + 1) * n, p.mean[first + c]);
      auto *dy = static_cast<const T *>(p.gradOutput) + first * n;
      auto *x = static_cast<const T *>(p.input) + first * n;
      auto *dx = static_cast<T *>(p.gradInput) + first * n;
      for (int64_t image = 0; image < p.images; ++image)
        addRuns<E, 1, true>(dy + image * stride, x + image * stride, length,
                            stride, t);
      for (int64_t c = 0; c < channels; ++c) {
        Sums sums{sumOf(t.sumDy + c * n, n), sumOf(t.sumDyXmu + c * n, n)};
        writeParameters(s, first + c, sums);
        Coefficients f = finish(s, first + c, sums);
        std::fill(t.a + c * n, t.a + (c + 1) * n, f.a);
        std::fill(t.b + c * n, t.b + (c + 1) * n, f.b);
        std::fill(t.k + c * n, t.k + (c + 1) * n, f.k);
      }
      for (int64_t image = 0; image < p.images; ++image)
        applyRun<E, true>(dy + image * stride, x + image * stride,
                          dx + image * stride, length, t, s.streaming);
    }
    _mm_sfence();
  }
}

/// Rows folded into one run: whole vectors, at least 64 elements.
int64_t foldOf(int64_t channels) {
  int64_t fold = 1;
  while (channels * fold % 32 != 0 || channels * fold < 64)
    fold *= 2;
  return fold;
}

template <typename E>
void addRowMajor(const typename E::Type *dy, const typename E::Type *x,
                 int64_t runs, int64_t n, const Tables &t) {
  switch (n / kLanes) {
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

template <typename E> void runRowMajor(State &s) {
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
    auto *dx = static_cast<T *>(p.gradInput);
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
    // Blocks in reverse order, as the last ones are still in cache; forwards
    // within a block, in the direction of prefetching.
    int64_t block = std::max<int64_t>(1, kBlockBytes / (n * sizeof(T)));
    for (int64_t end = range.end; end > range.begin; end -= block)
      for (int64_t run = std::max(range.begin, end - block); run < end; ++run)
        applyRun<E>(dy + run * n, x + run * n, dx + run * n,
                    std::min(n, elements - run * n), t, s.streaming);
    _mm_sfence();
  }
}

template <typename E> void run(State &s) {
  const Problem &p = s.p;
  if (p.channelsLast || p.rank == 2)
    runRowMajor<E>(s);
  else if (p.spatial() < kLongRow)
    runShortRows<E>(s);
  else if (p.channels < 8)
    runFewChannels<E>(s);
  else
    runLongRows<E>(s);
}

} // namespace

void *peerCreate(const Problem *problem, int32_t, char *, int64_t) {
  auto *s = new State;
  s->p = *problem;
  const Problem &p = s->p;
  s->count = double(p.images) * p.spatial();
  int64_t elementBytes = p.elementType == int(ElementType::F32) ? 4 : 2;
  s->streaming = 3 * p.elements() * elementBytes > p.cacheBytes;
  // Tiny problems stay on the calling thread.
  if (p.elements() < 8192)
    s->p.threads = 1;
  int64_t run = std::max(p.channels * foldOf(p.channels),
                         kRunElements + 32 * p.spatial());
  for (int t = 0; t < p.threads; ++t)
    s->scratch.push_back(static_cast<float *>(std::aligned_alloc(
        64, (6 * run * sizeof(float) + 4095) / 4096 * 4096)));
  return s;
}

void peerRun(void *state) {
  auto &s = *static_cast<State *>(state);
  switch (ElementType(s.p.elementType)) {
  case ElementType::F32:
    return run<F32>(s);
  case ElementType::BF16:
    return run<BF16>(s);
  case ElementType::F16:
    return run<F16>(s);
  }
}

void peerRunInto(void *state) { peerRun(state); }

void peerDestroy(void *state) { delete static_cast<State *>(state); }

void peerVersion(char *text, int64_t size) {
  std::snprintf(text, size, "this repository threads=OpenMP");
}
