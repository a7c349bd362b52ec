//===- Loader.cpp - loads shared libraries --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Loader.h"

#include <mutex>
#include <new>
#include <pthread.h>

using namespace bngrad;

static std::mutex loaderMutex;

/// The compiler's function, once the compiler is loaded.
static bngradHoldCompilationsFunction_t holdCompilations;
static bngradReleaseCompilationsFunction_t releaseCompilations;

[[gnu::constructor]] static void watchLoader() {
  pthread_atfork(
      [] {
        loaderMutex.lock();
        if (holdCompilations)
          holdCompilations();
      },
      [] {
        if (releaseCompilations)
          releaseCompilations(/*is_child=*/0);
        loaderMutex.unlock();
      },
      [] {
        // The mutex records its owner's thread id, which differs in the child.
        new (&loaderMutex) std::mutex;
        if (releaseCompilations)
          releaseCompilations(/*is_child=*/1);
      });
}

LoaderLock::LoaderLock() { loaderMutex.lock(); }

LoaderLock::~LoaderLock() { loaderMutex.unlock(); }

void LoaderLock::watch(bngradHoldCompilationsFunction_t hold,
                       bngradReleaseCompilationsFunction_t release) {
  holdCompilations = hold;
  releaseCompilations = release;
}
