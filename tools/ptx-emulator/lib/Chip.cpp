//===- Chip.cpp - limits of the GPUs ----------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chip.h"

#include <cstdlib>

namespace bngrad::ptx {

unsigned chipNumber(const std::string &name) {
  if (name.compare(0, 3, "sm_") != 0)
    return 0;
  return std::strtoul(name.c_str() + 3, nullptr, 10);
}

Chip findChip(const std::string &name) {
  // Shared memory is from the CUDA programming guide, table of compute
  // capabilities; the number of multiprocessors is that of a common board.
  const struct {
    unsigned number;
    Chip chip;
  } chips[] = {
      {75, {"", 64 << 10, 40, 1024, false}},
      {80, {"", 163 << 10, 108, 2048, false}},
      {86, {"", 99 << 10, 84, 1536, false}},
      {87, {"", 163 << 10, 16, 1536, false}},
      {89, {"", 99 << 10, 142, 1536, false}},
      {90, {"", 227 << 10, 132, 2048, true}},
      {100, {"", 227 << 10, 148, 2048, true}},
      {120, {"", 99 << 10, 188, 1536, true}},
  };
  unsigned number = chipNumber(name);
  Chip result = chips[0].chip;
  for (const auto &entry : chips)
    if (entry.number <= number)
      result = entry.chip;
  result.name = name;
  return result;
}

} // namespace bngrad::ptx
