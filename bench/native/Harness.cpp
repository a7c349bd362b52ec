//===- Harness.cpp - timing, bandwidth and memory of the benchmark --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All timing is in this file. Times are in seconds, rates in bytes per second.
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <omp.h>
#include <sched.h>
#include <sys/resource.h>
#include <thread>
#include <vector>

extern "C" void kmp_set_blocktime(int milliseconds);

namespace {

/// A measured function: `run(state)` is one call.
struct Runner {
  void (*run)(void *state);
  void *state;
  /// Calls between two readings of the clock when caches are warm.
  int64_t calls;
  /// 1 if the library has threads other than OpenMP's.
  int32_t foreignThreads;
};

/// One runner in one round.
struct Sample {
  /// The call right after a pass over more memory than the caches hold.
  double cold;
  /// The following call, or the mean of `calls` of them.
  double warm;
  /// Bandwidth measured before and after the two.
  double bandwidthBefore, bandwidthAfter;
  /// Involuntary context switches during the calls and both measurements of
  /// bandwidth.
  int64_t switches;
};

/// A compiled function and its memref descriptors.
struct Function {
  void *address;
  int64_t arguments;
  void *descriptors[12];
};

} // namespace

static double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

static int64_t involuntarySwitches() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

/// Lets OpenMP's idle threads sleep, so that they do not compete with threads
/// of another runtime, or wakes them.
static void letOpenMPSleep(bool sleep) {
  kmp_set_blocktime(sleep ? 0 : 200);
#pragma omp parallel
  {
    kmp_set_blocktime(sleep ? 0 : 200);
  }
}

static std::vector<int64_t> probeSizes;
static float *probeArrays[3];

/// Best rate of two reads and one streaming write over arrays of several sizes
/// beyond the last-level cache.
static double bandwidth() {
  double best = 0;
  for (int64_t bytes : probeSizes) {
    int64_t lines = bytes / 256;
    double start = now();
#pragma omp parallel
    {
      int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
      memory::addShare(probeArrays[0], probeArrays[1], probeArrays[2],
                       lines * thread / threads * 64,
                       lines * (thread + 1) / threads * 64);
      _mm_sfence();
    }
    best = std::max(best, 3.0 * lines * 256 / (now() - start));
  }
  return best;
}

extern "C" {

void *harnessAllocate(int64_t bytes) { return memory::allocate(bytes); }

/// Whether each OpenMP thread is bound to its own core.
int32_t harnessIsBound() {
  cpu_set_t all;
  CPU_ZERO(&all);
  int32_t ok = 1;
#pragma omp parallel
#pragma omp critical
  {
    cpu_set_t own;
    sched_getaffinity(0, sizeof own, &own);
    cpu_set_t common;
    CPU_AND(&common, &all, &own);
    if (CPU_COUNT(&own) != 1 || CPU_COUNT(&common) != 0)
      ok = 0;
    CPU_OR(&all, &all, &own);
  }
  return ok;
}

/// Prepares the probe for a last-level cache of `cacheBytes`. Returns 0 if
/// memory does not suffice.
int32_t harnessInitialize(int64_t cacheBytes) {
  int64_t base = memory::probeBase(cacheBytes);
  probeSizes = {base, base * 3 / 2, base * 2};
  for (float *&array : probeArrays) {
    array = static_cast<float *>(memory::allocate(probeSizes.back()));
    if (!array)
      return 0;
  }
  for (int i = 0; i < 3; ++i)
    bandwidth();
  return 1;
}

double harnessBandwidth() { return bandwidth(); }

/// Calls a function that MLIR compiled, through its C interface.
void harnessCallFunction(void *state) {
  auto *f = static_cast<Function *>(state);
  void **d = f->descriptors;
  using P = void *;
  switch (f->arguments) {
  case 8:
    return reinterpret_cast<void (*)(P, P, P, P, P, P, P, P)>(f->address)(
        d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]);
  case 9:
    return reinterpret_cast<void (*)(P, P, P, P, P, P, P, P, P)>(f->address)(
        d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], d[8]);
  default:
    std::abort();
  }
}

/// Does nothing: measures the overhead of timing a call.
void harnessNothing(void *) {}

/// Measures every runner once, in `order`.
void harnessRound(const Runner *runners, const int32_t *order, int64_t count,
                  Sample *samples) {
  int64_t switchesBefore = involuntarySwitches();
  double before = bandwidth();
  for (int64_t i = 0; i < count; ++i) {
    const Runner &runner = runners[order[i]];
    Sample &sample = samples[order[i]];
    if (runner.foreignThreads)
      letOpenMPSleep(true);
    double start = now();
    runner.run(runner.state);
    double middle = now();
    if (runner.calls > 1)
      runner.run(runner.state);
    double begin = now();
    for (int64_t call = 0; call < runner.calls; ++call)
      runner.run(runner.state);
    double end = now();
    sample.cold = middle - start;
    sample.warm = (end - begin) / runner.calls;
    if (runner.foreignThreads) {
      // The idle threads of this library also spin for a moment.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      letOpenMPSleep(false);
    }
    int64_t switchesBetween = involuntarySwitches();
    double after = bandwidth();
    sample.switches = involuntarySwitches() - switchesBefore;
    sample.bandwidthBefore = before;
    sample.bandwidthAfter = after;
    switchesBefore = switchesBetween;
    before = after;
  }
}
}
