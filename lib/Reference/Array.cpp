//===- Array.cpp - dense row-major arrays -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Reference/Array.h"
#include "OutOfMemory.h"

namespace bngrad {

bool allocateArray(ElementType type, const std::vector<int64_t> &shape,
                   Array &array, std::string &error) {
  return orOutOfMemory("", error, [&] {
    std::optional<int64_t> size = computeByteSize(type, shape);
    if (!size) {
      error = "expected extents >= 0 and a size below 2^63 bytes";
      return false;
    }
    Array result;
    result.type = type;
    result.shape = shape;
    if (!result.data.allocate(static_cast<size_t>(*size))) {
      error =
          "out of memory: cannot allocate " + std::to_string(*size) + " bytes";
      return false;
    }
    array = std::move(result);
    return true;
  });
}

} // namespace bngrad
