//===- RunOptions.h - the command line of a run -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNNER_RUNOPTIONS_H
#define BNGRAD_RUNNER_RUNOPTIONS_H

#include "CudaLibrary.h"
#include "Sharding.h"

#include "BNGrad/Compiler/Compiler.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::bngrad {

/// The command line.
struct RunOptions {
  std::string path, entry;
  RunTarget target = RunTarget::Cpu;
  std::string chip;
  std::optional<std::string> activeClusters, schedule;
  std::vector<std::string> arguments, results;
  bool check = false;
  ImportOptions import;
  std::optional<unsigned> benchmark, threads;
  std::string mpi;
  std::vector<ShardSizes> shards;
};

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_RUNOPTIONS_H
