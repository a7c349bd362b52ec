//===- MemoryModifiers.h - modifiers of memory accesses ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_INSTRUCTIONS_MEMORYMODIFIERS_H
#define PTX_EMULATOR_LIB_INSTRUCTIONS_MEMORYMODIFIERS_H

#include "Lanes.h"

namespace ptx {

bool takeMemorySpace(Decoder &decoder, Space &space);

/// .cta and so on; the device if there is none.
Scope takeScope(Decoder &decoder);

/// .weak, .relaxed.gpu and so on.
void takeOrdering(Decoder &decoder, Inst &inst);

/// Cache operators and hints, which have no effect. True if there is an
/// operand with a cache policy.
bool takeCacheHints(Decoder &decoder);

/// The acquire and release effects of a strong access.
void acquireAfter(Warp &warp, const Inst &inst, unsigned lane,
                  const Place &place);
void releaseBefore(Warp &warp, const Inst &inst, unsigned lane,
                   const Place &place);

} // namespace ptx

#endif // PTX_EMULATOR_LIB_INSTRUCTIONS_MEMORYMODIFIERS_H
