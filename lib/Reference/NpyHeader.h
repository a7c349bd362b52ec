//===- NpyHeader.h - the text of an npy header ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_REFERENCE_NPYHEADER_H
#define BNGRAD_REFERENCE_NPYHEADER_H

#include "BNGrad/Reference/Array.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bngrad {

/// `text` from a file as part of one line of a message.
std::string printable(std::string_view text);

/// `shape` as Python prints a tuple.
std::string tupleOf(const std::vector<int64_t> &shape);

/// What a header says about an array.
struct NpyLayout {
  ElementType type = ElementType::F32;
  bool isBigEndian = false;
  /// Whether the first dim is innermost.
  bool isFortranOrder = false;
  std::vector<int64_t> shape;
};

/// Reads the text of a header. False with a line in `error` if the array is not
/// one that we can read. Its size is below 2^63 bytes.
bool interpretHeader(std::string_view text, NpyLayout &layout,
                     std::string &error);

/// The text of the header of an array, without padding.
std::string printHeader(ElementType type, const std::vector<int64_t> &shape);

} // namespace bngrad

#endif // BNGRAD_REFERENCE_NPYHEADER_H
