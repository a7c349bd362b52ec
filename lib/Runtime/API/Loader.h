//===- Loader.h - loads shared libraries ----------------------- -*- C++ -*-==//
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

/// Held while this library uses dlopen, dlsym or dlclose, by one thread at a
/// time. fork() waits for that thread: its child would find the locks of the
/// system's loader taken. No other lock of this library is taken within.
class LoaderLock {
public:
  LoaderLock();
  ~LoaderLock();
  LoaderLock(const LoaderLock &) = delete;
  LoaderLock &operator=(const LoaderLock &) = delete;

  /// Makes fork() wait for compilations of a library, too. A fork that had
  /// begun when the library was loaded does not call the library's handlers.
  void watch(bngradHoldCompilationsFunction_t hold,
             bngradReleaseCompilationsFunction_t release);
};

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_API_LOADER_H
