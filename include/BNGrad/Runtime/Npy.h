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
/// Errors: false, an unchanged `array`, and one line `<path>: <reason>` in
///         `error`. The file may be malformed in any way; no more memory is
///         allocated than its data fill. If memory runs out, the line may lack
///         the path.
/// Source: numpy.lib.format, "Format Version 1.0" to "3.0".
[[nodiscard]] bool readNpy(const std::string &path, Array &array,
                           std::string &error);

/// Writes `array` to a descriptor, as below.
///
/// Errors: false and the reason in `error`.
[[nodiscard]] bool writeNpy(int descriptor, const Array &array,
                            std::string &error);

/// Writes `array` as version 1.0, bf16 as `<V2`. The data starts at a multiple
/// of 64 bytes.
///
/// Errors: false and one line `<path>: <reason>` in `error`; the file may then
///         be incomplete.
/// Source: numpy.lib.format, "Format Version 1.0".
[[nodiscard]] bool writeNpy(const std::string &path, const Array &array,
                            std::string &error);

} // namespace bngrad

#endif // BNGRAD_RUNTIME_NPY_H
