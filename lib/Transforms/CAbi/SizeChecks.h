//===- SizeChecks.h - run-time checks of sizes and indices ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_CABI_SIZECHECKS_H
#define BNGRAD_LIB_TRANSFORMS_CABI_SIZECHECKS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::bngrad {

/// The text that precedes the message of a check in upstream's cf.asserts.
inline constexpr llvm::StringLiteral kUpstreamMessage = "\n^ ";

/// Adds the run-time checks of sizes and indices that upstream lacks, as
/// cf.asserts before each op, or before the enclosing op if its region accepts
/// no other ops. If the condition compares two index values, the first is the
/// actual and the second the expected value. The checks replace upstream's
/// checks of indices and slices, whose messages do not contain the values.
/// docs/ahead-of-time.md lists the ops.
///
/// Errors: a diagnostic and failure for a memref.reinterpret_cast of an
///         unranked buffer that is not a cast of a ranked one, and for a
///         memref.view whose elements have an unknown size in bytes.
LogicalResult addSizeChecks(func::FuncOp function);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_CABI_SIZECHECKS_H
