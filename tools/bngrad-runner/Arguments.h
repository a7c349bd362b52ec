//===- Arguments.h - the values of --arg ---------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNNER_ARGUMENTS_H
#define BNGRAD_RUNNER_ARGUMENTS_H

#include "Program.h"

namespace mlir::bngrad {

/// Reads or generates one array per argument of the program:
///
///   PATH.npy                            a file
///   random:SEED[:LO:HI][@D0xD1x...]     pseudo-random values in [LO, HI)
///
/// Element i of a random array, in row-major order, depends on SEED, LO, HI and
/// i alone. Without LO and HI the range is [-1, 1), and [0.5, 1.5) for a
/// variance or inv_std; an i1 is true with probability 1/2.
///
/// Shapes: sizes the function does not know come from the file or from `@`.
/// Errors: one line on standard error that names the argument, and failure.
FailureOr<std::vector<::bngrad::Array>>
makeArguments(Program &program, ArrayRef<std::string> specs);

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_ARGUMENTS_H
