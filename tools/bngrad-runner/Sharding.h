//===- Sharding.h - how arrays are spread over processes --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNNER_SHARDING_H
#define BNGRAD_RUNNER_SHARDING_H

#include "BNGrad/Reference/Npy.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <vector>

namespace mlir::bngrad {

/// The grid axes along which each dim of an array is split, major first.
/// Missing dims are not split.
using SplitAxes = std::vector<std::vector<int64_t>>;

/// Explicit, possibly uneven sizes of shards, for dims that are split along
/// `axes`.
struct ShardSizes {
  std::vector<int64_t> axes, sizes;
};

/// Parses the value of --shards, such as `0:3+1+2`.
///
/// Errors: nothing.
std::optional<ShardSizes> parseShardSizes(StringRef text);

/// How the arguments and results of a function are spread over the processes of
/// a grid, which is row-major.
struct Sharding {
  std::vector<int64_t> grid;
  std::vector<SplitAxes> arguments, results;
  std::vector<ShardSizes> sizes;

  /// The sharding of a function after the stage `partition`; a grid without
  /// axes if it is not sharded.
  static Sharding get(func::FuncOp function);

  int64_t getNumProcesses() const;
  /// Such as `2x2`.
  std::string printGrid() const;

  /// Whether `sizes` fit the grid and the program.
  ///
  /// Errors: one line on standard error and failure.
  LogicalResult verifySizes() const;

  /// The part of an array of `shape` that process `rank` has. Parts are as even
  /// as possible: the first parts may have one element more.
  ///
  /// Errors: the reason in `error` and failure.
  FailureOr<::bngrad::ArrayPart> getPart(const SplitAxes &splitAxes,
                                         ArrayRef<int64_t> shape, int64_t rank,
                                         std::string &error) const;

  /// Whether process `rank` is the first of the processes with its part.
  bool isFirstOfPart(const SplitAxes &splitAxes, int64_t rank) const;
};

/// The text of a shape, such as `[2, ?]`.
std::string printShape(ArrayRef<int64_t> shape);

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_SHARDING_H
