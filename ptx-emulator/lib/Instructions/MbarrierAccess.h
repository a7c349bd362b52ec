//===- MbarrierAccess.h - finds mbarriers -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_INSTRUCTIONS_MBARRIERACCESS_H
#define PTX_EMULATOR_LIB_INSTRUCTIONS_MBARRIERACCESS_H

#include "Lanes.h"

namespace ptx {

/// The largest counts of arrivals and of bytes.
inline constexpr uint32_t kMostMbarrierCount = (1u << 20) - 1;

struct MbarrierPlace {
  Mbarrier *barrier = nullptr;
  Place place;
};

/// The mbarrier at `address`. Reports one that is not initialised, or whose
/// initialisation is not ordered before this access.
bool findMbarrier(Warp &warp, unsigned lane, Space space, uint64_t address,
                  MbarrierPlace &result);

} // namespace ptx

#endif // PTX_EMULATOR_LIB_INSTRUCTIONS_MBARRIERACCESS_H
