//===- SizeChecks.h - run-time checks of tensor ops -------------*- C++ -*-===//
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

/// What precedes the message of a check in the text that upstream makes of it.
inline constexpr llvm::StringLiteral kUpstreamMessage = "\n^ ";

/// Adds the run-time checks of sizes and indices that upstream lacks, as
/// cf.assert before each op, or before the op whose region takes no others.
/// Where each compares two index values, these are the actual and the expected
/// one. They replace upstream's checks of indices and slices, whose texts name
/// no value. docs/ahead-of-time.md lists the ops.
///
/// Errors: a diagnostic and failure for a memref.reinterpret_cast of an
///         unranked buffer that is not a cast of a ranked one, and for a
///         memref.view as elements of another type than data has.
LogicalResult addSizeChecks(func::FuncOp function);

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_CABI_SIZECHECKS_H
