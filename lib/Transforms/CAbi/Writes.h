//===- Writes.h - what the data that a function writes decides --*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_CABI_WRITES_H
#define BNGRAD_LIB_TRANSFORMS_CABI_WRITES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace mlir::bngrad {

/// On ops of reports, which do not count as writes, while a shape function is
/// made.
inline constexpr StringLiteral kReportAttrName = "bngrad.report";

/// What a function writes, and which of its values depend on that.
class Writes {
public:
  explicit Writes(func::FuncOp function);

  bool areThereAny() const { return !ops.empty(); }
  /// Whether data that the function writes decide on `value`, or on `op` and
  /// how often it is run.
  bool decideOn(Value value);
  bool decideOn(scf::IfOp op);
  /// Removes the ops, on whose results nothing may depend that matters.
  ///
  /// Errors: a diagnostic and failure for an op that contains a report.
  LogicalResult remove();

private:
  static Value findMemory(Value buffer);
  bool dependsOn(Value value, bool onSizes);
  bool dependsOn(Operation *op, bool onSizes);
  /// The same for whether and how often the regions of `op` are run.
  bool runsOf(Operation *op);
  bool mayRead(Operation *op);
  /// Whether the function may write to the memory of `buffer`; null: any.
  bool mayWriteTo(Value buffer) {
    Value whole = buffer ? findMemory(buffer) : Value();
    return !whole || memory.contains(whole) || memory.contains(Value());
  }

  func::FuncOp function;
  SmallVector<Operation *> ops;
  /// The buffers that they write to; null: any.
  llvm::SmallPtrSet<Value, 8> memory;
  /// Those that were visited for data and for sizes.
  llvm::SmallPtrSet<Operation *, 16> visited[2];
  llvm::SmallPtrSet<Value, 16> visitedArguments[2];
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_CABI_WRITES_H
