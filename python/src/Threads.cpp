//===- Threads.cpp - the threads of bngrad's own calls --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Threads.h"

#include "Errors.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include <pthread.h>
#include <sched.h>
#include <signal.h>

using namespace bngrad;

namespace {
/// A loop whose iterations the threads take one by one.
struct Job {
  int n;
  void (*body)(void *data, int thread, int n);
  void *data;
  std::atomic<int> next{0};
  std::atomic<int> rest;

  void work() {
    for (int i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) {
      body(data, i, n);
      rest.fetch_sub(1, std::memory_order_release);
    }
  }
};

/// Threads that wait for jobs, one at a time. Never destroyed.
class Pool {
public:
  void run(int n, void (*body)(void *, int, int), void *data);

private:
  void start(int count);
  void serve();

  std::mutex inUse; // by a caller
  std::mutex mutex; // of everything below
  std::condition_variable hasJob;
  Job *job = nullptr;
  std::atomic<unsigned> numJobs{0};
  /// Threads that may access the job.
  std::atomic<int> numActive{0};
  int numThreads = 0;
  bool canStart = true;
};

/// A number of threads, and a handle for them; null until it is created.
struct SizedHandle {
  int count = 0;
  bngrad_threads_t threads = {};
  bngradHandle_t handle = nullptr;
};
} // namespace

/// Rounds of waiting before a thread sleeps, some 20 us, as the loops of one
/// call follow each other closely.
static constexpr int kSpins = 1000;

static void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits for a short time until `condition` holds; returns whether it does.
template <typename Condition> static bool spin(Condition condition) {
  for (int i = 0; i < kSpins; ++i) {
    if (condition())
      return true;
    relax();
  }
  return condition();
}

/// Starts threads until there are `count`, or as many as the system allows.
void Pool::start(int count) {
  if (numThreads >= count)
    return;
  // Leave signals to Python's thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    for (; canStart && numThreads < count; ++numThreads)
      std::thread([this] { serve(); }).detach();
  } catch (const std::exception &) {
    // No thread or no memory. The existing threads take all iterations.
    canStart = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Pool::serve() {
  for (unsigned seen = 0;;) {
    spin([&] { return numJobs.load(std::memory_order_relaxed) != seen; });
    Job *current;
    {
      std::unique_lock<std::mutex> lock(mutex);
      hasJob.wait(lock, [&] { return numJobs != seen; });
      seen = numJobs;
      current = job;
      if (current)
        ++numActive;
    }
    if (!current)
      continue;
    current->work();
    numActive.fetch_sub(1, std::memory_order_release);
  }
}

void Pool::run(int n, void (*body)(void *, int, int), void *data) {
  std::unique_lock<std::mutex> owner(inUse, std::try_to_lock);
  if (n <= 1 || !owner) {
    for (int i = 0; i < n; ++i)
      body(data, i, n);
    return;
  }
  Job current;
  current.n = n;
  current.body = body;
  current.data = data;
  current.rest = n;
  {
    std::lock_guard<std::mutex> lock(mutex);
    start(n - 1);
    job = &current;
    ++numJobs;
  }
  hasJob.notify_all();
  current.work();
  {
    std::lock_guard<std::mutex> lock(mutex);
    job = nullptr;
  }
  auto isDone = [&] {
    return current.rest.load(std::memory_order_acquire) == 0 &&
           numActive.load(std::memory_order_acquire) == 0;
  };
  while (!spin(isDone))
    std::this_thread::yield();
}

/// Threads do not survive a fork, so the child has its own pool.
static std::atomic<Pool *> pool{nullptr};

[[gnu::constructor]] static void watchForks() {
  pool = new Pool;
  pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });
}

static int getFirstNumThreads() {
  for (const char *name : {"BNGRAD_NUM_THREADS", "OMP_NUM_THREADS"})
    if (const char *text = std::getenv(name))
      if (long count = std::strtol(text, nullptr, 10); count > 0)
        return static_cast<int>(std::min<long>(count, python::kMostThreads));
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
    return CPU_COUNT(&cpus);
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
}

/// 0 if not known yet. The GIL protects it.
static int numThreads = 0;

int python::getNumThreads() {
  if (numThreads == 0)
    numThreads = getFirstNumThreads();
  return numThreads;
}

void python::setNumThreads(int count) { numThreads = count; }

void python::runOnPool(int n, void (*body)(void *, int, int), void *data) {
  pool.load(std::memory_order_relaxed)->run(n, body, data);
}

/// The handle for calls on getNumThreads() threads. The GIL protects it.
static SizedHandle &getSizedHandle() {
  static std::map<int, SizedHandle> *handles; // never destroyed
  if (!handles)
    handles = new std::map<int, SizedHandle>;
  static SizedHandle *last = nullptr;
  int count = python::getNumThreads();
  if (last && last->count == count)
    return *last;
  SizedHandle &sized = (*handles)[count];
  sized.count = count;
  sized.threads = {sizeof(bngrad_threads_t), &sized.count,
                   [](void *context) { return *static_cast<int *>(context); },
                   [](void *, int n, void (*body)(void *, int, int),
                      void *data) { python::runOnPool(n, body, data); }};
  last = &sized;
  return sized;
}

const bngrad_threads_t &python::getThreads() {
  return getSizedHandle().threads;
}

bngradHandle_t python::getHandle() {
  SizedHandle &sized = getSizedHandle();
  if (!sized.handle) {
    bngradHandle_t handle = nullptr;
    check(bngradCreateHandle(&handle, BNGRAD_DEVICE_CPU, 0));
    check(bngradSetThreads(handle, &sized.threads));
    sized.handle = handle;
  }
  return sized.handle;
}
