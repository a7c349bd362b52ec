//===- Loader.h - loads shared libraries ---------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_API_LOADER_H
#define BNGRAD_LIB_RUNTIME_API_LOADER_H

#include "../../Compiler/Library/CompilerLibrary.h"

namespace bngrad {

/// Held by one thread at a time while this library uses dlopen, dlsym or
/// dlclose. fork() waits for that thread; otherwise the child would find the
/// system loader's locks taken. Its holder takes no other lock of this library.
class LoaderLock {
public:
  LoaderLock();
  ~LoaderLock();
  LoaderLock(const LoaderLock &) = delete;
  LoaderLock &operator=(const LoaderLock &) = delete;

  /// Makes fork() wait for the compilations of a library, which has no handlers
  /// of its own.
  void watch(bngradHoldCompilationsFunction_t hold,
             bngradReleaseCompilationsFunction_t release);
};

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_LOADER_H
