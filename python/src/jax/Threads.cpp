//===- Threads.cpp - loops on XLA's threads -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Threads.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>

using namespace bngrad::jax;
using xla::ffi::ThreadPool;

static thread_local ThreadPool *currentPool = nullptr;

namespace {
/// A loop of `n` iterations that several threads share. Tasks of the pool may
/// start after the loop has ended; they then find no iteration left and access
/// only this object.
class Loop {
public:
  using Body = void (*)(void *data, int thread, int n);

  Loop(int n, Body body, void *data)
      : n(n), body(body), data(data), unfinished(n) {}

  /// Runs iterations until none is left.
  void work() {
    for (;;) {
      int i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= n)
        return;
      body(data, i, n);
      if (unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        // The waiting thread may be between its check and its sleep.
        std::lock_guard<std::mutex> lock(mutex);
        ended.notify_one();
      }
    }
  }

  /// Returns when all iterations have ended.
  void wait() {
    // Iterations take about equally long, so the others end soon.
    for (int i = 0; i < kNumSpins; ++i) {
      if (isEnded())
        return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    std::unique_lock<std::mutex> lock(mutex);
    ended.wait(lock, [&] { return isEnded(); });
  }

private:
  /// Some 30 microseconds, about the time in which a thread wakes up.
  static constexpr int kNumSpins = 1000;

  bool isEnded() const {
    return unfinished.load(std::memory_order_acquire) == 0;
  }

  const int n;
  const Body body;
  void *const data;
  std::atomic<int> next{0};
  std::atomic<int> unfinished;
  std::mutex mutex;
  std::condition_variable ended;
};
} // namespace

static int countThreads(void *) {
  if (!currentPool)
    return 1;
  // 0 if the execution has no pool.
  return static_cast<int>(
      std::clamp<int64_t>(currentPool->num_threads(), 1, INT_MAX));
}

static void runLoop(void *context, int n, Loop::Body body, void *data) {
  int helpers = std::min(n, countThreads(context)) - 1;
  std::shared_ptr<Loop> loop;
  // C callers expect no exceptions. Without memory there are fewer helpers.
  try {
    if (helpers > 0)
      loop = std::make_shared<Loop>(n, body, data);
    for (int i = 0; i < helpers; ++i)
      currentPool->Schedule([loop] { loop->work(); });
  } catch (const std::bad_alloc &) {
  }
  if (!loop) {
    for (int i = 0; i < n; ++i)
      body(data, i, n);
    return;
  }
  loop->work();
  loop->wait();
}

bngrad_threads_t bngrad::jax::getPoolThreads() {
  return {sizeof(bngrad_threads_t), nullptr, countThreads, runLoop};
}

PoolScope::PoolScope(ThreadPool *pool) { currentPool = pool; }

PoolScope::~PoolScope() { currentPool = nullptr; }
