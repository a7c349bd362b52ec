//===- Status.h - what a function returns that may fail ------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_STATUS_H
#define BNGRAD_TRANSFORMS_STATUS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::bngrad {

/// What compiled functions return where a pointer is null that may not be.
inline constexpr int32_t kNullPointerStatus = -1;

/// What compiled functions return where memory of the host ran out. Results
/// are then of no use, but nothing is leaked.
inline constexpr int32_t kOutOfMemoryStatus = -2;

/// On functions whose last result is a status.
inline constexpr llvm::StringLiteral kStatusAttrName = "bngrad.returns_status";

/// Gives each function of `module` that may allocate memory, or calls one that
/// may, a last result: an i32, 0 unless `--bngrad-lower-allocations` makes it
/// another status. A function whose address is taken is left alone.
///
/// Needs: functions on buffers.
void addStatuses(ModuleOp module);

/// Whether `addStatuses` has given `function` a status.
bool returnsStatus(func::FuncOp function);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_STATUS_H
