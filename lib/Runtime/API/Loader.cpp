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

static std::mutex mutex;

[[gnu::constructor]] static void watchForks() {
  pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); },
                 [] { new (&mutex) std::mutex; });
}

LoaderLock::LoaderLock() { mutex.lock(); }

LoaderLock::~LoaderLock() { mutex.unlock(); }
