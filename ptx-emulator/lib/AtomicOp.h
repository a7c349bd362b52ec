//===- AtomicOp.h - operations of atomics and reductions --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_ATOMICOP_H
#define PTX_EMULATOR_LIB_ATOMICOP_H

#include "Types.h"

namespace ptx {

enum class AtomicOp : uint8_t {
  Add,
  Min,
  Max,
  And,
  Or,
  Xor,
  Inc,
  Dec,
  Exch,
  Cas
};

/// An operation on elements of a type.
struct Reduction {
  AtomicOp op = AtomicOp::Add;
  Type type = Type::None;
  /// Single-precision atomics on global memory flush subnormals.
  bool isGlobal = false;
};

/// The new value if memory contains `old`; `c` is the third operand of cas.
uint64_t applyAtomic(const Reduction &reduction, uint64_t old, uint64_t b,
                     uint64_t c = 0);

/// Applies `reduction` to each element of the `bytes` bytes at `to` and `from`.
void reduce(const Reduction &reduction, uint8_t *to, const uint8_t *from,
            uint32_t bytes);

} // namespace ptx

#endif // PTX_EMULATOR_LIB_ATOMICOP_H
