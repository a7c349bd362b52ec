//===- Writes.h - dependences on data that a function writes ----*- C++ -*-===//
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

/// Marks the ops of reports while a shape function is made. Their effects do
/// not count as writes of the function.
inline constexpr StringLiteral kReportAttrName = "bngrad.report";

/// Finds the data that a function writes, and the values that depend on it.
class Writes {
public:
  explicit Writes(func::FuncOp function);

  bool areThereAny() const { return !ops.empty(); }
  /// Whether `value` depends on data that the function writes.
  bool decideOn(Value value);
  /// Whether the condition of `op`, or how often `op` runs, depends on data
  /// that the function writes.
  bool decideOn(scf::IfOp op);
  /// Removes the ops that write. Remaining uses of their results become poison,
  /// so no value that matters may depend on them.
  ///
  /// Errors: a diagnostic and failure for an op that contains a report.
  LogicalResult remove();

private:
  static Value findMemory(Value buffer);
  /// Whether `value`, or a result of `op`, depends on data that the function
  /// writes. If `onSizes` is true, only the sizes of shaped values matter.
  bool dependsOn(Value value, bool onSizes);
  bool dependsOn(Operation *op, bool onSizes);
  /// Whether such data determines if or how often the regions of `op` run.
  bool runsOf(Operation *op);
  bool mayRead(Operation *op);
  /// Whether the function may write to the memory of `buffer`. A null `buffer`
  /// stands for unknown memory.
  bool mayWriteTo(Value buffer) {
    Value whole = buffer ? findMemory(buffer) : Value();
    return !whole || memory.contains(whole) || memory.contains(Value());
  }

  func::FuncOp function;
  /// The ops that may write.
  SmallVector<Operation *> ops;
  /// The buffers that `ops` write to, with null for unknown memory.
  llvm::SmallPtrSet<Value, 8> memory;
  /// The ops and arguments that have been visited, indexed by `onSizes`.
  llvm::SmallPtrSet<Operation *, 16> visited[2];
  llvm::SmallPtrSet<Value, 16> visitedArguments[2];
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_CABI_WRITES_H
