//===- Npy.h - read and write npy files -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_REFERENCE_NPY_H
#define BNGRAD_REFERENCE_NPY_H

#include "BNGrad/Reference/Array.h"

#include <functional>
#include <string>
#include <vector>

namespace bngrad {

/// Reads a file of numpy's npy format, version 1.0, 2.0 or 3.0.
///
/// Shapes: any, rank 0 and empty arrays included. Files in Fortran order are
///         transposed: `array` is always row-major.
/// Types:  `<f2 <f4 <f8 <i2 <i4 <i8 <u2 <u4 <u8`, the same in big-endian order
///         (`>f4`), `|b1 |i1 |u1`, and `<V2` or `|V2`, which is bf16.
/// Errors: false, an unchanged `array`, and one line `<path>: <reason>` in
///         `error`. The file may be malformed in any way; it allocates no more
///         memory than the data take, or twice as much if they are transposed
///         or big-endian. If memory runs out, the line may lack the path.
/// Source: numpy.lib.format, "Format Version 1.0" to "3.0".
[[nodiscard]] bool readNpy(const std::string &path, Array &array,
                           std::string &error);

/// Reads only the type and the shape of a file, as above.
[[nodiscard]] bool readNpyHeader(const std::string &path, ElementType &type,
                                 std::vector<int64_t> &shape,
                                 std::string &error);

/// A part of an array: `shape` elements along each dim, from `begin` on.
struct ArrayPart {
  std::vector<int64_t> begin, shape;
};

/// Calls `visit` for each run of elements of `part` that are adjacent in an
/// array of `shape`, with its start in that array and in the part, and its
/// length, all in elements.
void visitRuns(const std::vector<int64_t> &shape, const ArrayPart &part,
               const std::function<void(int64_t whole, int64_t inPart,
                                        int64_t length)> &visit);

/// Reads a part of a file as above. The file is mapped, so that memory holds
/// only the part. `part` is within the shape that readNpyHeader returns.
[[nodiscard]] bool readNpyPart(const std::string &path, const ArrayPart &part,
                               Array &array, std::string &error);

/// Writes the header of an array to the start of a file and extends the file to
/// hold the array.
///
/// Errors: false and the reason in `error`.
[[nodiscard]] bool writeNpyHeader(int descriptor, ElementType type,
                                  const std::vector<int64_t> &shape,
                                  std::string &error);

/// Writes a part of an array of `shape` to a file that writeNpyHeader has
/// prepared. Other processes may write other parts.
///
/// Errors: false and the reason in `error`.
[[nodiscard]] bool writeNpyPart(int descriptor,
                                const std::vector<int64_t> &shape,
                                const ArrayPart &part, const Array &array,
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

#endif // BNGRAD_REFERENCE_NPY_H
