//===- FakeMpi.h - a back end whose processes are threads -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_UNITTESTS_RUNTIME_DISTRIBUTED_FAKEMPI_H
#define BNGRAD_UNITTESTS_RUNTIME_DISTRIBUTED_FAKEMPI_H

#include <atomic>
#include <cstdint>

namespace bngrad::fake {

/// A communicator of the caller, as each process has one: messages are matched
/// by `job`.
struct Communicator {
  int64_t job, rank, size;
};

/// How calls behave, in all processes.
struct Behaviour {
  /// The function that fails, such as "MPI_Iallreduce"; null: none.
  std::atomic<const char *> failing{nullptr};
  std::atomic<bool> isConcurrent{true};
};

extern Behaviour behaviour;

/// All-reduces and communicators that were made, in all processes.
extern std::atomic<int64_t> numAllReduces, numCommunicators;

} // namespace bngrad::fake

#endif // BNGRAD_UNITTESTS_RUNTIME_DISTRIBUTED_FAKEMPI_H
