//===- Compilation.cpp - compilations, fork and exit ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"

#include "CompilerLibrary.h"

#include <pthread.h>
#include <utility>

using namespace mlir::bngrad;

/// Takes the place of the system's function in this library, and in LLVM where
/// that is inside: exit() destroys none of their objects of static storage, as
/// other threads may still compile. The library is never unloaded.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the name is the system's.
extern "C" [[gnu::visibility("hidden")]] int __cxa_atexit(void (*)(void *),
                                                          void *, void *) {
  return 0;
}

/// Compilations read, fork() writes. Those who wait to write come first, as
/// there may always be a compilation.
static const pthread_rwlock_t kUnlocked =
    PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_rwlock_t lock = kUnlocked;

/// Compilations of this thread, within which it may fork or call another one.
static thread_local int numOwn = 0;

/// Whether this thread is in fork(), which may have the handlers of this
/// library and of the one that opened it.
static thread_local bool isForking = false;

void bngradHoldCompilations() {
  if (std::exchange(isForking, true))
    return;
  if (numOwn == 0)
    pthread_rwlock_wrlock(&lock);
}

void bngradReleaseCompilations(int isChild) {
  if (!std::exchange(isForking, false))
    return;
  if (!isChild) {
    if (numOwn == 0)
      pthread_rwlock_unlock(&lock);
    return;
  }
  // The lock knows the thread that took it, which has another number here.
  lock = kUnlocked;
  if (numOwn > 0)
    pthread_rwlock_rdlock(&lock);
}

[[gnu::constructor]] static void watchCompilations() {
  pthread_atfork(
      bngradHoldCompilations, [] { bngradReleaseCompilations(false); },
      [] { bngradReleaseCompilations(true); });
}

Compilation::Compilation() {
  if (numOwn++ == 0)
    pthread_rwlock_rdlock(&lock);
}

Compilation::~Compilation() {
  if (--numOwn == 0)
    pthread_rwlock_unlock(&lock);
}
