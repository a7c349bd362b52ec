//===- ShardedRun.h - a program of several processes ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNNER_SHARDEDRUN_H
#define BNGRAD_RUNNER_SHARDEDRUN_H

#include "Program.h"
#include "RunOptions.h"

namespace mlir::bngrad {

/// A run of a partitioned program in one of its processes. If a step fails in
/// one process, all end.
class ShardedRun {
public:
  /// `whole` is the function on whole arrays, `part` that of one process.
  ShardedRun(const RunOptions &options, Program &whole, Program &part,
             const Execution &execution)
      : options(options), whole(whole), part(part), execution(execution),
        sharding(part.getSharding()) {}

  /// `verify` checks the options other than --arg; `finish` is called after the
  /// compiled function.
  ///
  /// Errors: one line on standard error and failure.
  LogicalResult run(function_ref<LogicalResult()> verify,
                    function_ref<LogicalResult()> finish);

private:
  LogicalResult makeParts();
  LogicalResult compile();
  LogicalResult prepare();
  LogicalResult write();
  LogicalResult writePart(size_t i, StringRef path);
  LogicalResult writeAlone(size_t i, StringRef path);
  LogicalResult check();

  const RunOptions &options;
  Program &whole, &part;
  const Execution &execution;
  Sharding sharding;
  std::vector<::bngrad::Array> arguments, results;
  /// Shapes of the whole arguments and results.
  std::vector<std::vector<int64_t>> argumentShapes, resultShapes;
  /// The parts of the results.
  std::vector<::bngrad::ArrayPart> resultParts;
};

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_SHARDEDRUN_H
