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

/// The processes of --mpi, or only this one. Errors are kept until all
/// processes meet: the first prints the errors that all have, and each prints
/// its others.
class Processes {
public:
  /// Called before the command line is parsed: only the first process that a
  /// launcher has started reports errors in it.
  static void silenceOthers();

  /// Initializes MPI; `mpi` is openmpi, mpich or the path of a back end, or
  /// empty for this process alone.
  ///
  /// Errors: one line on standard error and failure.
  static LogicalResult initialize(StringRef mpi);

  static int64_t getRank();
  static int64_t getSize();
  static bool isShared() { return getSize() > 1; }

  /// Whether all processes have succeeded; every process must call it.
  static LogicalResult agree(LogicalResult result);

  /// Returns the `text` of the first process in all processes.
  ///
  /// Errors: one line on standard error and failure.
  static FailureOr<std::string> broadcast(std::string text);

  /// Prints the kept errors before the process ends on its own. With `isOfAll`,
  /// all processes have the same errors and end as well.
  static void printErrors(bool isOfAll);

  /// Reports the failed all-reduce of a call of compiled code.
  static LogicalResult reportCollective();
};

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_PROCESSES_H
