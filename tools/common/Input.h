//===- Input.h - reads IR files ---------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TOOLS_COMMON_INPUT_H
#define BNGRAD_TOOLS_COMMON_INPUT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::bngrad {

/// Reads the IR of `path` ("-" for standard input), text or bytecode; at most 1
/// GiB from a pipe or device.
///
/// Errors: one line on standard error and null.
OwningOpRef<ModuleOp> readModule(MLIRContext *context, StringRef path);

} // namespace mlir::bngrad

#endif // BNGRAD_TOOLS_COMMON_INPUT_H
