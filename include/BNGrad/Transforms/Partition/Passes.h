//===- Passes.h - gradients over several processes ------------ -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_PARTITION_PASSES_H
#define BNGRAD_TRANSFORMS_PARTITION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace mlir::bngrad {

#define GEN_PASS_DECL
#include "BNGrad/Transforms/Partition/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "BNGrad/Transforms/Partition/Passes.h.inc"

/// The attribute of a partitioned function with the sizes of the grid, a
/// DenseI64ArrayAttr.
inline constexpr llvm::StringLiteral kGridShapeAttrName = "bngrad.grid_shape";

/// The attribute of a partitioned function's sharded argument or result with
/// the grid axes along which each dim is split, a shard::GridAxesArrayAttr.
inline constexpr llvm::StringLiteral kSplitAxesAttrName = "bngrad.split_axes";

/// Adds the passes of the stage `partition`, for pass managers on a module.
void addPartitionPasses(OpPassManager &pm);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_PARTITION_PASSES_H
