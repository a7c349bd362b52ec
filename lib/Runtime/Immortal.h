//===- Immortal.h - objects that are never destroyed ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_IMMORTAL_H
#define BNGRAD_LIB_RUNTIME_IMMORTAL_H

#include <new>

namespace bngrad {

/// A T of static storage that is never destroyed: destructors of the program
/// and threads may still call the library while the process ends. Unlike an
/// object on the heap, its allocation cannot fail.
template <typename T> class Immortal {
public:
  Immortal() { new (memory) T(); }
  Immortal(const Immortal &) = delete;
  Immortal &operator=(const Immortal &) = delete;

  T &operator*() { return *std::launder(reinterpret_cast<T *>(memory)); }

private:
  alignas(T) char memory[sizeof(T)];
};

} // namespace bngrad

#endif // BNGRAD_LIB_RUNTIME_IMMORTAL_H
