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
#include <vector>

namespace ptx {

struct Chip {
  std::string name;
  uint32_t sharedBytes; // largest size per block
  uint32_t multiprocessors;
  uint32_t threadsPerMultiprocessor;
  bool clusters;
  /// Multiprocessors of each processing cluster, in which the blocks of a
  /// cluster are; empty if they are not known.
  std::vector<uint32_t> processingClusters;

  /// The driver's part of each block's shared memory, in bytes.
  uint32_t reservedSharedBytes() const;
  /// Shared memory of all blocks of a multiprocessor, in bytes.
  uint32_t sharedBytesOfMultiprocessor() const {
    return sharedBytes + reservedSharedBytes();
  }
  /// The blocks of `threads` threads and `bytes` of shared memory that a
  /// multiprocessor runs at once; registers are not counted.
  uint64_t countResidentBlocks(uint64_t threads, uint64_t bytes) const;
  /// The clusters of `clusterBlocks` blocks that run at once, if a
  /// multiprocessor runs `residentBlocks` blocks; 0 if the processing clusters
  /// are not known.
  uint64_t countClusterSlots(uint64_t clusterBlocks,
                             uint64_t residentBlocks) const;
};

/// The chip `name` ("sm_90", "sm_90a"); a similar chip if the name is unknown.
Chip findChip(const std::string &name);

/// The number in a name of a chip: 90 for "sm_90a"; 0 if there is none.
unsigned chipNumber(const std::string &name);

} // namespace ptx

#endif // PTX_EMULATOR_LIB_CHIP_H
