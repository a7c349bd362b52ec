//===- Collectives.h - all-reduces of a function -------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_PARTITION_COLLECTIVES_H
#define BNGRAD_LIB_TRANSFORMS_PARTITION_COLLECTIVES_H

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"

namespace mlir::bngrad {

/// A string attribute of a `shard.all_reduce`, by which processes recognize it.
inline constexpr StringLiteral kCollectiveAttrName = "bngrad.collective";

/// Returns text such as "bngrad.batch_norm_backward
/// grad_output(tensor<8x64xf32>) ... feature_dims=[1] epsilon=1e-05
/// statistics=batch".
std::string describeGradient(BatchNormOpInterface op);

/// All-reduces of a block that do not wait for one another.
struct CollectiveLevel {
  SmallVector<shard::AllReduceOp> ops;
  /// The first op after them that may use one of their results.
  Operation *firstUser = nullptr;
};

/// Sorts the ops of each block of `function` that has all-reduces by the number
/// of all-reduces that they wait for, one after another, and returns the levels
/// of all blocks. So work that does not depend on an all-reduce comes before
/// the first op that does, and a whole level comes before the first op that
/// needs one of its all-reduces. An all-reduce directly follows its operand.
/// The order of effects does not change. Unused all-reduces are erased.
///
/// Needs: tensors.
SmallVector<CollectiveLevel> sortByCollectives(func::FuncOp function);

/// The grid axes of `op`, ascending; all axes if it names none.
SmallVector<shard::GridAxis> getGridAxesOf(shard::AllReduceOp op,
                                           shard::GridOp grid);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_PARTITION_COLLECTIVES_H
