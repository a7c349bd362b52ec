//===- Immortal.h - objects that are never destroyed ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNTIME_CUDA_IMMORTAL_H
#define BNGRAD_RUNTIME_CUDA_IMMORTAL_H

namespace bngrad::cuda {

/// A T of static storage that is not destroyed: destructors of the program may
/// still call the library. Unlike one on the heap it cannot be missing.
template <typename T> class Immortal {
public:
  Immortal() : object() {}
  ~Immortal() {}
  Immortal(const Immortal &) = delete;
  Immortal &operator=(const Immortal &) = delete;

  T &operator*() { return object; }

private:
  union {
    T object;
  };
};

} // namespace bngrad::cuda

#endif // BNGRAD_RUNTIME_CUDA_IMMORTAL_H
