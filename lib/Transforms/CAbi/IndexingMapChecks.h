//===- IndexingMapChecks.h - run-time checks of linalg ops ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_CABI_INDEXINGMAPCHECKS_H
#define BNGRAD_LIB_TRANSFORMS_CABI_INDEXINGMAPCHECKS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::bngrad {

/// Adds a cf.assert before each linalg op for each result of an indexing map
/// whose indices may be elsewhere than in the operand. Upstream checks the
/// first and the last iteration, which is enough for results that are loops.
///
/// Errors: a diagnostic and failure for a divisor that is not a positive
///         constant.
LogicalResult addIndexingMapChecks(func::FuncOp function);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_CABI_INDEXINGMAPCHECKS_H
