//===- Lanes.h - handlers that treat all lanes alike ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_INSTRUCTIONS_LANES_H
#define PTX_EMULATOR_LIB_INSTRUCTIONS_LANES_H

#include "../Access.h"
#include "../Decoder.h"

namespace ptx {

/// A bit for each of the `bytes` low bytes of a register.
inline uint8_t lowBytes(unsigned bytes) { return (1u << bytes) - 1; }

/// d = Op::apply(a); d is of type D and a of type S.
template <typename Op, typename D, typename S = D>
void executeUnary(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    d[lane] = toBits<D>(Op::apply(fromBits<S>(a[lane])));
  });
}

/// d = Op::apply(a, b).
template <typename Op, typename D, typename S = D>
void executeBinary(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    d[lane] = toBits<D>(Op::apply(fromBits<S>(a[lane]), fromBits<S>(b[lane])));
  });
}

/// d = Op::apply(a, b, c); c has the type of d.
template <typename Op, typename D, typename S = D>
void executeTernary(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.in(inst.source[0]);
  const uint64_t *b = warp.in(inst.source[1]);
  const uint64_t *c = warp.in(inst.source[2]);
  uint64_t *d = warp.out(inst.dest[0]);
  forLanes(mask, [&](unsigned lane) {
    d[lane] = toBits<D>(Op::apply(fromBits<S>(a[lane]), fromBits<S>(b[lane]),
                                  fromBits<D>(c[lane])));
  });
}

/// The handler of `Op` for an integer type, or null for another.
template <typename Op> Handler unaryFor(Type type) {
  switch (type) {
  case Type::B16:
  case Type::U16:
    return executeUnary<Op, uint16_t>;
  case Type::S16:
    return executeUnary<Op, int16_t>;
  case Type::B32:
  case Type::U32:
    return executeUnary<Op, uint32_t>;
  case Type::S32:
    return executeUnary<Op, int32_t>;
  case Type::B64:
  case Type::U64:
    return executeUnary<Op, uint64_t>;
  case Type::S64:
    return executeUnary<Op, int64_t>;
  default:
    return nullptr;
  }
}

template <typename Op> Handler binaryFor(Type type) {
  switch (type) {
  case Type::B16:
  case Type::U16:
    return executeBinary<Op, uint16_t>;
  case Type::S16:
    return executeBinary<Op, int16_t>;
  case Type::B32:
  case Type::U32:
    return executeBinary<Op, uint32_t>;
  case Type::S32:
    return executeBinary<Op, int32_t>;
  case Type::B64:
  case Type::U64:
    return executeBinary<Op, uint64_t>;
  case Type::S64:
    return executeBinary<Op, int64_t>;
  default:
    return nullptr;
  }
}

template <typename Op> Handler ternaryFor(Type type) {
  switch (type) {
  case Type::B16:
  case Type::U16:
    return executeTernary<Op, uint16_t>;
  case Type::S16:
    return executeTernary<Op, int16_t>;
  case Type::B32:
  case Type::U32:
    return executeTernary<Op, uint32_t>;
  case Type::S32:
    return executeTernary<Op, int32_t>;
  case Type::B64:
  case Type::U64:
    return executeTernary<Op, uint64_t>;
  case Type::S64:
    return executeTernary<Op, int64_t>;
  default:
    return nullptr;
  }
}

/// The width of the parts of a packed type, or 0. Instructions on a packed type
/// work on each part separately.
inline unsigned partBytes(Type type) {
  switch (type) {
  case Type::U16x2:
  case Type::S16x2:
  case Type::F16x2:
  case Type::BF16x2:
    return 2;
  case Type::F32x2:
    return 4;
  default:
    return 0;
  }
}

/// Decodes `op.type d, a, ...` with `numSources` sources of the same type.
inline bool decodePlain(Decoder &decoder, Inst &inst, unsigned numSources) {
  if (!inst.handler)
    return decoder.unknown();
  inst.partBytes = partBytes(inst.type);
  if (inst.partBytes)
    inst.undefinedRule = UndefinedRule::Parts;
  if (!decoder.dest(inst, 0, inst.type))
    return false;
  for (unsigned i = 1; i <= numSources; ++i)
    if (!decoder.source(inst, i, inst.type))
      return false;
  return true;
}

} // namespace ptx

#endif // PTX_EMULATOR_LIB_INSTRUCTIONS_LANES_H
