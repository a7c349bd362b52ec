//===- IndexingMapChecks.h - run-time checks of indexing maps ---*- C++ -*-===//
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

/// Checks that the indexing maps of linalg ops stay within the operands: adds
/// cf.asserts before an op for each map result that is not just a loop or a
/// constant. For loops, upstream's checks of the first and the last iteration
/// suffice.
///
/// Errors: a diagnostic and failure for a divisor that is not a positive
///         constant.
LogicalResult addIndexingMapChecks(func::FuncOp function);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_CABI_INDEXINGMAPCHECKS_H
