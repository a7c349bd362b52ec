//===- Processes.h - the processes of a run ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNNER_PROCESSES_H
#define BNGRAD_RUNNER_PROCESSES_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace mlir::bngrad {

/// The processes of --mpi, or this one alone. Errors are kept until all of them
/// meet: the first prints those that all have, each its own others.
class Processes {
public:
  /// Before the command line is parsed: what is wrong with it is an error of
  /// the first process that a launcher has started.
  static void silenceOthers();

  /// Initializes MPI; `mpi` is openmpi, mpich or the path of a back end, or
  /// empty: this process alone.
  ///
  /// Errors: one line on standard error and failure.
  static LogicalResult initialize(StringRef mpi);

  static int64_t getRank();
  static int64_t getSize();
  static bool isShared() { return getSize() > 1; }

  /// Whether all processes have succeeded; every one of them calls it.
  static LogicalResult agree(LogicalResult result);

  /// `text` of the first process, in all.
  ///
  /// Errors: one line on standard error and failure.
  static FailureOr<std::string> broadcast(std::string text);

  /// Prints the errors that were kept, before the process ends by itself.
  /// `isOfAll`: all have the same, and end as well.
  static void printErrors(bool isOfAll);

  /// How a call of compiled code ends whose all-reduce has failed.
  static LogicalResult reportCollective();
};

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_PROCESSES_H
