//===- Check.h - --check -------------------------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNNER_CHECK_H
#define BNGRAD_RUNNER_CHECK_H

#include "Program.h"

#include "BNGrad/Reference/Npy.h"

namespace mlir::bngrad {

/// Evaluates the program once more without our passes, each bngrad op by the
/// scalar reference and every other op by upstream's plain lowering, and prints
/// per result
///
///   result <i> <name> max_error <x> bound <y> ok|FAILED
///
/// A result of a bngrad op must be within the op's bound. A result computed
/// from it element by element must be within the bound that follows. A result
/// that depends on no bngrad op must be bitwise identical.
///
/// If `parts` is not empty, `results` are these parts; otherwise they are
/// whole. `arguments` are always whole.
///
/// Errors: one line on standard error and failure for a result whose bound
///         cannot be derived, or overflows where the exact value does not. A
///         failed check is failure as well.
LogicalResult checkResults(Program &program,
                           MutableArrayRef<::bngrad::Array> arguments,
                           MutableArrayRef<::bngrad::Array> results,
                           ArrayRef<::bngrad::ArrayPart> parts = {});

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_CHECK_H
