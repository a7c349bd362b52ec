//===- PlainProgram.h - the program without our passes -------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNNER_PLAINPROGRAM_H
#define BNGRAD_RUNNER_PLAINPROGRAM_H

#include "Program.h"

#include "BNGrad/Reference/Reference.h"

#include <memory>

namespace mlir::bngrad {

/// The reference of one result of the function.
struct Expectation {
  /// The name of the bngrad op's result, else `value`.
  std::string name;
  /// Where it is computed.
  std::string location;
  ::bngrad::Array value;
  /// Null if the result must equal `value`.
  std::shared_ptr<const ::bngrad::ReferenceResult> reference;
};

/// Evaluates the program without our passes: each bngrad op by the scalar
/// reference, every other op by upstream's plain lowering.
///
/// Errors: one line on standard error and failure, also for a result whose
///         bound does not follow.
FailureOr<std::vector<Expectation>>
evaluatePlainly(Program &program, MutableArrayRef<::bngrad::Array> arguments);

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_PLAINPROGRAM_H
