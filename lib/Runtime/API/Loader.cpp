//===- Loader.cpp - loads shared libraries --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Loader.h"

#include "../ForkLock.h"

#include <mutex>

using namespace bngrad;

static std::mutex loaderMutex;

[[gnu::constructor]] static void watchLoader() {
  holdDuringFork<loaderMutex>();
}

LoaderLock::LoaderLock() { loaderMutex.lock(); }

LoaderLock::~LoaderLock() { loaderMutex.unlock(); }
