//===- Compilation.cpp - compilations, fork and exit ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"

#include <atomic>
#include <cstdlib>

#include <pthread.h>
#include <unistd.h>

using namespace mlir::bngrad;

/// Compilations read, fork() and exit() write. Those who wait to write come
/// first, as there may always be a compilation.
static const pthread_rwlock_t kUnlocked =
    PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_rwlock_t lock = kUnlocked;

/// Whether exit() has begun, and the thread that has called it.
static std::atomic<bool> isEnding{false};
static pthread_t endingThread;

/// Compilations of this thread, within which it may fork or call another one.
static thread_local int numOwn = 0;

static void beforeFork() {
  if (numOwn == 0)
    pthread_rwlock_wrlock(&lock);
}

static void afterForkInParent() {
  if (numOwn == 0)
    pthread_rwlock_unlock(&lock);
}

/// The lock knows the thread that took it, which has another number here.
static void afterForkInChild() {
  lock = kUnlocked;
  if (numOwn > 0)
    pthread_rwlock_rdlock(&lock);
}

void Compilation::end() {
  if (!isEnding) {
    endingThread = pthread_self();
    isEnding = true;
  }
  if (numOwn > 0)
    return;
  pthread_rwlock_wrlock(&lock);
  pthread_rwlock_unlock(&lock);
}

/// When the library is loaded. A fork that has begun before does not know the
/// handlers; so who loads the library waits for its end before it compiles.
[[gnu::constructor]] static void watchProcess() {
  pthread_atfork(beforeFork, afterForkInParent, afterForkInChild);
  std::atexit(Compilation::end);
}

Compilation::Compilation(AtEnd atEnd) {
  if (numOwn++ == 0)
    pthread_rwlock_rdlock(&lock);
  isAllowed = !isEnding;
  if (isAllowed || atEnd == AtEnd::Refuse ||
      pthread_equal(pthread_self(), endingThread))
    return;
  if (numOwn == 1)
    pthread_rwlock_unlock(&lock);
  for (;;)
    pause();
}

Compilation::~Compilation() {
  if (--numOwn == 0)
    pthread_rwlock_unlock(&lock);
  // LLVM's objects that this compilation was the first to use are destroyed
  // before those of earlier ones, so exit() calls the last function first.
  // After these compilations there are hardly any new ones.
  static std::atomic<int> numRegistered{0};
  constexpr int kMostRegistered = 16;
  if (isAllowed && numRegistered < kMostRegistered) {
    ++numRegistered;
    std::atexit(end);
  }
}
