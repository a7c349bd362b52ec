//===- Chip.cpp - limits of the GPUs ----------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chip.h"

#include <algorithm>
#include <cstdlib>

namespace ptx {

unsigned chipNumber(const std::string &name) {
  if (name.compare(0, 3, "sm_") != 0)
    return 0;
  return std::strtoul(name.c_str() + 3, nullptr, 10);
}

Chip findChip(const std::string &name) {
  // Shared memory is from the CUDA programming guide, table of compute
  // capabilities; the number of multiprocessors is that of a common board. How
  // they are distributed over processing clusters differs from board to board;
  // with these of sm_90, clusters of 8 run on 120 of them, as observed on H100
  // (CUTLASS, issue 1921).
  const struct {
    unsigned number;
    Chip chip;
  } chips[] = {
      {75, {"", 64 << 10, 40, 1024, false, {}}},
      {80, {"", 163 << 10, 108, 2048, false, {}}},
      {86, {"", 99 << 10, 84, 1536, false, {}}},
      {87, {"", 163 << 10, 16, 1536, false, {}}},
      {89, {"", 99 << 10, 142, 1536, false, {}}},
      {90, {"", 227 << 10, 132, 2048, true, {18, 18, 18, 16, 16, 16, 16, 14}}},
      {100, {"", 227 << 10, 148, 2048, true, {}}},
      {120, {"", 99 << 10, 188, 1536, true, {}}},
  };
  unsigned number = chipNumber(name);
  Chip result = chips[0].chip;
  for (const auto &entry : chips)
    if (entry.number <= number)
      result = entry.chip;
  result.name = name;
  return result;
}

uint32_t Chip::reservedSharedBytes() const {
  return chipNumber(name) >= 80 ? 1 << 10 : 0;
}

uint64_t Chip::countResidentBlocks(uint64_t threads, uint64_t bytes) const {
  constexpr uint64_t kMostBlocks = 32, kWarpSize = 32;
  uint64_t warps = (threads + kWarpSize - 1) / kWarpSize;
  uint64_t resident =
      std::min(kMostBlocks, threadsPerMultiprocessor / (warps * kWarpSize));
  if (uint64_t shared = bytes + reservedSharedBytes())
    resident = std::min(resident, sharedBytesOfMultiprocessor() / shared);
  return resident;
}

uint64_t Chip::countClusterSlots(uint64_t clusterBlocks,
                                 uint64_t residentBlocks) const {
  uint64_t slots = 0;
  for (uint64_t multiprocessors : processingClusters)
    slots += multiprocessors * residentBlocks / clusterBlocks;
  return slots;
}

} // namespace ptx
