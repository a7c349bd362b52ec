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

/// The help text for the values of --arg.
inline constexpr StringLiteral kSpecHelp = R"(SPEC, one for each argument:
  PATH.npy                         a file
  random:SEED[:LO:HI][@D0xD1x...]  pseudo-random numbers in [LO, HI)

  SEED        whole number from 0 to 2^64 - 1; element i, in row-major order,
              depends on SEED, LO, HI and i alone
  LO:HI       finite, LO < HI (default: -1:1, and 0.5:1.5 for a variance or an
              inv_std); an i1 is true with probability 1/2 whatever they are
  @D0xD1x...  sizes; needed where the argument has sizes that are not in its
              type. @ alone is rank 0

Arguments and results are ranked tensors; their dtype in a .npy file:
  f16 <f2, bf16 <V2, f32 <f4, f64 <f8, i1 |b1, i64 <i8
An i64 is never random: it needs PATH.npy. Files of arguments may also be big
endian and in Fortran order.

A result is written to a file of its own, which is neither the program nor an
argument, and replaced once all results are written; or in place to what is no
file: /dev/stdout, /dev/stderr, /dev/fd/N, a device such as /dev/null, a pipe
that is read.
)";

/// Finds this process's part of argument `i`, which has `shape`.
///
/// Errors: the reason in `error` and failure.
using FindPart = function_ref<FailureOr<::bngrad::ArrayPart>(
    unsigned i, ArrayRef<int64_t> shape, std::string &error)>;

/// Reads or generates one array per argument of the program, as kSpecHelp says;
/// with `findPart`, only its part. Sets `shapes` to the shapes of the whole
/// arguments.
///
/// Shapes: sizes that the function does not know come from the file or `@`.
/// Errors: one line on standard error for each argument that is wrong, naming
///         it, and failure.
FailureOr<std::vector<::bngrad::Array>>
makeArguments(Program &program, ArrayRef<std::string> specs,
              FindPart findPart = nullptr,
              std::vector<std::vector<int64_t>> *shapes = nullptr);

} // namespace mlir::bngrad

#endif // BNGRAD_RUNNER_ARGUMENTS_H
