//===- Header.h - the header that processes compare -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_DISTRIBUTED_HEADER_H
#define BNGRAD_LIB_RUNTIME_DISTRIBUTED_HEADER_H

#include "BNGrad/Runtime/Collectives.h"

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace bngrad::distributed {

/// How far a process is with a collective.
enum class Progress : int64_t {
  /// It waits for the result of the comparison.
  Comparing = 0,
  /// Its all-reduce has begun.
  Started = 1,
  /// It has the sum, and has forgotten the rest of the header.
  Done = 2
};

/// What one process knows about a collective, in the form in which it is sent.
struct Header {
  /// The number of collectives that the process started before.
  int64_t index;
  Progress progress;
  int64_t dtype, count;
  int64_t gridRank, numAxes;
  int64_t gridShape[BNGRAD_MAX_GRID_RANK], axes[BNGRAD_MAX_GRID_RANK];
  /// The size of the whole text of the op, which `op` may truncate.
  int64_t opSize;
  uint64_t opHash;
  char op[1024];
};
static_assert(std::is_trivially_copyable_v<Header>);

/// The header of a collective that was verified; `op` is its text.
Header makeHeader(const bngradCollective_t &collective, int64_t count);

/// Prints a grid, such as `4` or `2x3`.
std::string printGrid(const Header &header);

/// Prints ranks, such as `ranks 0-2, 5`.
std::string printRanks(const std::vector<int64_t> &ranks);

/// The product of the sizes of the grid.
int64_t getGridSize(const Header &header);

/// The processes that share a sum with `rank`, ascending.
std::vector<int64_t> getAxisGroup(const Header &header, int64_t rank);

/// Why the headers of all processes, by rank, do not belong to one collective;
/// empty if they do.
std::string findDifference(const std::vector<Header> &headers);

} // namespace bngrad::distributed

#endif // BNGRAD_LIB_RUNTIME_DISTRIBUTED_HEADER_H
