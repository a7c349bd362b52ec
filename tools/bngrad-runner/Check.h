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

namespace mlir::bngrad {

/// Evaluates the program once more without our passes, each bngrad op by the
/// scalar reference and every other op by upstream's plain lowering, and prints
/// per result
///
///   result <i> <name> max_error <x> bound <y> ok|FAILED
///
/// A result that is one of a bngrad op is held to the op's bound, one that is
/// computed from it element by element to what follows from that bound; one
/// that depends on no bngrad op must be equal bit for bit.
///
/// Errors: one line on standard error and failure for a result whose bound
///         cannot be derived, or overflows where the exact value does not. A
///         failed check is failure as well.
LogicalResult checkResults(Program &program,
                           MutableArrayRef<::bngrad::Array> arguments,
                           MutableArrayRef<::bngrad::Array> results);

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_CHECK_H
