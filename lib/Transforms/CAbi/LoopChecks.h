//===- LoopChecks.h - run-time checks of loops ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_CABI_LOOPCHECKS_H
#define BNGRAD_LIB_TRANSFORMS_CABI_LOOPCHECKS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace mlir::bngrad {

/// Adds checks before `op` that all dims that one loop iterates over have the
/// same size.
void addLoopChecks(linalg::LinalgOp op);

/// Adds checks before `loop` that its steps are positive, and that the
/// differences of its bounds do not overflow.
void addLoopChecks(LoopLikeOpInterface loop);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_CABI_LOOPCHECKS_H
