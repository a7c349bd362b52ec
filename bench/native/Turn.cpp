//===- Turn.cpp - memory and bandwidth without OpenMP ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For processes of `--compilers`, whose OpenMP runtime is that of the library
// they measure. The threads of a measurement end with it.
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include <chrono>
#include <sched.h>
#include <thread>
#include <vector>

static std::vector<int32_t> cores;
static int64_t probeBytes;
static float *probeArrays[3];

static double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

static void addOn(int64_t number) {
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(cores[number], &own);
  sched_setaffinity(0, sizeof own, &own);
  int64_t lines = probeBytes / 256, count = cores.size();
  memory::addShare(probeArrays[0], probeArrays[1], probeArrays[2],
                   lines * number / count * 64,
                   lines * (number + 1) / count * 64);
  _mm_sfence();
}

extern "C" {

void *turnAllocate(int64_t bytes) { return memory::allocate(bytes); }

/// The best rate, in bytes per second, of two reads and one streaming write
/// over arrays beyond the last-level cache.
double turnBandwidth() {
  double best = 0;
  for (int repetition = 0; repetition < 2; ++repetition) {
    double start = now();
    std::vector<std::thread> threads;
    threads.reserve(cores.size());
    for (size_t number = 0; number < cores.size(); ++number)
      threads.emplace_back(addOn, number);
    for (std::thread &thread : threads)
      thread.join();
    best = std::max(best, 3.0 * probeBytes / (now() - start));
  }
  return best;
}

/// Prepares the probe for a last-level cache of `cacheBytes`, with a thread on
/// each of `count` cores. Returns 0 if memory does not suffice.
int32_t turnInitialize(const int32_t *numbers, int64_t count,
                       int64_t cacheBytes) {
  cores.assign(numbers, numbers + count);
  probeBytes = 2 * memory::probeBase(cacheBytes);
  for (float *&array : probeArrays) {
    array = static_cast<float *>(memory::allocate(probeBytes));
    if (!array)
      return 0;
  }
  turnBandwidth();
  return 1;
}
}
