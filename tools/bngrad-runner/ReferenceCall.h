//===- ReferenceCall.h - calls of the reference --------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNNER_REFERENCECALL_H
#define BNGRAD_RUNNER_REFERENCECALL_H

#include "BNGrad/Compiler/Compiler.h"
#include "SumBounds.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Reference/Reference.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <memory>

namespace mlir::bngrad {

/// A result of an op, described to the reference.
struct ReferenceOutput {
  Role role;
  ::bngrad::ElementType type;
};

/// One op, described to the reference, and the reference's results.
struct Evaluation {
  ::bngrad::ReferenceProblem problem; // except sizes and pointers
  int64_t rank = 0;                   // of input
  std::vector<ReferenceOutput> outputs;
  /// By result, after the call; null if exact (the count).
  std::vector<std::shared_ptr<const ::bngrad::ReferenceResult>> results;
};

/// Replaces gradient ops of a module by calls of the reference.
class ReferenceCalls {
public:
  /// Declares the reference in `module`.
  explicit ReferenceCalls(ModuleOp module);

  /// The declared function. Code that calls it must not outlive this object.
  static CompiledProgram::Symbol getSymbol();

  /// Replaces `op` by a call. Returns the results, and the error that a
  /// computed result may have (null if exact). `getError` gives the error of an
  /// operand, as in buildErrorBounds.
  ///
  /// Errors: a diagnostic at `op` and failure if the sizes of its results do
  /// not
  ///         follow from the operands.
  FailureOr<SmallVector<BoundedValue>>
  replace(BatchNormOpInterface op, function_ref<Value(Value)> getError);

  /// The evaluation of each call, in order.
  ArrayRef<std::unique_ptr<Evaluation>> getEvaluations() const {
    return evaluations;
  }

private:
  func::FuncOp reference;
  // Generated code holds their addresses.
  std::vector<std::unique_ptr<Evaluation>> evaluations;
};

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_REFERENCECALL_H
