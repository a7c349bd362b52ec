//===- Hand.cpp - hand-written gradient -----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// AVX-512 or AVX2, and OpenMP; f32, bf16 and f16 data. The baseline for
// generated code: three schedules, chosen by layout and row length.
//
//   long rows    a thread takes a channel: sums, then grad_input, while the
//                channel is in cache. Fewer than 8 channels: all threads share
//                each channel.
//   short rows   a thread takes enough channels for a run of 6 KB, with one
//                accumulator per element of the run.
//   row-major    a thread takes a range of rows; rows are folded until they
//                fill vectors.
//
// There are two forms. The exact one keeps the promises of docs/numerics.md,
// sections 4 to 6 and 8: its sums are sums of short chains, with their rounding
// errors, it rounds to subnormal bf16 numbers, it evaluates the formula of
// grad_input as written, and its results do not depend on the number of
// threads. Results of the bare form do, but not on timing.
//
//===----------------------------------------------------------------------===//

#include "HandExact.h"
#include "HandRows.h"

namespace {

/// The values of peerCreate's `variant`.
enum Form : int32_t { kBareForm = 0, kExactForm = 1 };

template <typename E, bool kExact> void run(State &s) {
  const Problem &p = s.p;
  if (p.channelsLast || p.rank == 2) {
    if constexpr (kExact)
      runRowMajorExactly<E>(s);
    else
      runRowMajor<E>(s);
  } else if (p.spatial() < kLongRow) {
    runShortRows<E, kExact>(s);
  } else if (p.channels < 8) {
    runFewChannels<E, kExact>(s);
  } else {
    runLongRows<E, kExact>(s);
  }
}

template <bool kExact> void run(State &s) {
  switch (ElementType(s.p.elementType)) {
  case ElementType::F32:
    return run<F32, kExact>(s);
  case ElementType::BF16:
    return run<std::conditional_t<kExact, CheckedBF16, BF16>, kExact>(s);
  case ElementType::F16:
    return run<F16, kExact>(s);
  }
}

float *allocate(int64_t floats) {
  return static_cast<float *>(
      std::aligned_alloc(64, (floats * sizeof(float) + 4095) / 4096 * 4096));
}

} // namespace

void *peerCreate(const Problem *problem, int32_t variant, char *, int64_t) {
  auto *s = new State;
  s->p = *problem;
  const Problem &p = s->p;
  s->isExact = variant == kExactForm;
  s->count = double(p.images) * p.spatial();
  s->chain = chainLength(s->count);
  int64_t elementBytes = p.elementType == int(ElementType::F32) ? 4 : 2;
  s->streaming = 3 * p.elements() * elementBytes > p.cacheBytes;
  // Tiny problems stay on the calling thread.
  if (p.elements() < 8192)
    s->p.threads = 1;
  int64_t n = p.channels * foldOf(p.channels);
  int64_t run = std::max(n, kRunElements + 32 * p.spatial());
  for (int t = 0; t < p.threads; ++t)
    s->scratch.push_back(allocate((s->isExact ? 8 : 6) * run));
  if (s->isExact)
    s->shared = allocate(SharedTables::size(p.channels));
  return s;
}

void peerRun(void *state) {
  auto &s = *static_cast<State *>(state);
  return s.isExact ? run<true>(s) : run<false>(s);
}

void peerRunInto(void *state) { peerRun(state); }

void peerDestroy(void *state) { delete static_cast<State *>(state); }

void peerVersion(char *text, int64_t size) {
  std::snprintf(text, size, "this repository threads=OpenMP");
}
