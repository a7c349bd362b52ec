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

/// A shared mutex of static storage. Unlike some C++ libraries' mutexes it has
/// no destructor, as threads may still use it while the process ends.
class StaticSharedMutex {
public:
  // NOLINTBEGIN(readability-identifier-naming): names of the standard library.
  void lock() { pthread_rwlock_wrlock(&rwlock); }
  void lock_shared() { pthread_rwlock_rdlock(&rwlock); }
  void unlock() { pthread_rwlock_unlock(&rwlock); }
  void unlock_shared() { unlock(); }
  // NOLINTEND(readability-identifier-naming)

private:
  pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
};

/// Makes fork() wait for the thread that holds a lock of static storage; the
/// child finds it free. To be called once, when the library is loaded.
template <auto &lock> void holdDuringFork() {
  using Lock = std::remove_reference_t<decltype(lock)>;
  // The lock records its owner's thread id, which differs in the child.
  pthread_atfork([] { lock.lock(); }, [] { lock.unlock(); },
                 [] { new (&lock) Lock; });
}

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_FORKLOCK_H
