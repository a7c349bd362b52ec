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

/// Status of a compiled function after an invalid null pointer.
inline constexpr int32_t kNullPointerStatus = -1;

/// Status of a compiled function after host memory ran out. Results are
/// incomplete, but all memory is freed.
inline constexpr int32_t kOutOfMemoryStatus = -2;

/// Statuses of checked entries, numbered as in BNGrad/Runtime/Runtime.h.
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

/// The attribute of functions whose last result is a status.
inline constexpr llvm::StringLiteral kStatusAttrName = "bngrad.returns_status";

/// Adds an i32 as the last result of each function of `module` that may
/// allocate memory, or calls one that may. It is 0;
/// `--bngrad-lower-allocations` adds paths with another status. A function
/// whose address is taken is unchanged.
///
/// Needs: functions on buffers.
void addStatuses(ModuleOp module);

/// Whether `addStatuses` has given `function` a status.
bool returnsStatus(func::FuncOp function);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_CABI_STATUS_H
