//===- Npy.h - read and write npy files -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNTIME_NPY_H
#define BNGRAD_RUNTIME_NPY_H

#include "BNGrad/Runtime/Array.h"

#include <string>

namespace bngrad {

/// Reads a file of numpy's npy format, version 1.0, 2.0 or 3.0.
///
/// Shapes: any, in C order; rank 0 and empty arrays included.
/// Types:  `<f2 <f4 <f8 |b1 <i8`, and `<V2` or `|V2`, which is bf16.
/// Errors: false, `array` as it was, and in `error` one line
///         `<path>: <what>`; the file is trusted in nothing, and nothing is
///         allocated that it does not fill. Memory that runs out is such an
///         error, whose line has no path if there is no memory for it.
/// Source: numpy.lib.format, "Format Version 1.0" to "3.0".
[[nodiscard]] bool readNpy(const std::string &path, Array &array,
                           std::string &error);

/// Writes `array` to a descriptor, as below.
///
/// Errors: false and a few words in `error`.
[[nodiscard]] bool writeNpy(int descriptor, const Array &array,
                            std::string &error);

/// Writes `array` as version 1.0, bf16 as `<V2`. The data starts at a multiple
/// of 64 bytes.
///
/// Errors: false and one line `<path>: <what>` in `error`; the file may then
///         exist in part.
/// Source: numpy.lib.format, "Format Version 1.0".
[[nodiscard]] bool writeNpy(const std::string &path, const Array &array,
                            std::string &error);

} // namespace bngrad

#endif // BNGRAD_RUNTIME_NPY_H
