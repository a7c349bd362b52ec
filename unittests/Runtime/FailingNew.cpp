//===- FailingNew.cpp - operator new that fails -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FailingNew.h"

#include <cstdlib>
#include <new>

namespace {
struct State {
  bool isCounting = false;
  bool forever = false;
  long number = 0;
  long count = 0;
  long numLive = 0;
  bool hasFailed = false;
};
} // namespace

static thread_local State state;
static thread_local bool isSpared = false;

static bool isCounted() { return state.isCounting && !isSpared; }

FailedNew callWithFailingNew(long number, bool forever,
                             const std::function<void()> &run) {
  state = State();
  state.number = number;
  state.forever = forever;
  state.isCounting = true;
  run();
  state.isCounting = false;
  return {state.hasFailed, state.numLive};
}

void spareAllocations(bool spared) { isSpared = spared; }

/// Null if it fails.
static void *allocate(size_t size) {
  if (isCounted()) {
    ++state.count;
    if (state.number != 0 && (state.count == state.number ||
                              (state.forever && state.count > state.number))) {
      state.hasFailed = true;
      return nullptr;
    }
    ++state.numLive;
  }
  return std::malloc(size ? size : 1);
}

void *operator new(size_t size) {
  if (void *memory = allocate(size))
    return memory;
  throw std::bad_alloc();
}

// All forms, as those of sanitizers do not go through the first.
void *operator new[](size_t size) { return operator new(size); }
void *operator new(size_t size, const std::nothrow_t &) noexcept {
  return allocate(size);
}
void *operator new[](size_t size, const std::nothrow_t &) noexcept {
  return allocate(size);
}

void operator delete(void *memory) noexcept {
  if (memory && isCounted())
    --state.numLive;
  std::free(memory);
}

void operator delete[](void *memory) noexcept { operator delete(memory); }
void operator delete(void *memory, size_t) noexcept { operator delete(memory); }
void operator delete[](void *memory, size_t) noexcept {
  operator delete(memory);
}
