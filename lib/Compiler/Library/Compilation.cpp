//===- Compilation.cpp - compilations, fork and exit ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"

#include "CompilerLibrary.h"
#include "ProgramLibrary.h"

#include <pthread.h>
#include <utility>

using namespace mlir::bngrad;

/// Replaces the system's function in this library, and in LLVM if it is linked
/// statically: exit() then destroys none of their static objects, as other
/// threads may still compile. The library is never unloaded.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the name is the system's.
extern "C" [[gnu::visibility("hidden")]] int __cxa_atexit(void (*)(void *),
                                                          void *, void *) {
  return 0;
}

/// Compilations read and fork() writes. Waiting writers come first, as there
/// may always be a compilation.
static const pthread_rwlock_t kUnlocked =
    PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_rwlock_t lock = kUnlocked;

/// The nested compilations of this thread, which may fork within them.
static thread_local int numOwn = 0;

/// Whether this thread is in fork(), which may run the handlers of this library
/// and of the library that opened it.
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
  // The lock records its owner's thread id, which differs in the child.
  lock = kUnlocked;
  if (numOwn > 0)
    pthread_rwlock_rdlock(&lock);
}

void bngradWatchForks() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] {
    pthread_atfork(
        bngradHoldCompilations, [] { bngradReleaseCompilations(false); },
        [] { bngradReleaseCompilations(true); });
  });
}

Compilation::Compilation() {
  if (numOwn++ == 0)
    pthread_rwlock_rdlock(&lock);
}

Compilation::~Compilation() {
  if (--numOwn == 0)
    pthread_rwlock_unlock(&lock);
}
