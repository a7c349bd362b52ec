//===- ForkLock.h - locks of static storage, and fork -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_FORKLOCK_H
#define BNGRAD_LIB_RUNTIME_FORKLOCK_H

#include <new>
#include <pthread.h>
#include <type_traits>

namespace bngrad {

/// Makes fork() wait for the thread that holds a lock of static storage; the
/// child finds it free. To be called once, when the library is loaded.
template <auto &lock> void holdDuringFork() {
  using Lock = std::remove_reference_t<decltype(lock)>;
  // The lock knows the thread that took it, which has another number in the
  // child.
  pthread_atfork([] { lock.lock(); }, [] { lock.unlock(); },
                 [] { new (&lock) Lock; });
}

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_FORKLOCK_H
