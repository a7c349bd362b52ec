//===- Utils.h - small questions about ops ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_UTILS_UTILS_H
#define BNGRAD_LIB_TRANSFORMS_UTILS_UTILS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir {
class Pass;
class RewritePatternSet;
} // namespace mlir

namespace mlir::bngrad {

/// True if all loops of `op` are parallel.
inline bool isParallel(linalg::LinalgOp op) {
  return op.getNumLoops() == op.getNumParallelLoops();
}

/// True if `op` rounds to nearest, ties to even, as it does by default.
inline bool roundsToNearestEven(arith::TruncFOp op) {
  return op.getRoundingmode().value_or(arith::RoundingMode::to_nearest_even) ==
         arith::RoundingMode::to_nearest_even;
}

/// Upstream's canonicalizer without its search for unreachable blocks and
/// unused block arguments, which takes most of its time. LLVM removes them.
std::unique_ptr<Pass> createOpCanonicalizerPass();

/// Clones the tensor.empty, or the linalg.fill of one, that defines `init`, at
/// the insertion point of `b`; null if it is neither.
Value cloneInit(OpBuilder &b, Value init);

/// Checks dim indices in `root` that upstream uses unchecked. For reshapes of
/// tensors, its verifier compares only the lower 32 bits, while its folders and
/// our passes use all 64 (docs/upstream.md, section 14); reshapes of memrefs
/// are verified in 64 bits. Nothing verifies that the index of a `tensor.dim`
/// or `memref.dim` is not negative, and folding such a `memref.dim` reads out
/// of bounds.
///
/// Errors: a diagnostic at the first reshape whose indices are not consecutive,
/// or dim whose index is negative.
LogicalResult verifyDimIndices(Operation *root);

/// Applies `patterns` below `op` until none matches. Each rewrite lowers a
/// measure, so this ends. If a measure is wrong, an excess of rewrites stops it
/// with a warning that names `work`, and the IR is correct but unfinished.
///
/// Errors: those of `verifyDimIndices`, as ops are also folded.
LogicalResult applyToFixedPoint(Operation *op, RewritePatternSet patterns,
                                StringRef work);

/// Keeps LLVM from unrolling `loop`, an scf.for.
void disableUnrolling(Operation *loop);

/// The memref whose memory `memref` is a view of, through views of any kind.
Value getMemory(Value memref);

/// True if the memory of `memref` is an argument of its function.
bool isArgument(Value memref);

/// Appends all users of the memory of `memref`, through views, to `users`.
void collectUsers(Value memref, SmallVectorImpl<Operation *> &users);

/// True if `a` and `b`, views of the same memory, are known to be disjoint.
bool areDisjoint(Value a, Value b);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_UTILS_UTILS_H
