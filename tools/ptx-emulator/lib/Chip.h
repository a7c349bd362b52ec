//===- Chip.h - limits of the GPUs ------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_CHIP_H
#define PTX_EMULATOR_LIB_CHIP_H

#include <cstdint>
#include <string>

namespace bngrad::ptx {

struct Chip {
  std::string name;
  uint32_t sharedBytes; // largest size per block
  uint32_t multiprocessors;
  uint32_t threadsPerMultiprocessor;
  bool clusters;
};

/// The chip `name` ("sm_90", "sm_90a"); a similar chip if the name is unknown.
Chip findChip(const std::string &name);

/// The number in a name of a chip: 90 for "sm_90a"; 0 if there is none.
unsigned chipNumber(const std::string &name);

} // namespace bngrad::ptx

#endif // PTX_EMULATOR_LIB_CHIP_H
