//===- Utils.h - small questions about linalg ops --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_UTILS_H
#define BNGRAD_LIB_TRANSFORMS_UTILS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::bngrad {

/// True if all loops of `op` are parallel.
inline bool isParallel(linalg::LinalgOp op) {
  return op.getNumLoops() == op.getNumParallelLoops();
}

/// Clones the tensor.empty, or the linalg.fill of one, that defines `init`, at
/// the insertion point of `b`; null if it is neither.
Value cloneInit(OpBuilder &b, Value init);

/// Whose memory `memref` is a view of, of whatever form.
Value getMemory(Value memref);

/// True if `a` and `b`, of the same memory, are parts of it that are known to
/// have nothing in common.
bool areDisjoint(Value a, Value b);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_UTILS_H
