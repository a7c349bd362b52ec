//===- Status.h - status of compiled functions ---------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_CABI_STATUS_H
#define BNGRAD_TRANSFORMS_CABI_STATUS_H

#include "BNGrad/Runtime/Runtime.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::bngrad {

/// The status that a compiled function returns if a pointer that must not be
/// null is null.
inline constexpr int32_t kNullPointerStatus = -1;

/// The status that a compiled function returns if host memory ran out. The
/// results are then incomplete, but all memory has been freed.
inline constexpr int32_t kOutOfMemoryStatus = -2;

/// The statuses that checked entries return, numbered as in
/// BNGrad/Runtime/Runtime.h.
enum class Status : int32_t {
  Success = BNGRAD_SUCCESS,
  BadParam = BNGRAD_BAD_PARAM,
  NullPointer = BNGRAD_NULL_POINTER,
  BadShape = BNGRAD_BAD_SHAPE,
  BadStrides = BNGRAD_BAD_STRIDES,
  InsufficientWorkspace = BNGRAD_INSUFFICIENT_WORKSPACE,
  InternalError = BNGRAD_INTERNAL_ERROR,
  ProcessError = BNGRAD_PROCESS_ERROR
};

/// Marks functions whose last result is a status.
inline constexpr llvm::StringLiteral kStatusAttrName = "bngrad.returns_status";

/// Adds a status, an i32, as the last result of each function of `module` that
/// may allocate memory, directly or through a call. All paths return 0 until
/// `--bngrad-lower-allocations` adds the paths on which memory runs out. A
/// function whose address is taken is unchanged.
///
/// Needs: functions on buffers.
void addStatuses(ModuleOp module);

/// Whether `addStatuses` has given `function` a status.
bool returnsStatus(func::FuncOp function);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_CABI_STATUS_H
