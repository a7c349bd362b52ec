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

[[gnu::constructor]] static void watchLoader() {
  pthread_atfork([] { loaderMutex.lock(); }, [] { loaderMutex.unlock(); },
                 [] { new (&loaderMutex) std::mutex; });
}

LoaderLock::LoaderLock() { loaderMutex.lock(); }

LoaderLock::~LoaderLock() { loaderMutex.unlock(); }
